"""Laws of retention: what leaves when room is needed, and what never does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from refledger.conformance.absence import NEVER
from refledger.conformance.law import expect_absent, expect_refused, expect_same, law, payload_of, refs_of, tried, walk
from refledger.conformance.scopes import NEIGHBOURS
from refledger.conformance.subject import HOME, KIND, SECOND, Subject, pass_time, retained
from refledger.contract import ArtifactStore
from refledger_schema.errors import OverBudget
from refledger_store.retention import Retention

_TEN = "x" * 10
"""Ten bytes."""


@law("The store's ttl only tightens what a put asks for; the ticket states the earlier of both.", needs=("retained", "advance"))
def retention_only_tightens(subject: Subject) -> None:
    store = retained(subject, Retention(ttl=timedelta(seconds=10)))
    for asked, lives in ((None, 10), (5, 5), (60, 10)):
        meta = store.put(HOME, "a", kind=KIND, ttl=None if asked is None else timedelta(seconds=asked))
        expect_same(meta.expires_us, meta.minted_us + lives * SECOND, f"the expiry of a put that asks for {asked} s where 10 are allowed")
    pass_time(subject, 11 * SECOND)
    expect_absent(store, HOME, meta.ref, "what outlived the store's ttl")


@law("When a scope holds as many as it may, the least recently used leaves: a get and a head are uses.", needs=("retained",))
def the_least_used_leaves(subject: Subject) -> None:
    for use in ("get", "head"):
        store = retained(subject, Retention(max_count=3))
        a, b, c = _put(store, 3)
        getattr(store, use)(HOME, a)
        (d,) = _put(store, 1)
        expect_same(_held(store), sorted([a, c, d]), f"what is left after the first of three had a `{use}` and a fourth came, sorted,")
        expect_absent(store, HOME, b, "an evicted artifact")


@law("A listing is no use, and neither is a read that was refused.", needs=("retained",))
def looking_is_no_use(subject: Subject) -> None:
    store = retained(subject, Retention(max_count=3))
    a, b, c = _put(store, 3)
    store.list(HOME, kind=KIND)
    expect_absent(store, NEIGHBOURS[0][1], a, "another scope's artifact")
    (d,) = _put(store, 1)
    expect_same(_held(store), sorted([b, c, d]), "what is left after a listing and a neighbour's get, sorted,")


@law("A budget of bytes is kept by evicting no more than it takes, the least recently used first.", needs=("retained",))
def a_byte_budget_is_kept(subject: Subject) -> None:
    store = retained(subject, Retention(max_bytes=30))
    a, b, c = _put(store, 3)
    (d,) = _put(store, 1)
    expect_same(_held(store), sorted([b, c, d]), "what is left of 30 bytes after ten more came, sorted,")
    e = store.put(HOME, "x" * 11, kind=KIND).ref
    expect_same(_held(store), sorted([d, e]), "what is left of 30 bytes after eleven more came, sorted,")
    f = store.put(HOME, "x" * 30, kind=KIND).ref
    expect_same(_held(store), [f], "what is left after a payload of the whole budget")


@law("A put never evicts its own parents.", needs=("retained",))
def parents_are_not_evicted(subject: Subject) -> None:
    store = retained(subject, Retention(max_count=3))
    a, b, c = _put(store, 3)
    child = store.put(HOME, _TEN, kind=KIND, parents=[a]).ref
    expect_same(_held(store), sorted([a, c, child]), "what is left after a put with the least used as its parent, sorted,")


@law("A put that has no room beside its own parents is refused as `OverBudget`, and nothing is evicted.", needs=("retained",))
def no_room_evicts_nothing(subject: Subject) -> None:
    for limits in (Retention(max_count=2), Retention(max_bytes=25)):
        store = retained(subject, limits)
        held = _put(store, 2)
        expect_refused(OverBudget, lambda: store.put(HOME, _TEN, kind=KIND, parents=held), "a put without room beside its parents")  # noqa: B023
        expect_same(_held(store), sorted(held), "what is left after it, sorted,")


@law("A payload larger than the whole budget is refused as `OverBudget`, and nothing is evicted.", needs=("retained",))
def oversize_evicts_nothing(subject: Subject) -> None:
    store = retained(subject, Retention(max_bytes=30))
    held = _put(store, 3)
    expect_refused(OverBudget, lambda: store.put(HOME, "x" * 31, kind=KIND), "a put of 31 bytes where 30 are allowed")
    expect_same(_held(store), sorted(held), "what is left after it, sorted,")


@law("A put that is refused for anything else evicts nothing either.", needs=("retained",))
def refused_puts_evict_nothing(subject: Subject) -> None:
    refused: tuple[tuple[Any, dict[str, Any]], ...] = (
        ("a", {"kind": " "}),
        ("a", {"kind": KIND, "parents": [NEVER]}),
        ({1}, {"kind": KIND}),
    )
    for data, words in refused:
        store = retained(subject, Retention(max_count=1))
        held = _put(store, 1)
        if tried(store, HOME, data, words) is None:
            expect_same(_held(store), held, "what is left after a refused put")


@law("The expired make room before anything living has to.", needs=("retained", "advance"))
def the_expired_leave_first(subject: Subject) -> None:
    store = retained(subject, Retention(max_count=2))
    (living,) = _put(store, 1)
    store.put(HOME, "b", kind=KIND, ttl=timedelta(seconds=1))
    pass_time(subject, 2 * SECOND)
    (new,) = _put(store, 1)
    expect_same(_held(store), sorted([living, new]), "what is left of two after one expired and one came, sorted,")


@law("Limits are a scope's own: what one scope puts evicts nothing of another.", needs=("retained",))
def limits_are_per_scope(subject: Subject) -> None:
    store = retained(subject, Retention(max_count=1, max_bytes=10))
    held = _put(store, 1)
    for _, neighbour in NEIGHBOURS:
        store.put(neighbour, _TEN, kind=KIND)
    expect_same(_held(store), held, "what is left after the neighbours' puts")
    expect_same(payload_of(store, HOME, held[0]), f"{0:010}", "the payload after the neighbours' puts")


def _put(store: ArtifactStore, count: int) -> list[str]:
    """The refs of that many artifacts of ten bytes, the least recently used first."""
    return [store.put(HOME, f"{number:010}", kind=KIND).ref for number in range(count)]


def _held(store: ArtifactStore) -> list[str]:
    return sorted(refs_of(walk(store, HOME)))
