"""Laws of integrity: damaged bytes are never handed out as good, and what was kept outlives the handle."""

from __future__ import annotations

from refledger.conformance.law import expect, expect_absent, expect_refused, expect_same, law, payload_of, refs_of, walk
from refledger.conformance.subject import HOME, KIND, Subject, damage, reopened
from refledger_schema.errors import ArtifactIntegrity
from refledger_schema.scopes import Scope


@law("A get verifies: damaged bytes raise `ArtifactIntegrity`, with ref and digest. The ticket stays readable.", needs=("corrupt",))
def gets_verify(subject: Subject) -> None:
    store = subject.fresh()
    for data in ("text", [{"sold": 20}], b"\x00\xff", b"x" * 100_000):
        meta = store.put(HOME, data, kind=KIND)
        damage(subject, store, HOME, meta.ref)
        for _ in range(2):
            refusal = expect_refused(ArtifactIntegrity, lambda ref=meta.ref: store.get(HOME, ref), "a get of a damaged payload")  # type: ignore[misc]
            expect_same((refusal.ref, refusal.expected), (meta.ref, meta.digest), "the refusal's ref and expected digest")
            expect(refusal.actual != meta.digest, "another actual digest than the ticket's", "the same")
        expect_same(store.head(HOME, meta.ref), meta, "the ticket of a damaged payload")


@law("Damage stays with the artifact it befell: others read as before, also in other scopes.", needs=("corrupt",))
def damage_does_not_spread(subject: Subject) -> None:
    store = subject.fresh()
    elsewhere = Scope(conversation="elsewhere", tenant=HOME.tenant, principal=HOME.principal)
    damaged, other = (store.put(HOME, text, kind=KIND).ref for text in ("damaged", "other"))
    twin = store.put(elsewhere, "damaged", kind=KIND).ref
    damage(subject, store, HOME, damaged)
    expect_same(payload_of(store, HOME, other), "other", "the payload of another artifact")
    expect_same(payload_of(store, elsewhere, twin), "damaged", "the payload of the same bytes in another scope")
    expect_absent(store, elsewhere, damaged, "a damaged artifact from another scope")


@law(
    "What a get has found damaged is not listed by kind once its scope is written to again, for no refusal may offer it.",
    needs=("corrupt",),
)
def known_damage_is_not_listed_by_kind(subject: Subject) -> None:
    store = subject.fresh()
    damaged, sound = (store.put(HOME, text, kind=KIND).ref for text in ("damaged", "sound"))
    damage(subject, store, HOME, damaged)
    expect_refused(ArtifactIntegrity, lambda: store.get(HOME, damaged), "a get of a damaged payload")
    store.put(HOME, "more", kind="another/kind")
    expect_same(refs_of(walk(store, HOME, kind=KIND)), [sound], "the listing by kind after damage was found")


@law("What was put, and what was deleted, outlives the handle.", needs=("reopen",))
def what_was_kept_outlives_the_handle(subject: Subject) -> None:
    store = subject.fresh()
    first = store.put(HOME, {"rows": [1, 2]}, kind=KIND, label="kept")
    gone = store.put(HOME, "gone", kind=KIND).ref
    last = store.put(HOME, b"x" * 100_000, kind=KIND, parents=[first.ref])
    store.delete(HOME, gone)
    listing = store.list(HOME).artifacts
    again = reopened(subject, store)
    expect_same(again.list(HOME).artifacts, listing, "the listing after the store was opened anew")
    expect_same(payload_of(again, HOME, first.ref), {"rows": [1, 2]}, "a payload after the store was opened anew")
    expect_same(payload_of(again, HOME, last.ref), b"x" * 100_000, "a payload after the store was opened anew")
    expect_absent(again, HOME, gone, "what was deleted before the store was opened anew")
