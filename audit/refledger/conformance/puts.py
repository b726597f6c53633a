"""Laws of puts: parents are proven, what is malformed is refused by field, and a refusal keeps nothing and tells nothing."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from refledger.conformance.absence import MALFORMED, NEVER
from refledger.conformance.law import expect, expect_live, expect_refused, expect_same, law, payload_of, refs_of, tried, walk
from refledger.conformance.scopes import NEIGHBOURS
from refledger.conformance.subject import HOME, KIND, SECOND, Subject, pass_time
from refledger.contract import ArtifactStore
from refledger_schema.errors import InvalidArtifact, UnknownParentRef
from refledger_schema.events import Parent
from refledger_schema.scopes import Scope

FAULTS: tuple[tuple[str, str, Any, dict[str, Any]], ...] = (
    ("a blank kind", "kind", "a", {"kind": ""}),
    ("a kind of white space", "kind", "a", {"kind": " \t\n"}),
    ("a kind that is no text", "kind", "a", {"kind": 7}),
    ("no kind", "kind", "a", {"kind": None}),
    ("a blank media type", "media_type", "a", {"kind": KIND, "media_type": ""}),
    ("a media type of white space", "media_type", "a", {"kind": KIND, "media_type": "  "}),
    ("a media type that is no text", "media_type", "a", {"kind": KIND, "media_type": 7}),
    ("a label that is no text", "label", "a", {"kind": KIND, "label": ["a"]}),
    ("an expiry that is no datetime", "expires_at", "a", {"kind": KIND, "expires_at": "tomorrow"}),
    ("a ttl that is no timedelta", "ttl", "a", {"kind": KIND, "ttl": 60}),
    ("one ref as parents", "parents", "a", {"kind": KIND, "parents": NEVER}),
    ("parents that are no sequence", "parents", "a", {"kind": KIND, "parents": 7}),
    ("a payload with a set in it", "data", {"rows": {1}}, {"kind": KIND}),
    ("a text that UTF-8 cannot hold", "data", "\udc80", {"kind": KIND}),
)
"""What is the matter, the field, the payload, and the rest of the put."""


@law("Malformed puts are refused, each on the field that is at fault.")
def malformed_puts_are_refused_by_field(subject: Subject) -> None:
    store = subject.fresh()
    for what, field, data, words in FAULTS:
        refusal = expect_refused(InvalidArtifact, _putting(store, data, words), f"a put with {what}")
        expect_same(refusal.field, field, f"the field of the refusal of {what}")


@law("Parents are kept as they were given, order and repetitions too; none given is None, never an empty list.")
def parents_are_kept(subject: Subject) -> None:
    store = subject.fresh()
    a, b, c = (store.put(HOME, text, kind=KIND).ref for text in "abc")
    child = store.put(HOME, "d", kind=KIND, parents=[c, a, b, a])
    stated = tuple(Parent(ref=ref, how="declared") for ref in (c, a, b, a))
    expect_same(child.parents, stated, "the parents")
    expect_same(expect_live(store, HOME, child.ref, "the child").parents, stated, "the parents from `head`")
    orphan = store.put(HOME, "e", kind=KIND, parents=[])
    expect_same(orphan.parents, None, "the parents of what was given none")


@law("A parent must be live in the same scope: one never minted, malformed, deleted or another scope's is refused.")
def parents_are_proven(subject: Subject) -> None:
    store = subject.fresh()
    deleted = store.put(HOME, "a", kind=KIND).ref
    store.delete(HOME, deleted)
    suspects = [("was never minted", NEVER), ("is malformed", MALFORMED[3]), ("was deleted", deleted)]
    suspects += [(f"lives in a scope with {whose}", store.put(scope, "b", kind=KIND).ref) for whose, scope in NEIGHBOURS]
    for what, ref in suspects:
        refusal = expect_refused(UnknownParentRef, _putting(store, "c", {"kind": KIND, "parents": [ref]}), f"a put whose parent {what}")
        expect_same((refusal.field, refusal.unresolved), ("parents", (ref,)), "the refusal's field and unresolved parents")


@law("An expired parent is refused like any other that is not there.", needs=("advance",))
def expired_parents_are_refused(subject: Subject) -> None:
    store = subject.fresh()
    ref = store.put(HOME, "a", kind=KIND, ttl=timedelta(seconds=1)).ref
    pass_time(subject, 2 * SECOND)
    expect_refused(UnknownParentRef, _putting(store, "b", {"kind": KIND, "parents": [ref]}), "a put whose parent has expired")


@law("The refusal names every parent that did not resolve, in the order they were given, whatever was the matter with each.")
def every_unknown_parent_is_named(subject: Subject) -> None:
    store = subject.fresh()
    good, deleted = (store.put(HOME, text, kind=KIND).ref for text in "ab")
    store.delete(HOME, deleted)
    foreign = store.put(NEIGHBOURS[0][1], "c", kind=KIND).ref
    for parents in ([deleted, NEVER], [good, NEVER, good, deleted, foreign], [NEVER, "not a ref", good, deleted], ["x", foreign, "y"]):
        refusal = expect_refused(UnknownParentRef, _putting(store, "d", {"kind": KIND, "parents": parents}), "a put with unknown parents")
        expect_same(refusal.unresolved, tuple(ref for ref in parents if ref != good), "the unresolved parents")


@law("A refused put stores nothing and moves nothing: the listing, its totals and what follows are as if it had not been tried.")
def refused_puts_store_nothing(subject: Subject) -> None:
    store = subject.fresh()
    before = [store.put(HOME, text, kind=KIND) for text in "ab"]
    words = {"kind": KIND, "parents": [before[0].ref, NEVER]}
    past = {"kind": KIND, "expires_at": datetime(1999, 1, 1, tzinfo=UTC)}
    tries = [*((data, fault) for _, _, data, fault in FAULTS), ("c", words), ("c", past)]
    for data, fault in tries:
        ref = tried(store, HOME, data, fault)
        if ref is not None:
            store.delete(HOME, ref)
    expect_same(sorted(refs_of(walk(store, HOME))), sorted(refs_of(before)), "the listing after refused puts, sorted,")
    expect(store.list(HOME, kind=KIND).total in (None, 2), "a total of 2 after refused puts", store.list(HOME, kind=KIND).total)


@law("No refusal tells a secret: no value of the payload, no tenant and no principal stands in its text, or in what it shows as its cause.")
def refusals_keep_secrets(subject: Subject) -> None:
    store = subject.fresh()
    # Put together here, so that a traceback cannot quote them from a line of this file.
    payload, tenant, principal = (f"{name}-{len(name) * 7919}" for name in ("payload", "tenant", "principal"))
    scope = Scope("c-17", tenant, principal)
    mine = store.put(scope, payload, kind=KIND).ref
    tries: list[tuple[Any, dict[str, Any]]] = [(data if data == "\udc80" else payload, words) for _, _, data, words in FAULTS]
    tries += [({"rows": [payload, {payload}]}, {"kind": KIND}), ([payload, b"", payload], {"kind": KIND})]
    tries += [(payload, {"kind": KIND, "parents": [NEVER, mine]}), (f"{payload}\ud800", {"kind": KIND})]
    for data, words in tries:
        try:
            store.put(scope, data, **words)
        except Exception as error:
            texts = "\n".join([str(error), repr(error), *map(repr, error.args), *traceback.format_exception(error)])
            for name, secret in (("the payload", payload), ("the tenant", tenant), ("the principal", principal)):
                expect(secret not in texts, f"a refusal that does not quote {name}", f"it in a {type(error).__name__}")


@law("What was put is a copy: changing the caller's object afterwards changes nothing.")
def puts_are_detached(subject: Subject) -> None:
    store = subject.fresh()
    rows: list[dict[str, Any]] = [{"sold": 20}]
    raw = bytearray(b"abc")
    refs = [store.put(HOME, rows, kind=KIND).ref, store.put(HOME, raw, kind=KIND).ref, store.put(HOME, memoryview(raw), kind=KIND).ref]
    rows[0]["sold"] = 21
    rows.append({})
    raw[0] = 0
    for ref, data in zip(refs, ([{"sold": 20}], b"abc", b"abc"), strict=True):
        expect_same(payload_of(store, HOME, ref), data, "the payload after its caller changed the object")


@law("What comes out is a copy: changing it changes neither the store nor what the next one gets.")
def gets_are_detached(subject: Subject) -> None:
    store = subject.fresh()
    ref = store.put(HOME, {"rows": [{"sold": 20}]}, kind=KIND).ref
    for _ in range(2):
        got = payload_of(store, HOME, ref)
        expect_same(got, {"rows": [{"sold": 20}]}, "the payload")
        if isinstance(got, dict):
            got["rows"][0]["sold"] = 21
            got.clear()


def _putting(store: ArtifactStore, data: Any, words: dict[str, Any]) -> Callable[[], object]:
    return lambda: store.put(HOME, data, **words)
