"""Streaming a payload in and out beside plain file copy plus sha256, and what it costs in memory.

`REFLEDGER_STREAM_MIB` sets the size (256 by default; 2048 is the size of the issue). Both sides write through to the disk once.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from refledger import Ledger, Run, Scope
from tests.benchmarks.measure import folder, seconds

MIB = 1024 * 1024
PEAK = textwrap.dedent("""
    def peak_kib():
        # Not getrusage: what a process was forked from counts there too.
        for line in open("/proc/self/status"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
""")
"""A program's own peak of resident memory, where the system has /proc."""
SIZE = int(os.environ.get("REFLEDGER_STREAM_MIB", "256"))


def main() -> None:
    with folder() as path:
        source = path / "source"
        _make(source)
        copy_in = seconds(lambda: _copy(source, path / "copy"))
        copy_out = seconds(lambda: _read(path / "copy"))
        print(f"{SIZE} MiB; file copy with sha256 and fsync {copy_in:.2f} s, reading it with sha256 {copy_out:.2f} s")
        for home in ("database", "folder"):
            with Ledger.open(path / f"{home}.db", payloads=home) as ledger, ledger.run(Scope(conversation="c")) as run:
                refs: list[str] = []
                into = seconds(lambda: refs.append(_put(run, source)))  # noqa: B023
                out = seconds(lambda: _get(run, refs[0]))  # noqa: B023
            print(f"{home:8} in {into:.2f} s (copy/in {copy_in / into:.2f}), out {out:.2f} s (read/out {copy_out / out:.2f})")
            print(f"{home:8} added memory {_added_memory(path, home):.0f} MiB (target: under 100)")


def _put(run: Run, source: Path) -> str:
    with source.open("rb") as file:
        return run.put_stream(file, kind="file/raw").ref


def _get(run: Run, ref: str) -> None:
    reader = run.get_stream(ref)
    assert reader is not None and sum(len(piece) for piece in reader) == SIZE * MIB


def _make(path: Path) -> None:
    block = os.urandom(MIB)
    with path.open("wb") as file:
        for _ in range(SIZE):
            file.write(block)


def _copy(source: Path, target: Path) -> str:
    hashed = hashlib.sha256()
    with source.open("rb") as read, target.open("wb") as write:
        while piece := read.read(MIB):
            hashed.update(piece)
            write.write(piece)
        write.flush()
        os.fsync(write.fileno())
    return hashed.hexdigest()


def _read(path: Path) -> str:
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(MIB):
            hashed.update(piece)
    return hashed.hexdigest()


def _added_memory(path: Path, home: str) -> float:
    """The peak of a process that streams the payload in and out, less that of one that streams a single piece."""
    program = PEAK + textwrap.dedent("""
        import sys
        from refledger import Ledger, Scope
        size, path, home = int(sys.argv[1]), sys.argv[2], sys.argv[3]
        block = bytes(1 << 20)
        with Ledger.open(path, payloads=home) as ledger, ledger.run(Scope(conversation="c")) as run:
            ref = run.put_stream((block for _ in range(size)), kind="file/raw").ref
            assert sum(len(piece) for piece in run.get_stream(ref)) == size << 20
        print(peak_kib())
    """)

    def peak(size: int) -> int:
        arguments = [sys.executable, "-c", program, str(size), str(path / f"{home}-{size}.db"), home]
        return int(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)

    return (peak(SIZE) - peak(1)) / 1024
