"""Laws of scopes: a ref opens nothing outside the scope that it was minted in."""

from __future__ import annotations

from refledger.conformance.law import expect, expect_absent, expect_live, expect_same, law, payload_of, refs_of, walk
from refledger.conformance.subject import HOME, KIND, Subject
from refledger_schema.scopes import Scope

NEIGHBOURS: tuple[tuple[str, Scope], ...] = (
    ("another tenant", Scope(conversation="c-17", tenant="globex", principal="alice")),
    ("no tenant", Scope(conversation="c-17", principal="alice")),
    ("another principal", Scope(conversation="c-17", tenant="acme", principal="bob")),
    ("no principal", Scope(conversation="c-17", tenant="acme")),
    ("another conversation", Scope(conversation="c-18", tenant="acme", principal="alice")),
    ("no conversation", Scope(tenant="acme", principal="alice")),
)
"""Each differs from HOME in one field."""

_LONG = "x" * 199
CONFUSABLE: tuple[tuple[str, Scope, Scope], ...] = (
    ("a slash that could belong to either field", Scope("c", "a/b", "p"), Scope("c", "a", "b/p")),
    ("a slash that could end a field", Scope("c", "a", "/p"), Scope("/c", "a", "p")),
    ("a slash and an absent field", Scope("c", "a/", "b"), Scope("c", "a", "/b")),
    ("names moved one field on", Scope("c", "a", ""), Scope("c", "", "a")),
    ("two names for one", Scope("c", "a", "b"), Scope("c", "ab", "")),
    ("`_` and an absent tenant", Scope("c", "_", "p"), Scope("c", "", "p")),
    ("`_` and an absent principal", Scope("c", "a", "_"), Scope("c", "a", "")),
    ("`_` and an absent conversation", Scope("_", "a", "p"), Scope("", "a", "p")),
    ("`%5F` and `_`", Scope("c", "%5F", "p"), Scope("c", "_", "p")),
    ("`%2F` and a slash", Scope("c", "a%2Fb", "p"), Scope("c", "a/b", "p")),
    ("`%25` and `%`", Scope("c", "%25", "p"), Scope("c", "%", "p")),
    ("`%252F` and `%2F`", Scope("c", "%252F", "p"), Scope("c", "%2F", "p")),
    ("the case of the tenant", Scope("c", "Acme", "p"), Scope("c", "acme", "p")),
    ("the case of the principal", Scope("c", "a", "Bob"), Scope("c", "a", "bob")),
    ("the case of the conversation", Scope("C", "a", "p"), Scope("c", "a", "p")),
    ("a composed letter and a decomposed one", Scope("c", "caf\u00e9", "p"), Scope("c", "cafe\u0301", "p")),
    ("a letter and its look-alike", Scope("c", "a", "p"), Scope("c", "\u0430", "p")),
    ("a space at the end", Scope("c", "a ", "p"), Scope("c", "a", "p")),
    ("a space at the start", Scope("c", "a", " p"), Scope("c", "a", "p")),
    ("a line break at the end", Scope("c\n", "a", "p"), Scope("c", "a", "p")),
    ("`..` and an absent field", Scope("..", "a", "p"), Scope("", "a", "p")),
    ("`..` and a step up", Scope("c", "a", ".."), Scope("c", "", "a")),
    ("`.` and `..`", Scope(".", "a", "p"), Scope("..", "a", "p")),
    ("a conversation and one that it begins", Scope("c-1", "a", "p"), Scope("c-17", "a", "p")),
    ("a wildcard", Scope("c%", "a", "p"), Scope("c-17", "a", "p")),
    ("an empty conversation and a space", Scope("", "a", "p"), Scope(" ", "a", "p")),
    ("200 characters that differ in the last", Scope(_LONG + "a", "a", "p"), Scope(_LONG + "b", "a", "p")),
)

AWKWARD: tuple[Scope, ...] = (
    Scope(),
    Scope("c-17"),
    Scope(tenant="acme"),
    Scope("..", "../..", "."),
    Scope("🙂", "acme — west", "алиса"),
    Scope("'; DROP TABLE artifacts; --", 'a"b', "100%"),
    Scope("/", "//", "\\"),
    Scope("line\nbreak", "tab\there", " "),
    Scope("c" * 200, "t" * 200, "p" * 200),
    Scope("CON", "nul", "a:b*c?"),
)


@law("A ref reads nothing from a neighbour that differs in one field: head and get are None.")
def neighbours_read_nothing(subject: Subject) -> None:
    store = subject.fresh()
    ref = store.put(HOME, "secret", kind=KIND).ref
    for whose, neighbour in NEIGHBOURS:
        expect_absent(store, neighbour, ref, f"a ref from a scope with {whose}")


@law("A neighbour's listing shows nothing that is not its own, with a kind or without.")
def neighbours_list_nothing(subject: Subject) -> None:
    store = subject.fresh()
    store.put(HOME, "secret", kind=KIND)
    for whose, neighbour in NEIGHBOURS:
        for kind in (None, KIND):
            page = store.list(neighbour, kind=kind)
            expect(page.artifacts == () and not page.total, f"an empty listing in a scope with {whose}", f"{len(page.artifacts)} rows")


@law("A delete by a neighbour does nothing, and says nothing.")
def neighbours_delete_nothing(subject: Subject) -> None:
    store = subject.fresh()
    ref = store.put(HOME, "secret", kind=KIND).ref
    for whose, neighbour in NEIGHBOURS:
        store.delete(neighbour, ref)
        expect_live(store, HOME, ref, f"what a scope with {whose} deleted")
    expect_same(payload_of(store, HOME, ref), "secret", "the payload after the neighbours' deletes")


@law("Scopes whose names look alike, or would if joined, folded, trimmed or normalised, share nothing.")
def confusable_scopes_stay_apart(subject: Subject) -> None:
    store = subject.fresh()
    for why, one, other in CONFUSABLE:
        mine, theirs = (store.put(scope, why, kind=KIND).ref for scope in (one, other))
        for owner, stranger, ref in ((one, other, mine), (other, one, theirs)):
            expect_absent(store, stranger, ref, f"a ref across {why}")
            expect(ref not in refs_of(walk(store, stranger)), f"a listing that does not reach across {why}", "the other scope's ref")
            store.delete(stranger, ref)
            expect_live(store, owner, ref, f"what was deleted across {why}")


@law("Every scope that can be named holds artifacts: empty, long, `..`, SQL, emoji. Missing and empty fields are one absence.")
def awkward_scopes_hold_artifacts(subject: Subject) -> None:
    store = subject.fresh()
    refs = [store.put(scope, scope.key, kind=KIND).ref for scope in AWKWARD]
    for scope, ref in zip(AWKWARD, refs, strict=True):
        again = Scope(scope.conversation or None, scope.tenant or None, scope.principal or None)  # type: ignore[arg-type]
        expect_same(payload_of(store, again, ref), scope.key, "the payload")
        expect_same(refs_of(walk(store, again)), [ref], "the listing of the scope")
