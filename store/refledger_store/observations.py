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

    def add(self, other: Lost) -> None:
        if other.count:
            self.first_us = min(self.first_us, other.first_us) if self.count else other.first_us
            self.last_us = max(self.last_us, other.last_us) if self.count else other.last_us
            self.count += other.count


@dataclass(slots=True)
class Waiting:
    """What waits for one run, in the order it was observed: each observation with its texts."""

    scope: Scope
    run_id: str | None
    observed: list[tuple[Prepared, Content]] = field(default_factory=list)
    lost: Lost = field(default_factory=Lost)

    @property
    def drafts(self) -> list[Prepared]:
        return [draft for draft, _ in self.observed]

    @property
    def content(self) -> Content:
        return {key: text for _, content in self.observed for key, text in content.items()}

    def lose_the_oldest(self, kept: int) -> None:
        """Lose, and count, what is more than `kept`."""
        while len(self.observed) > kept:
            made_us = self.observed.pop(0)[0].draft.occurred_us or 0
            self.lost.add(Lost(1, made_us, made_us))

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
            waiting.observed.append((draft, dict(content)))
            waiting.lose_the_oldest(CAPACITY)
            return len(waiting.observed) >= CAPACITY

    def take(self, key: str) -> Waiting | None:
        """What waits under the key, which the caller now owns: to commit it, or to `give_back`."""
        with self._lock:
            return self._waiting.pop(key, None)

    def give_back(self, key: str, taken: Waiting) -> None:
        """Put back what could not be committed, in front of what came since; what is over capacity is lost, the oldest first."""
        with self._lock:
            since = self._waiting.get(key)
            if since is not None:
                taken.observed += since.observed
                taken.lost.add(since.lost)
            taken.lose_the_oldest(CAPACITY)
            self._waiting[key] = taken

    def keys(self) -> list[str]:
        with self._lock:
            return list(self._waiting)
