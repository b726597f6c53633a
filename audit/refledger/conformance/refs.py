"""Laws of refs and digests: a ref is minted, a digest is computed, and neither is made from the other."""

from __future__ import annotations

import hashlib
import re

from refledger.conformance.law import expect, expect_same, law, payload_of
from refledger.conformance.subject import HOME, KIND, SECOND, Subject, pass_time

_REF = re.compile(r"art_[0-9A-Za-z]{22}")
_DIGEST = re.compile(r"sha-256:[0-9a-f]{64}")


@law("Every put mints a ref of its own: `art_` and 22 letters or digits. Identical bytes are two artifacts.")
def refs_are_well_formed_and_unique(subject: Subject) -> None:
    store = subject.fresh()
    refs = [store.put(HOME, data, kind=KIND).ref for data in ("same", "same", b"same", ["same"], "", "")]
    malformed = [ref for ref in refs if not _REF.fullmatch(ref)]
    expect(not malformed, "`art_` and 22 letters or digits", f"{malformed}")
    expect(len(set(refs)) == len(refs), f"{len(refs)} refs", f"{len(set(refs))} different ones")
    store.delete(HOME, refs[0])
    expect_same(payload_of(store, HOME, refs[1]), "same", "the payload of the twin of a deleted artifact")


@law("A ref says nothing of what it names: the same put into two new stores gives two refs.")
def refs_are_minted_not_derived(subject: Subject) -> None:
    first, second = (subject.fresh().put(HOME, "same", kind=KIND).ref for _ in range(2))
    expect(first != second, "another ref in another store", "the same")


@law("Every artifact has a digest, asked for or not: that of its bytes.")
def digests_are_of_the_bytes(subject: Subject) -> None:
    store = subject.fresh()
    for data in ("em-dash —", "", b"\x00\xff", b""):
        raw = data.encode() if isinstance(data, str) else data
        meta = store.put(HOME, data, kind=KIND)
        expect_same(meta.digest, "sha-256:" + hashlib.sha256(raw).hexdigest(), f"the digest of {data!r}")
    meta = store.put(HOME, {"a": 1}, kind=KIND)
    expect(bool(_DIGEST.fullmatch(meta.digest)), "a digest of JSON: `sha-256:` and 64 lower-case hexadecimal digits", repr(meta.digest))


@law("Equal bytes have equal digests, in every scope and under every kind; other bytes have others.")
def equal_bytes_have_equal_digests(subject: Subject) -> None:
    store = subject.fresh()
    for one, other in (("a", "b"), (b"a", b"b"), ([1, 2], [2, 1]), ({"a": 1}, {"a": 2})):
        digest = store.put(HOME, one, kind=KIND).digest
        expect_same(store.put(HOME, one, kind="another/kind", label="again").digest, digest, f"the digest of {one!r} again")
        expect(store.put(HOME, other, kind=KIND).digest != digest, f"another digest of {other!r} than of {one!r}", "the same")


@law("A ticket states when it was minted, in microseconds of the store's clock.", needs=("advance",))
def tickets_state_their_time(subject: Subject) -> None:
    store = subject.fresh()
    before = store.put(HOME, "a", kind=KIND).minted_us
    pass_time(subject, 5 * SECOND + 1)
    expect_same(store.put(HOME, "b", kind=KIND).minted_us - before, 5 * SECOND + 1, "the time between two mints, in microseconds,")
