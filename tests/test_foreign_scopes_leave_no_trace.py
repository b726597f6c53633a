"""Whatever a scope is told, it is told byte for byte the same whether or not other scopes hold anything.

Each act runs on two fresh ledgers whose own history is the same, down to the refs. In one of them three neighbours hold artifacts of the
same kinds and bytes, used the same idempotency keys, and go on working between our acts; the refs spoken here are theirs where possible.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from refledger import Ledger, RefledgerError, Scope
from refledger.call import Call
from refledger.run import Run
from refledger.verbs import _cursor
from refledger_schema.events import ArtifactRefused, DispatchRefused
from refledger_store.retention import Retention
from tests.ledgers import Clock, change

MINE = Scope(conversation="c-17", tenant="acme", principal="alice")
NEIGHBOURS = (
    Scope(conversation="c-17", tenant="acme", principal="bob"),
    Scope(conversation="c-17", tenant="globex", principal="alice"),
    Scope(conversation="c-17"),
)
ROWS, REPORT, RARE = "dataset/rows", "report", "rare"
SCHEMA = {"type": "object", "properties": {"data": {"type": "string"}, "more": {"type": "string"}}, "required": ["data"]}
RETENTION = Retention(max_count=8, max_bytes=5_000)


def ref(name: str) -> str:
    return "art_" + name.ljust(22, "0")


OWN = ("victim", "rows1", "rows2", "report", "corrupt", "undecodable", "deleted", "expired", "keyed", "new")
THEIRS = ("live", "gone", "dead", "broken", "otherkind", "rare")
NEVER = ref("never")


@dataclass
class World:
    """One of the two ledgers, and our run in it."""

    ledger: Ledger
    path: Path
    clock: Clock
    crowded: bool
    minting: str = "own"
    numbers: Iterator[int] = field(default_factory=itertools.count)
    next_refs: list[str] = field(default_factory=list)
    run: Run = field(init=False)

    def mint_ref(self) -> str:
        if self.next_refs:
            return self.next_refs.pop(0)
        return ref(f"{self.minting}{next(self.numbers) if self.minting == 'theirs' else ''}")

    def put(self, scope: Scope, name: str, data: Any, **words: Any) -> str:
        self.next_refs = [ref(name)]
        return self.ledger.store.put(scope, data, **{"kind": ROWS, **words}).ref

    def damage(self, scope: Scope, name: str) -> None:
        meta = self.ledger.store.head(scope, ref(name))
        assert meta is not None
        change(self.path, "UPDATE payloads SET data = x'00' WHERE scope = ? AND digest = ?", scope.key, meta.digest)

    # --- who holds what ---------------------------------------------------------------------------------------------------------

    def settle_own(self) -> None:
        """Our own history, the same in both ledgers."""
        self.put(MINE, "victim", [0])
        for number in range(2):
            self.put(MINE, f"rows{number + 1}", [number], label=f"Q{number + 1}")
        self.put(MINE, "report", "Q3 is up", kind=REPORT)
        self.put(MINE, "corrupt", [1, 2, 3])
        self.put(MINE, "undecodable", "no JSON")
        self.put(MINE, "deleted", [9])
        self.ledger.store.delete(MINE, ref("deleted"))
        self.put(MINE, "expired", [8], ttl=timedelta(seconds=1))
        self.put(MINE, "keyed", [7], key="k")
        self.put(MINE, "filler", "f", kind=REPORT)
        self.clock.advance(timedelta(seconds=2))
        self.put(MINE, "last", "l", kind=REPORT)
        self.put(MINE, "forcing", "m", kind=REPORT)
        assert self.ledger.store.head(MINE, ref("victim")) is None
        self.damage(MINE, "corrupt")
        change(self.path, "UPDATE artifacts SET shape = 'json' WHERE ref = ?", ref("undecodable"))

    def settle_theirs(self) -> None:
        """The neighbours' history: what we hold, and what we speak of, under the keys we use."""
        for number, scope in enumerate(NEIGHBOURS):
            last = "" if number == 0 else str(number)
            self.put(scope, f"live{last}", [0], label="Q1", key="k")
            self.put(scope, f"otherkind{last}", "Q3 is up", kind=REPORT, key="new key")
            self.put(scope, f"rare{last}", [0], kind=RARE, parents=[ref(f"live{last}")])
            self.put(scope, f"gone{last}", [1])
            self.ledger.store.delete(scope, ref(f"gone{last}"))
            self.put(scope, f"broken{last}", [1, 2, 3])
            self.damage(scope, f"broken{last}")
            self.put(scope, f"dead{last}", [8], ttl=timedelta(seconds=1))
            with self.ledger.run(scope, run_id=f"theirs-{number}") as run:
                with run.call("tool", call_id="t1", args={"data": ref(f"live{last}")}) as call:
                    call.resolve({"data": ROWS}, key="k")
                with run.call("tool", call_id="t2", args={"data": NEVER}) as call:
                    call.resolve({"data": RARE}, key="new key")
                run.answer("Q3 total: 41", key="k")

    def stir(self) -> None:
        """A neighbour works on, and tries our refs."""
        if not self.crowded:
            return
        before, self.next_refs, self.minting = self.next_refs, [], "theirs"
        scope = NEIGHBOURS[0]
        self.ledger.store.put(scope, [1], kind=ROWS, label="Q2")
        self.ledger.store.get(scope, ref("rows1"))
        self.ledger.store.delete(scope, ref("rows2"))
        self.ledger.flush()
        self.next_refs, self.minting = before, "own"


