"""Logs made by hand: a list of drafts becomes the rows that a store would have written, without a store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from refledger_schema.envelope import Draft, Row, placed, prepare


def make_log(
    drafts: Sequence[Draft],
    *,
    log_id: str = "log-a",
    start_us: int = 1_000_000,
    step_us: int = 1_000,
    clock: Sequence[int] | None = None,
) -> list[Row]:
    """The rows of `drafts` at positions 1, 2, 3, …; `clock` gives each its recorded_us, else time goes on by `step_us`."""
    if clock is not None and len(clock) != len(drafts):
        raise ValueError(f"expected a clock reading for each of {len(drafts)} drafts; found {len(clock)}")
    seen: Counter[str] = Counter()
    rows = []
    for position, draft in enumerate(drafts, start=1):
        scope_key = None if draft.scope is None else draft.scope.key
        if scope_key is not None:
            seen[scope_key] += 1
        row = placed(
            prepare(draft, event_id_at(position)),
            log_id=log_id,
            position=position,
            recorded_us=start_us + (position - 1) * step_us if clock is None else clock[position - 1],
            scope_key=scope_key,
            scope_seq=None if scope_key is None else seen[scope_key],
        )
        rows.append(row)
    return rows


def event_id_at(position: int) -> str:
    """The id that `make_log` gives to the event at `position`: known beforehand, and of the form of a UUIDv7."""
    return f"00000000-0000-7000-8000-{position:012x}"


def erased(row: Row) -> Row:
    """The row after its texts were erased: the leaf still verifies."""
    return replace(row, texts=None, salt=None)


@dataclass(frozen=True)
class MadeLog:
    """A log made by hand, as a source of questions."""

    rows: Sequence[Row]
    log_id: str = "log-a"

    def scope_of_answer(self, answer_id: str) -> str | None:
        given = (row for row in self.rows if row.type == "answer.given" and json.loads(row.body)["answer_id"] == answer_id)
        return next((row.scope for row in given), None)

    def events(self, scope: str | None) -> list[Row]:
        return [row for row in self.rows if scope is None or row.scope == scope]
