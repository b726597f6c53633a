"""Laws of streams, for stores that have them: payloads a piece at a time, under the same contract."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Protocol, cast

from refledger.conformance.absence import MALFORMED, NEVER
from refledger.conformance.law import Broken, expect, expect_live, expect_refused, expect_same, law, payload_of, refs_of, walk
from refledger.conformance.scopes import NEIGHBOURS
from refledger.conformance.subject import HOME, KIND, SECOND, Subject, damage, pass_time
from refledger.contract import ArtifactMeta, ArtifactStore
from refledger_schema.errors import ArtifactIntegrity, InvalidArtifact
from refledger_schema.scopes import Scope


class StreamingStore(ArtifactStore, Protocol):
    """The optional members of a store, both or neither."""

    def put_stream(self, scope: Scope, source: Any, *, kind: str, parents: tuple[str, ...] = ()) -> ArtifactMeta:
        """Check in the bytes of a binary file or an iterable of bytes; takes the words that `put` takes."""
        ...

    def get_stream(self, scope: Scope, ref: str) -> Iterable[bytes] | None:
        """The payload's bytes a piece at a time; None for every absence. The last piece is followed by `ArtifactIntegrity` if damaged."""
        ...


@law("Streaming members are there together or not at all.")
def streams_come_in_pairs(subject: Subject) -> None:
    store = subject.fresh()
    there = [name for name in ("put_stream", "get_stream") if callable(getattr(store, name, None))]
    expect(len(there) != 1, "both of `put_stream` and `get_stream`, or neither", f"`{''.join(there)}` alone")


@law("What was streamed in, from a file or in pieces of any size, comes out of get and of streams as the same bytes.", needs=("streaming",))
def streams_come_back(subject: Subject) -> None:
    store = _streaming(subject)
    large = bytes(range(256)) * 10_001
    for what, source, raw in (
        ("a file", io.BytesIO(large), large),
        ("a generator", (large[start : start + 7_777] for start in range(0, len(large), 7_777)), large),
        ("small pieces", [b"a", b"", b"bc", b""], b"abc"),
        ("no pieces", [], b""),
        ("an empty file", io.BytesIO(), b""),
    ):
        meta = store.put_stream(HOME, source, kind=KIND)
        stated = (meta.shape, meta.bytes, meta.digest)
        expect_same(stated, ("bytes", len(raw), "sha-256:" + hashlib.sha256(raw).hexdigest()), f"the ticket of {what}")
        expect(payload_of(store, HOME, meta.ref) == raw, f"from `get` the bytes of {what}", "others")
        expect(_streamed(store, HOME, meta.ref) == raw, f"from `get_stream` the bytes of {what}", "others")
    text = store.put(HOME, "em-dash —", kind=KIND)
    expect_same(_streamed(store, HOME, text.ref), "em-dash —".encode(), "the stream of a text")


@law("A stream of what is absent is the same absence: None.", needs=("streaming",))
def streams_know_one_absence(subject: Subject) -> None:
    store = _streaming(subject)
    ref = store.put_stream(HOME, [b"abc"], kind=KIND).ref
    for whose, neighbour in NEIGHBOURS:
        expect_same(store.get_stream(neighbour, ref), None, f"a stream from a scope with {whose}")
    store.delete(HOME, ref)
    for what, absent in (
        ("a deleted artifact", ref),
        ("a ref that was never minted", NEVER),
        *(("a malformed ref", text) for text in MALFORMED),
    ):
        expect_same(store.get_stream(HOME, absent), None, f"a stream of {what}")


@law("A stream of what has expired is the same absence.", needs=("streaming", "advance"))
def streams_expire(subject: Subject) -> None:
    store = _streaming(subject)
    ref = store.put(HOME, b"abc", kind=KIND, ttl=timedelta(seconds=1)).ref
    pass_time(subject, 2 * SECOND)
    expect_same(store.get_stream(HOME, ref), None, "a stream of an expired artifact")


@law("A stream whose source fails, or whose put is refused, stores nothing.", needs=("streaming",))
def broken_streams_store_nothing(subject: Subject) -> None:
    store = _streaming(subject)
    kept = store.put_stream(HOME, [b"kept"], kind=KIND).ref
    try:
        store.put_stream(HOME, _breaking(), kind=KIND)
    except OSError:
        pass
    else:
        raise Broken("expected the error of a source that fails; found a ticket.")
    for source, words in ((["text"], {"kind": KIND}), ([b"a"], {"kind": " "}), ([b"a"], {"kind": KIND, "parents": (NEVER,)})):
        try:
            stored = store.put_stream(HOME, source, **words)
        except InvalidArtifact:
            continue
        store.delete(HOME, stored.ref)  # That it is refused is another law's to judge.
    expect_same(refs_of(walk(store, HOME)), [kept], "the listing after streams that failed")


@law("A stream of damaged bytes ends in `ArtifactIntegrity`; the ticket stays readable.", needs=("streaming", "corrupt"))
def streams_verify(subject: Subject) -> None:
    store = _streaming(subject)
    for raw in (b"abc", b"x" * 100_000):
        meta = store.put_stream(HOME, [raw], kind=KIND)
        damage(subject, store, HOME, meta.ref)
        refusal = expect_refused(ArtifactIntegrity, lambda ref=meta.ref: _streamed(store, HOME, ref), "a stream of a damaged payload")  # type: ignore[misc]
        expect_same((refusal.ref, refusal.expected), (meta.ref, meta.digest), "the refusal's ref and expected digest")
        expect_live(store, HOME, meta.ref, "a damaged artifact")


def _streaming(subject: Subject) -> StreamingStore:
    return cast(StreamingStore, subject.fresh())


def _streamed(store: StreamingStore, scope: Scope, ref: str) -> bytes | None:
    stream = store.get_stream(scope, ref)
    return None if stream is None else b"".join(stream)


def _breaking() -> Iterator[bytes]:
    yield b"x" * 2_000_000
    raise OSError("the source failed")