@pytest.fixture(scope="module")
def settled(empty_log: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """The two ledgers as the acts find them, by whether they are crowded: to be copied."""
    folder, paths = tmp_path_factory.mktemp("settled"), {}
    for crowded in (False, True):
        paths[crowded] = folder / f"{crowded}.db"
        shutil.copy(empty_log, paths[crowded])
        with pytest.MonkeyPatch.context() as patch, opened(paths[crowded], Clock(), crowded, patch) as it:
            if crowded:
                it.settle_theirs()
            it.settle_own()
            it.ledger.run(MINE, run_id="ours", agent="analyst", keep_open=True)
    return paths


@contextmanager
def opened(path: Path, clock: Clock, crowded: bool, patch: pytest.MonkeyPatch) -> Iterator[World]:
    with Ledger.open(path, durability="process", clock=clock, retention=RETENTION) as ledger:
        it = World(ledger, path, clock, crowded)
        patch.setattr("refledger.verbs.mint_ref", it.mint_ref)
        yield it


@contextmanager
def world(settled: dict[bool, Path], folder: Path, patch: pytest.MonkeyPatch, crowded: bool) -> Iterator[World]:
    path, clock = folder / f"{crowded}.db", Clock()
    clock.advance(timedelta(seconds=3))
    shutil.copy(settled[crowded], path)
    with opened(path, clock, crowded, patch) as it:
        it.run = it.ledger.run(MINE, run_id="ours")
        assert it.run.joined
        yield it


# --- the acts -------------------------------------------------------------------------------------------------------------------------------

Act = Callable[[World], Any]
ACTS: dict[str, list[Act]] = {}


def act(name: str, *does: Act) -> None:
    """What is done on one pair of ledgers, one act after the other."""
    assert name not in ACTS
    ACTS[name] = list(does)


def dispatch(args: dict[str, Any], kind: str = ROWS, key: str | None = None, more: str | None = None) -> Act:
    wants = {"data": kind} | ({} if more is None else {"more": more})

    def does(it: World) -> Any:
        call: Call
        with it.run.call("summarize", call_id="t1", args=args) as call:
            outcome = call.resolve(wants, input_schema=SCHEMA, key=key)
            return outcome, call.result("done" if outcome.ok else outcome.refusal)

    return does


def of_run(verb: str, *args: Any, **words: Any) -> Act:
    """A verb of our run."""
    return lambda it: getattr(it.run, verb)(*args, **words)


def streamed(text: str) -> Act:
    def does(it: World) -> Any:
        reader = it.run.get_stream(text)
        return None if reader is None else (reader.meta, reader.read_all(), reader.verified)

    return does


def pages(it: World) -> list[Any]:
    read, cursor = [], None
    while True:
        page = it.run.list(limit=2, cursor=cursor)
        read.append(page)
        it.stir()
        cursor = page.cursor
        if cursor is None:
            return read


SPOKEN = {
    **{f"own {name}": ref(name) for name in OWN},
    **{f"foreign {name}": ref(name) for name in THEIRS},
    "never minted": NEVER,
    "malformed": "art_short",
    "near miss of an own": f" `{ref('rows1')}`",
    "near miss of a foreign": f" `{ref('live')}`",
    "foreign in a sentence": f"the rows of {ref('live')}, please",
    "blank": " ",
    "a dataset": "[" + "1, " * 400 + "]",
}
for spoken, text in SPOKEN.items():
    act(
        f"spoken: {spoken}",
        dispatch({"data": text}),
        dispatch({"data": text}, kind=RARE),
        of_run("present", text, "a table"),
        of_run("head", text),
        of_run("get", text),
        streamed(text),
        of_run("put", [5], kind=ROWS, parents=[ref("rows1"), text, ref("live")]),
        of_run("delete", text),
    )
for value in (None, 5, True, ["rows"], {"ref": ref("live")}, b"x"):
    act(
        f"spoken: {type(value).__name__}",
        dispatch({"data": value}),
        of_run("present", value, "a table"),
        of_run("head", value),
        of_run("get", value),
        of_run("delete", value),
    )
act("dispatch: required and missing", dispatch({}))
act("dispatch: two arguments, one good", dispatch({"data": ref("rows1"), "more": ref("live")}, more=ROWS))
act("dispatch: two arguments, both refused", dispatch({"data": ref("corrupt"), "more": ref("otherkind")}, more=REPORT))
act("dispatch: a key that others used", dispatch({"data": ref("rows1")}, key="k"))
act("dispatch: a key that others used for a refusal", dispatch({"data": NEVER}, key="new key"))
act(
    "dispatch: a key of our own, for another request",
    dispatch({"data": NEVER}, key="q"),
    dispatch({"data": "x"}, key="q"),
)
act("dispatch: a key of our own, again", dispatch({"data": NEVER}, key="q"), dispatch({"data": NEVER}, key="q"))
act("present: as nothing", of_run("present", ref("live"), ""))

act("put: the bytes of others", of_run("put", [0], kind=ROWS, label="Q1"))
act("put: a key that others used", of_run("put", [6], kind=ROWS, key="new key"))
act("put: a key of our own, again", of_run("put", [7], kind=ROWS, key="k"))
act("put: a key of our own, for another request", of_run("put", [6], kind=ROWS, key="k"))
act("put: more than a scope may hold", of_run("put", "x" * 5_001, kind=ROWS))
act("put: all that a scope may hold", of_run("put", "x" * 5_000, kind=ROWS))
act("put: no room beside its parents", of_run("put", "x" * 5_000, kind=ROWS, parents=[ref("rows1")]))
act("put: a blank kind", of_run("put", [5], kind=" "))
act("put: no JSON", of_run("put", {"a": {1, 2}}, kind=ROWS))
act("put: a label too long", of_run("put", [5], kind=ROWS, label="x" * 201))
act("put_stream: with a foreign parent", of_run("put_stream", [b"ab", b"c"], kind=ROWS, parents=[ref("live")]))
act("put_stream: the bytes of others", of_run("put_stream", [b"[0", b"]"], kind=ROWS))

act(
    "answer: a key that others used",
    of_run("answer", f"Q3 total: 42, by {ref('live')}", cites=[ref("live")], answer_id="ours", key="k"),
)
act(
    "answer: a key of our own, for another",
    of_run("answer", "42", answer_id="ours", key="q"),
    of_run("answer", "43", key="q"),
)

act("list: all", of_run("list"))
act("list: a kind", of_run("list", kind=ROWS))
act("list: a kind that only others hold", of_run("list", kind=RARE))
act("list: page by page", pages)
act("list: a cursor of others", of_run("list", cursor=_cursor(ref("live"), NEIGHBOURS[0].key, None)))
act("list: a cursor that names a foreign ref", of_run("list", cursor=_cursor(ref("live"), MINE.key, None)))
act("list: no cursor at all", of_run("list", cursor="live"))
act("list: no limit at all", of_run("list", limit=0))


# --- what is told -------------------------------------------------------------------------------------------------------------------------


def told(it: World, acts: list[Act]) -> list[str]:
    """Every byte that the caller, or a model behind it, gets to read: of the acts, and of what can be asked afterwards."""
    answers = []
    for does in acts:
        it.stir()
        try:
            answers.append(repr(does(it)))
        except RefledgerError as error:
            answers += [type(error).__name__, str(error), repr(error.args), repr(sorted(vars(error).items()))]
    it.stir()
    answers += [repr(it.run.list()), *(repr(it.run.list(kind=kind, limit=3)) for kind in (ROWS, REPORT, RARE))]
    answers += [repr(it.run.get(ref(name))) for name in ("rows1", "rows2", "report", "keyed", "own")]
    return answers


@pytest.mark.parametrize("name", ACTS)
def test_the_same_is_told_with_neighbours_and_without(
    name: str, settled: dict[bool, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(settled, tmp_path, monkeypatch, crowded=False) as alone:
        expected = told(alone, ACTS[name])
    with world(settled, tmp_path, monkeypatch, crowded=True) as crowded:
        assert told(crowded, ACTS[name]) == expected


def test_what_is_spoken_is_foreign_in_one_ledger_and_unheard_of_in_the_other(
    settled: dict[bool, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the test above compares nothing: the operator's cause tells the two ledgers apart."""
    causes: list[list[Any]] = []
    for crowded in (False, True):
        with world(settled, tmp_path, monkeypatch, crowded) as it:
            for name in THEIRS:
                it.run.head(ref(name))
                dispatch({"data": ref(name)})(it)
            it.run.flush()
            events = [recorded.event for recorded in it.ledger.events(scope=MINE)]
            causes.append([event.cause for event in events if isinstance(event, ArtifactRefused) and event.ref != ref("victim")])
            causes[-1] += [event.arguments[0].cause for event in events if isinstance(event, DispatchRefused)]
    assert causes == [["never_minted"] * 2 * len(THEIRS), ["other_scope"] * 2 * len(THEIRS)]
