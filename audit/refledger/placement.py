"""Placement: a result too long for the model's window is checked in, and the model is handed its ticket instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refledger.payloads import text_of
from refledger_schema.canonical import payload_json
from refledger_schema.errors import InvalidArtifact, InvalidConfiguration
from refledger_schema.events import MAX_KIND, MAX_LABEL

if TYPE_CHECKING:
    from refledger.call import Call


def check_place_above(value: object) -> int | None:
    """The limit of `Ledger.open(place_above=…)`, in characters."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidConfiguration("place_above", "expected `place_above` to be an int from 1, in characters, or None. Give one.")
    return value


def placed_ticket(call: Call, value: Any, above: int) -> tuple[Any, str | None]:
    """(what the model should read, the ref of what was placed): the value itself where it is short enough.

    A store that refuses the payload leaves the value as it is: a result that is too long beats none.
    """
    text = text_of(value)
    if text is None or len(text) <= above:
        return value, None
    media_type = "text/plain" if isinstance(value, str) else "application/json"
    try:
        meta = call.put(text, kind=f"tool-result/{call.tool}"[:MAX_KIND], media_type=media_type, label=f"{call.tool} result"[:MAX_LABEL])
    except InvalidArtifact:
        return value, None
    ticket = {
        "placed": True,
        "ref": meta.ref,
        "kind": meta.kind,
        "mediaType": meta.media_type,
        "bytes": meta.bytes,
        "reason": f"the result has {len(text):,} characters, more than the {above:,} shown here: pass its ref on instead of its data",
    }
    return (payload_json(ticket) if isinstance(value, str) else ticket), meta.ref
