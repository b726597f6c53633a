"""Retention: when artifacts must leave, as plans over values. The store carries them out, with an event for each departure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from refledger_schema.canonical import MAX_SAFE_INTEGER
from refledger_schema.errors import InvalidConfiguration, OverBudget
from refledger_store.reads import Totals

_LONGEST_TTL = timedelta(days=36_525)
"""What dies later than that is as good as kept, and its expiry no longer fits an event."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long artifacts live, and how much a scope may hold. None is without limit.

    Raises `InvalidConfiguration` for a limit that is not a whole number from 1 (microseconds, for `ttl`).
    """

    ttl: timedelta | None = None
    """An artifact is dead this long after its mint, or earlier where its put says so."""
    max_bytes: int | None = None
    """Bytes of live artifacts in a scope."""
    max_count: int | None = None
    """Live artifacts in a scope."""

    def __post_init__(self) -> None:
        if self.ttl is not None and (not isinstance(self.ttl, timedelta) or not timedelta(microseconds=1) <= self.ttl <= _LONGEST_TTL):
            raise InvalidConfiguration(
                "ttl", "expected `ttl` to be a timedelta above zero and of at most 100 years. Give one, or None for no limit."
            )
        for name in ("max_bytes", "max_count"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_SAFE_INTEGER):
                raise InvalidConfiguration(name, f"expected `{name}` to be an int from 1 to 2^53-1. Give one, or None for no limit.")

    @property
    def ttl_us(self) -> int | None:
        return None if self.ttl is None else self.ttl // timedelta(microseconds=1)

    @property
    def bounded(self) -> bool:
        """Whether a put may have to make room."""
        return self.max_bytes is not None or self.max_count is not None


def expiry(retention: Retention, stated_us: int | None, now_us: int) -> int | None:
    """When an artifact minted now dies: the earlier of what its put says and what retention allows; never extended."""
    limits = [limit for limit in (stated_us, None if retention.ttl_us is None else now_us + retention.ttl_us) if limit is not None]
    return min(limits, default=None)


def _refuse_oversized(retention: Retention, incoming: int) -> None:
    """Refuse a payload that no eviction can make room for."""
    if retention.max_bytes is not None and incoming > retention.max_bytes:
        raise OverBudget(
            "data",
            f"expected a payload of at most {retention.max_bytes:,} bytes, all that a scope may hold; found {incoming:,}. "
            "Store less, or raise `max_bytes`.",
        )


def evictions(
    retention: Retention,
    held: Totals,
    incoming: int,
    least_used: Iterable[tuple[str, int]],
    protected: Collection[str],
) -> list[tuple[str, Literal["max-bytes", "max-count"]]]:
    """Who must leave, in order, for `incoming` bytes to fit: the least recently used first, never the protected.

    `least_used` yields (ref, bytes) and is read only as far as needed. Raises `OverBudget`, and nobody leaves, when the payload
    cannot fit.
    """
    _refuse_oversized(retention, incoming)
    count, size = held.live_count, held.live_bytes
    leaving: list[tuple[str, Literal["max-bytes", "max-count"]]] = []
    candidates = ((ref, held_bytes) for ref, held_bytes in least_used if ref not in protected)
    while True:
        over_count = retention.max_count is not None and count + 1 > retention.max_count
        over_bytes = retention.max_bytes is not None and size + incoming > retention.max_bytes
        if not over_count and not over_bytes:
            return leaving
        victim = next(candidates, None)
        if victim is None:
            raise OverBudget(
                "data",
                "expected room in the scope beside the payload's own parents; there is none, so nothing was stored and nothing evicted. "
                "Delete what is no longer needed, or raise the limits.",
            )
        leaving.append((victim[0], "max-count" if over_count else "max-bytes"))
        count, size = count - 1, size - victim[1]
