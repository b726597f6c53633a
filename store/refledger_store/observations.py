"""Observations wait in memory for the next closed act of their run; what cannot be kept becomes a gap that the log tells of."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from refledger_schema.envelope import Draft, Prepared, prepare
from refledger_schema.events import LogGap
from refledger_schema.refs import mint_event_id
from refledger_schema.scopes import Scope

CAPACITY = 256
"""How many observations of one run wait at most."""

Content = dict[tuple[str, str], bytes]


@dataclass(slots=True)
class Lost:
    """Observations that a failing store cost: how many, and when the first and the last were made."""

    count: int = 0
    first_us: int = 0
    last_us: int = 0


@dataclass(slots=True)
class Waiting:
    """What waits for one run, in the order it was observed."""

    scope: Scope
    run_id: str | None
    drafts: list[Prepared] = field(default_factory=list)
    content: Content = field(default_factory=dict)
    lost: Lost = field(default_factory=Lost)

    def gap(self) -> list[Prepared]:
        """The gap to record in front of what waits, if something was lost."""
        if not self.lost.count:
            return []
        event = LogGap(count=self.lost.count, first_us=self.lost.first_us, last_us=self.lost.last_us, why="store-fault")
        return [prepare(Draft(event, self.scope, run_id=self.run_id), mint_event_id())]


class Observations:
    """The buffers of one open log, by run (or by scope, for what belongs to no run). Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, Waiting] = {}

    def add(self, key: str, draft: Prepared, content: Mapping[tuple[str, str], bytes]) -> bool:
        """Keep an observation; True when the buffer is full and should be committed."""
        assert draft.draft.scope is not None
        with self._lock:
            waiting = self._waiting.setdefault(key, Waiting(draft.draft.scope, draft.draft.run_id))
            if len(waiting.drafts) >= CAPACITY:
                self._lose(waiting, waiting.drafts.pop(0))
            waiting.drafts.append(draft)
            waiting.content.update(content)
            return len(waiting.drafts) >= CAPACITY

    def take(self, key: str) -> Waiting | None:
        """What waits under the key, which the caller now owns: to commit it, or to `give_back`."""
        with self._lock:
            return self._waiting.pop(key, None)

    def give_back(self, key: str, taken: Waiting) -> None:
        """Put back what could not be committed, in front of what came since; what is over capacity is lost, the oldest first."""
        with self._lock:
            since = self._waiting.get(key)
            if since is not None:
                taken.drafts += since.drafts
                taken.content.update(since.content)
            while len(taken.drafts) > CAPACITY:
                self._lose(taken, taken.drafts.pop(0))
            self._waiting[key] = taken

    def keys(self) -> list[str]:
        with self._lock:
            return list(self._waiting)

    @staticmethod
    def _lose(waiting: Waiting, draft: Prepared) -> None:
        made_us = draft.draft.occurred_us or 0
        if not waiting.lost.count:
            waiting.lost.first_us = made_us
        waiting.lost.count += 1
        waiting.lost.last_us = made_us
