"""Laws of listings: newest first, complete, and undisturbed by what happens between their pages."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from refledger.conformance.law import expect, expect_refused, expect_same, law, refs_of, walk
from refledger.conformance.subject import HOME, KIND, Subject, pass_time
from refledger.contract import ArtifactMeta, ArtifactStore
from refledger_schema.errors import InvalidArtifact
from refledger_schema.scopes import Scope

_OTHER_KINDS = ("dataset/row", "dataset/rows2", "Dataset/Rows", "dataset/rows ", "dataset", "%", "dataset_rows", "dataset/*")


@law("A listing is newest first, in the order of the puts, however fast they came.")
def lists_are_newest_first(subject: Subject) -> None:
    store = subject.fresh()
    puts = _filled(store, 12)
    expect_same(refs_of(store.list(HOME).artifacts), refs_of(reversed(puts)), "the listing")


@law("Newest means put last, whatever the clock says.", needs=("advance",))
def order_is_not_the_clocks(subject: Subject) -> None:
    store = subject.fresh()
    puts = _filled(store, 2)
    pass_time(subject, -1_000_000)
    puts += _filled(store, 2)
    expect_same(refs_of(store.list(HOME).artifacts), refs_of(reversed(puts)), "the listing after the clock ran back")


@law("The pages of a listing hold every live artifact once, whatever their size; the last page, and only that, has no cursor.")
def pages_are_complete(subject: Subject) -> None:
    store = subject.fresh()
    expect_same((store.list(HOME).artifacts, store.list(HOME).cursor), ((), None), "the listing of an empty scope")
    puts = refs_of(_filled(store, 6))
    for limit in (1, 2, 3, 4, 5, 6, 7, 1_000):
        expect_same(sorted(refs_of(walk(store, HOME, limit=limit))), sorted(puts), f"the pages of {limit}, put together and sorted,")


@law("A page holds 50 unless asked otherwise, and never more than was asked for.")
def a_page_holds_fifty(subject: Subject) -> None:
    store = subject.fresh()
    _filled(store, 51)
    page = store.list(HOME)
    expect(len(page.artifacts) == 50 and page.cursor is not None, "a page of 50 and a cursor", f"{len(page.artifacts)} and {page.cursor!r}")
    expect_same(len(store.list(HOME, cursor=page.cursor).artifacts), 1, "the rows of the last page")


@law("What is put while somebody walks a listing makes no row appear twice, and none be passed over.")
def walks_survive_puts(subject: Subject) -> None:
    for limit in (1, 2, 3):
        store = subject.fresh()
        puts = refs_of(_filled(store, 7))
        found = refs_of(walk(store, HOME, limit=limit, between=_some_puts(store)))
        expect(len(set(found)) == len(found), "no row twice in a walk with puts between the pages", "one")
        expect(set(puts) <= set(found), "every row that was there from the start", f"{len(set(puts) & set(found))} of {len(puts)}")


@law("What is deleted while somebody walks a listing makes none of the others appear twice or be passed over, and is not shown later.")
def walks_survive_deletes(subject: Subject) -> None:
    for limit in (1, 2, 3):
        store = subject.fresh()
        newest_first = refs_of(reversed(_filled(store, 9)))
        page = store.list(HOME, limit=limit)
        shown = refs_of(page.artifacts)
        # Of the rows already shown all leave, the one the cursor stands on too; of those to come, the second.
        removed = newest_first[limit + 1]
        for ref in (*shown, removed):
            store.delete(HOME, ref)
        while page.cursor is not None and len(shown) <= len(newest_first):
            page = store.list(HOME, limit=limit, cursor=page.cursor)
            shown += refs_of(page.artifacts)
        expected = [ref for ref in newest_first if ref != removed]
        expect_same(sorted(shown), sorted(expected), f"a walk in pages of {limit} with deletes between, sorted,")


@law("A cursor that no listing of this scope and kind handed out is refused on `cursor`, and never taken for the start.")
def bad_cursors_are_refused(subject: Subject) -> None:
    store = subject.fresh()
    elsewhere = Scope(conversation="c-18", tenant=HOME.tenant, principal=HOME.principal)
    for scope in (HOME, elsewhere):
        for number in range(3):
            store.put(scope, str(number), kind=KIND)
    mine = store.list(HOME, limit=1).cursor
    if mine is None:
        expect(False, "a cursor to the second page", "none")
        return
    made_up = ("", " ", "0", "1", "-1", "50", "garbage", "null", f"{mine}x", f"x{mine}", mine[:-1], mine.swapcase() + "!", "é", "9" * 40)
    for cursor in made_up:
        _expect_bad(store, HOME, {"cursor": cursor}, "cursor", f"a listing from the made-up cursor {ascii(cursor)[:30]}")
    _expect_bad(store, elsewhere, {"cursor": mine}, "cursor", "a listing from another scope's cursor")
    _expect_bad(store, HOME, {"cursor": mine, "kind": KIND}, "cursor", "a listing by kind from a cursor without")
    by_kind = store.list(HOME, limit=1, kind=KIND).cursor
    for kind in (None, "another/kind"):
        _expect_bad(store, HOME, {"cursor": by_kind, "kind": kind}, "cursor", "a listing from another kind's cursor")


@law("A limit that is not a whole number from 1 is refused on `limit`.")
def bad_limits_are_refused(subject: Subject) -> None:
    store = subject.fresh()
    _filled(store, 2)
    for limit in (0, -1, 1.5, "1", True, None):
        _expect_bad(store, HOME, {"limit": limit}, "limit", f"a listing with limit {limit!r}")


@law("A listing by kind holds that kind and no other: exact, case and all, without wildcards, page by page.")
def kinds_are_exact(subject: Subject) -> None:
    store = subject.fresh()
    mine = []
    for kind in (*_OTHER_KINDS, KIND, *_OTHER_KINDS, KIND, KIND):
        meta = store.put(HOME, "a", kind=kind)
        mine += [meta.ref] if kind == KIND else []
    for limit in (2, 50):
        expect_same(sorted(refs_of(walk(store, HOME, kind=KIND, limit=limit))), sorted(mine), "the listing by kind, sorted,")
    for kind in _OTHER_KINDS:
        expect_same([meta.kind for meta in walk(store, HOME, kind=kind)], [kind] * 2, f"the kinds in a listing by {kind!r}")
    expect_same(store.list(HOME, kind="nobody/has-this").artifacts, (), "the listing by a kind that nobody put")


@law("A listing holds tickets and no payloads: what it states of an artifact is what `head` states.")
def lists_hold_tickets(subject: Subject) -> None:
    store = subject.fresh()
    puts = _filled(store, 3)
    puts.append(store.put(HOME, "d", kind=KIND, label="derived", parents=[puts[0].ref]))
    for meta in store.list(HOME).artifacts:
        expect(isinstance(meta, ArtifactMeta) and not hasattr(meta, "data"), "tickets in a listing", type(meta).__name__)
        expect_same(meta, store.head(HOME, meta.ref), "the ticket in the listing")


@law("The total of a listing by kind is how many are live in all, on every page.", needs=("total",))
def totals_count_the_live(subject: Subject) -> None:
    store = subject.fresh()
    puts = _filled(store, 5)
    store.put(HOME, "a", kind="another/kind")
    store.put(Scope(conversation="c-18"), "a", kind=KIND)
    store.delete(HOME, puts[2].ref)
    page = store.list(HOME, kind=KIND, limit=3)
    expect_same(page.total, 4, "the total of four live artifacts")
    expect_same(store.list(HOME, kind=KIND, limit=3, cursor=page.cursor).total, 4, "the total on the second page")


def _filled(store: ArtifactStore, count: int) -> list[ArtifactMeta]:
    """That many artifacts, in the order of their puts."""
    return [store.put(HOME, f"number {number}", kind=KIND) for number in range(count)]


def _some_puts(store: ArtifactStore) -> Callable[[], None]:
    """A put each time it is called, a few times over: a listing that shows what comes later must end as well."""
    texts = iter(["put during", "the walk", "three times"])

    def put() -> None:
        for text in itertools.islice(texts, 1):
            store.put(HOME, text, kind=KIND)

    return put


def _expect_bad(store: ArtifactStore, scope: Scope, asked: dict[str, Any], field: str, what: str) -> None:
    refusal = expect_refused(InvalidArtifact, lambda: store.list(scope, **asked), what)
    expect_same(refusal.field, field, f"the field of the refusal of {what}")
