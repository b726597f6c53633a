"""What a model reads when dispatch refuses: a pure function of the stored event and its wording version.

A renderer is never changed once released, and never removed, so that the sentence a model read can be made again, byte for
byte, for as long as the event keeps its texts. A new wording is a new function under a new number.

What comes from labels, kinds and spoken texts is made harmless first (`shown`): it can plant neither a ref nor a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from refledger_schema.events import DispatchRefused, JudgedArgument, Offers
from refledger_schema.refs import is_ref

REFUSED_PREFIX = "refused: "
"""The first words of every refusal that a model reads (seed `refusal.d.ts`): they say what the text is."""
MAX_SHOWN = 80
"""How much of a foreign text a model is shown, in characters."""
LATEST = 1
_LIKE_A_REF = re.compile(r"art_[0-9A-Za-z]{22}")


def dispatch_sentence(event: DispatchRefused) -> str:
    """The sentence that the model read for `event`. Raises KeyError for a wording that this software does not know."""
    return RENDERERS[event.wording](event)


def argument_sentence(event: DispatchRefused, argument: JudgedArgument) -> str:
    """The part of the sentence that speaks of one refused argument, with what was offered for its kind."""
    return ARGUMENT_RENDERERS[event.wording](event, argument)


def shown(text: str) -> str:
    """A foreign text as a model may read it: harmless, and quoted."""
    return quoted(harmless(text))


def harmless(text: str) -> str:
    """A foreign text made safe to show: one line, bounded, and no ref in it that could be taken for an offer."""
    return bounded(_LIKE_A_REF.sub("art_…", one_line(text)))


def one_line(text: str) -> str:
    """A text without control characters, line breaks and runs of white space."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def bounded(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _dispatch_1(event: DispatchRefused) -> str:
    refused = [argument for argument in event.arguments if argument.outcome == "refused"]
    parts = [f"{REFUSED_PREFIX}the tool {shown(event.tool)} did not run."]
    parts += [_argument_1(event, argument) for argument in refused]
    return " ".join(parts)


def _argument_1(event: DispatchRefused, argument: JudgedArgument) -> str:
    offers = next((offer for offer in event.offers if offer.kind == argument.wanted), None)
    hint = f" The live ref {argument.meant} is spelled almost like it." if argument.meant is not None else ""
    return f"{_complaint_1(event, argument)}{hint} {_offer_1(argument.wanted, offers, event.labels or {})}"


def _complaint_1(event: DispatchRefused, argument: JudgedArgument) -> str:
    name, wanted = shown(argument.argument), shown(argument.wanted)
    if argument.reason == "invalid-input":
        if argument.spoken_as == "absent":
            return f"Argument {name} is required and was not given; it takes a ref of kind {wanted}."
        return f"Argument {name} takes a ref of kind {wanted} as text, not {_SPOKEN_AS_1[argument.spoken_as]}."
    spoken = _spoken_1(event, argument)
    if argument.reason == "kind-mismatch":
        return f"Argument {name} wants kind {wanted}, and {spoken} is of kind {shown(argument.actual or '')}."
    if argument.reason == "digest-mismatch":
        return f"Argument {name}: the data behind {spoken} is damaged and was not passed on; kind {wanted} is wanted."
    return f"Argument {name}: {spoken} is missing or expired; kind {wanted} is wanted."


_SPOKEN_AS_1: Mapping[str, str] = {
    "empty-text": "an empty text",
    "null": "null",
    "boolean": "a boolean",
    "number": "a number",
    "array": "an array",
    "object": "an object",
    "bytes": "bytes",
    "other": "a value that JSON does not have",
}


def _spoken_1(event: DispatchRefused, argument: JudgedArgument) -> str:
    if argument.ref is not None:
        return argument.ref
    text = (event.spoken or {}).get(argument.argument)
    if text is None:
        return f"what was passed ({argument.spoken_length or 0:,} characters)"
    # The model's own words, given back to it: what it spelled stays recognisable, refs included.
    return text if is_ref(text) else quoted(bounded(one_line(text)))


def _offer_1(kind: str, offers: Offers | None, labels: Mapping[str, str]) -> str:
    if offers is None or not offers.refs:
        return f"No ref of kind {shown(kind)} is live in this conversation: produce one first."
    lines = ", ".join(_line_1(offered.ref, offered.bytes, labels.get(offered.ref)) for offered in offers.refs)
    count = f"{len(offers.refs):,} of {offers.total:,}"
    return f"Live refs of kind {shown(kind)}, newest first, {count}: {lines}."


def _line_1(ref: str, size: int, label: str | None) -> str:
    named = "" if label is None else f"{shown(label)}, "
    return f"{ref} ({named}{size:,} bytes)"


RENDERERS: Mapping[int, Callable[[DispatchRefused], str]] = {1: _dispatch_1}
ARGUMENT_RENDERERS: Mapping[int, Callable[[DispatchRefused, JudgedArgument], str]] = {1: _argument_1}
