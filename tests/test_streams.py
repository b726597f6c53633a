"""Payloads of any size go in and out a piece at a time, and their digest is computed and checked on the way."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from refledger import Ledger
from refledger_schema.errors import ArtifactIntegrity, InvalidArtifact, UnknownParentRef
from refledger_schema.events import ArtifactRead, ArtifactRefused
from tests.ledgers import SCOPE, new_log

PIECE = 1024 * 1024
HOMES: tuple[Literal["database", "folder"], ...] = ("database", "folder")


@pytest.fixture(params=HOMES)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(new_log(tmp_path), payloads=request.param) as opened:
        yield opened


def some_bytes(size: int) -> bytes:
    return hashlib.shake_128(str(size).encode()).digest(size)


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 17])
def test_what_is_streamed_in_comes_out_the_same(ledger: Ledger, size: int) -> None:
    data = some_bytes(size)
    with ledger.run(SCOPE) as run:
        meta = run.put_stream(io.BytesIO(data), kind="file/raw")
        reader = run.get_stream(meta.ref)
        assert reader is not None
        with reader:
            pieces = list(reader)
        stored = run.get(meta.ref)
    assert (b"".join(pieces), reader.verified, meta.bytes) == (data, True, size)
    assert meta.digest == "sha-256:" + hashlib.sha256(data).hexdigest()
    assert stored is not None and stored.data == data
    assert max((len(piece) for piece in pieces), default=0) <= PIECE


def test_pieces_of_any_length_make_one_payload(ledger: Ledger) -> None:
    data = some_bytes(2 * PIECE + 5)
    pieces = [data[:3], b"", data[3 : PIECE + 7], data[PIECE + 7 :]]
    with ledger.run(SCOPE) as run:
        assert run.put_stream(pieces, kind="file/raw").digest == run.put(data, kind="file/raw").digest


def test_a_damaged_payload_is_told_of_at_the_end_of_the_stream_and_in_the_log(tmp_path: Path) -> None:
    data = some_bytes(2 * PIECE + 1)
    with Ledger.open(new_log(tmp_path)) as ledger, ledger.run(SCOPE) as run:
        ref = run.put_stream(io.BytesIO(data), kind="file/raw").ref
        with ledger._store._engine.writing() as connection:
            connection.execute("UPDATE payload_chunks SET data = :data WHERE chunk = 2", {"data": b"!"})
        reader = run.get_stream(ref)
        assert reader is not None
        with reader, pytest.raises(ArtifactIntegrity):
            reader.read_all()
        run.flush()
        assert not reader.verified
        refusals = [recorded.event for recorded in ledger.events() if isinstance(recorded.event, ArtifactRefused)]
        assert [(event.op, event.cause, event.ref) for event in refusals] == [("stream", "corrupt", ref)]


def test_a_stream_that_is_left_early_is_a_read_that_nothing_verified(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        ref = run.put_stream(io.BytesIO(some_bytes(3 * PIECE)), kind="file/raw").ref
        reader = run.get_stream(ref)
        assert reader is not None
        with reader:
            next(reader)
        run.flush()
        reads = [recorded.event for recorded in ledger.events() if isinstance(recorded.event, ArtifactRead)]
    assert reads == [ArtifactRead(ref=ref, via="stream", door="run", verified=False)]


def test_a_streamed_put_that_is_refused_leaves_no_bytes_behind(ledger: Ledger, tmp_path: Path) -> None:
    with ledger.run(SCOPE) as run, pytest.raises(UnknownParentRef):
        run.put_stream(io.BytesIO(some_bytes(2 * PIECE)), kind="file/raw", parents=["art_" + "0" * 22])
    with ledger._store._engine.reading() as connection:
        assert connection.execute("SELECT COUNT(*) FROM payload_chunks").fetchall() == [(0,)]
    assert [path for path in tmp_path.glob("*.payloads/**/*") if path.is_file()] == []


def test_a_source_that_fails_midway_leaves_no_bytes_behind(ledger: Ledger, tmp_path: Path) -> None:
    def breaking() -> Iterator[bytes]:
        yield some_bytes(3 * PIECE)
        raise ConnectionError("the line is dead")

    with ledger.run(SCOPE) as run, pytest.raises(ConnectionError):
        run.put_stream(breaking(), kind="file/raw")
    with ledger._store._engine.reading() as connection:
        assert connection.execute("SELECT COUNT(*) FROM payload_chunks").fetchall() == [(0,)]
    assert [path for path in tmp_path.glob("*.payloads/**/*") if path.is_file()] == []


def test_a_source_that_gives_text_is_refused(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        with pytest.raises(InvalidArtifact, match="binary mode"):
            run.put_stream(io.StringIO("text"), kind="file/raw")  # type: ignore[arg-type]
        with pytest.raises(InvalidArtifact, match="use `put`"):
            run.put_stream(b"bytes", kind="file/raw")  # type: ignore[arg-type]


def test_files_of_a_folder_go_with_the_last_ref_and_are_found_by_any_reader(tmp_path: Path) -> None:
    path = new_log(tmp_path)
    data = some_bytes(PIECE)
    with Ledger.open(path, payloads="folder") as ledger, ledger.run(SCOPE) as run:
        refs = [run.put(data, kind="file/raw").ref for _ in range(2)]
    with Ledger.open(path) as plain, plain.run(SCOPE) as run:
        stored = run.get(refs[0])
        assert stored is not None and stored.data == data
        assert plain.verify().ok
    with Ledger.open(path, payloads="folder") as ledger, ledger.run(SCOPE) as run:
        for ref, left in zip(refs, (1, 0), strict=True):
            run.delete(ref)
            assert len([found for found in tmp_path.glob("*.payloads/**/*") if found.is_file()]) == left


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="a process's own peak of memory is read from /proc")
def test_a_streamed_payload_costs_little_memory(tmp_path: Path) -> None:
    """64 MiB in and out in a process of its own, against the same without: the whole of 2 GiB is the benchmark's."""
    program = """
        import sys
        from refledger import Ledger, Scope
        size, path = int(sys.argv[1]), sys.argv[2]
        with Ledger.open(path, durability="process") as ledger, ledger.run(Scope(conversation="c")) as run:
            ref = run.put_stream((bytes(1 << 20) for _ in range(size)), kind="file/raw").ref
            assert sum(len(piece) for piece in run.get_stream(ref)) == size << 20
        # Not getrusage: what a process was forked from counts there too.
        print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:")))
    """

    def kilobytes(size: int) -> int:
        arguments = [sys.executable, "-c", textwrap.dedent(program), str(size), str(tmp_path / f"{size}.db")]
        return int(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)

    assert kilobytes(64) - kilobytes(1) < 30 * 1024
