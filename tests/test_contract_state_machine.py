"""The whole contract against a model of it in plain Python: whatever a history does, the ledger and the model say the same.

The model knows no SQL, no transaction and no index. It keeps what must hold: who is live, in what order, what a scope holds in all,
who was used least recently, what left and why, and what each payload is.
"""

from __future__ import annotations

import math
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from refledger import Ledger, Scope
from refledger.contract import ArtifactMeta
from refledger_schema.errors import IdempotencyConflict, InvalidArtifact, OverBudget, UnknownParentRef
from refledger_schema.events import ArtifactGone
from refledger_store.retention import Retention
from tests.ledgers import SECOND, Clock, new_log, property_settings

SCOPES = (
    Scope(conversation="c-17", tenant="acme", principal="alice"),
    Scope(conversation="c-17", tenant="acme", principal="bob"),
    Scope(conversation="c-17"),
)
KINDS = ("dataset/rows", "report")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SHOWN = 10
VERIFY_EVERY = 15
REF = re.compile(r"art_[0-9A-Za-z]{22}")
NEVER = "art_" + "0" * 22
UNMINTED = (NEVER, "", "art_", "art_" + "!" * 22, NEVER + "\n", " " + NEVER, "the sales of the third quarter")


# --- the model --------------------------------------------------------------------------------------------------------------------------


@dataclass
class Held:
    """An artifact as the model has it."""

    meta: ArtifactMeta
    data: Any
    scope: int
    minted: int
    """Its place in the order of mints."""
    used: int
    """Its place in the order of mints, reads and resolutions, as far as these are committed."""
    gone: str | None = None


def by_use(each: Held) -> tuple[int, int]:
    """The least recently used first; what one dispatch resolved, in the order of its mints."""
    return each.used, each.minted


@dataclass
class Model:
    """What must hold. Scopes are told by their number."""

    retention: Retention
    held: dict[str, Held] = field(default_factory=dict)
    departures: list[tuple[str, str, str | None]] = field(default_factory=list)
    """(ref, cause, the ref that forced it), in order."""
    receipts: dict[tuple[int, str], tuple[tuple[Any, ...], str]] = field(default_factory=dict)
    waiting: dict[str, list[str]] = field(default_factory=dict)
    """By door, in the order in which they began to wait: the refs whose reads are committed with its next closed act."""
    ticks: int = 0

    def tick(self) -> int:
        self.ticks += 1
        return self.ticks

    def live(self, scope: int, now_us: int, kind: str | None = None) -> list[Held]:
        """Newest first."""
        return [
            each
            for each in reversed(self.held.values())
            if each.scope == scope and self.is_live(each, now_us) and kind in (None, each.meta.kind)
        ]

    def is_live(self, each: Held, now_us: int) -> bool:
        return each.gone is None and (each.meta.expires_us is None or each.meta.expires_us > now_us)

    def find(self, scope: int, ref: str, now_us: int) -> Held | None:
        each = self.held.get(ref)
        return each if each is not None and each.scope == scope and self.is_live(each, now_us) else None

    def leave(self, ref: str, cause: str, forced_by: str | None = None) -> None:
        self.held[ref].gone = cause
        self.departures.append((ref, cause, forced_by))

    def is_expired(self, scope: int, ref: str, now_us: int) -> bool:
        """Whether it is there but for the clock."""
        each = self.held.get(ref)
        return each is not None and each.scope == scope and each.gone is None and not self.is_live(each, now_us)

    def sweep(self, scope: int, now_us: int, found: str | None = None) -> None:
        """What a write does: all that has expired in its scope leaves, first what expired first; last what a read has just found."""
        expired = [each for each in self.held.values() if each.scope == scope and each.gone is None and not self.is_live(each, now_us)]
        for each in sorted(expired, key=lambda each: (each.meta.ref == found, each.meta.expires_us or 0, each.meta.ref)):
            self.leave(each.meta.ref, "expired")

    def observe(self, door: str, *refs: str) -> None:
        """Something was observed at a door, the reads of these refs among it."""
        self.waiting.setdefault(door, []).extend(refs)

    def give_back(self, door: str) -> None:
        """What waited goes on waiting, behind the other doors, since the act that would have taken it along was not kept."""
        if door in self.waiting:
            self.waiting[door] = self.waiting.pop(door)

    def commit(self, *doors: str) -> None:
        """What waits under these doors is committed, in order; a read of what left meanwhile refreshes nothing."""
        for door in doors:
            for ref in self.waiting.pop(door, []):
                self.use(ref)

    def use(self, *refs: str) -> None:
        """One event used these."""
        order = self.tick()
        for ref in refs:
            if self.held[ref].gone is None:
                self.held[ref].used = order

    def room(self, scope: int, size: int, spared: Iterable[str], now_us: int) -> list[tuple[str, str]] | None:
        """Who must leave for a payload, the least recently used first; None when that is not enough."""
        rest = self.live(scope, now_us)
        count, held = len(rest), sum(each.meta.bytes for each in rest)
        most, budget = self.retention.max_count or math.inf, self.retention.max_bytes or math.inf
        if size > budget:
            return None
        victims = []
        candidates = iter(sorted((each for each in rest if each.meta.ref not in set(spared)), key=by_use))
        while count + 1 > most or held + size > budget:
            victim = next(candidates, None)
            if victim is None:
                return None
            victims.append((victim.meta.ref, "max-count" if count + 1 > most else "max-bytes"))
            count, held = count - 1, held - victim.meta.bytes
        return victims


# --- what is drawn ------------------------------------------------------------------------------------------------------------------------

scopes = st.integers(0, len(SCOPES) - 1)
kinds = st.sampled_from(KINDS)
payloads = st.one_of(
    st.text(max_size=6),
    st.binary(max_size=6),
    st.lists(st.integers(-(2**70), 2**70) | st.booleans() | st.none(), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.sampled_from(["x" * 30, b"y" * 30]),
)
picks = st.integers(0, 19)
"""Which ref is spoken: the 1st, 2nd, … newest that is live in the scope; or, from 10 on, of all that were ever minted in any scope."""
spoken = st.integers(0, 23)
"""The same, and now and then what was never minted or is no ref at all."""
spans = st.integers(1, 40).map(lambda seconds: timedelta(seconds=seconds))
retentions = st.sampled_from(
    [
        Retention(),
        Retention(max_count=3),
        Retention(max_bytes=40),
        Retention(ttl=timedelta(seconds=30), max_count=4, max_bytes=60),
    ]
)


class Contract(RuleBasedStateMachine):
    """Puts, reads, resolutions, refusals, departures and walks, in several scopes, while the clock moves and the ledger restarts."""

    walks: Bundle[Walk] = Bundle("walks")

    @initialize(retention=retentions, filled=st.lists(st.tuples(scopes, kinds, st.none() | spans), min_size=2, max_size=8))
    def open(self, retention: Retention, filled: list[tuple[int, str, timedelta | None]]) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.clock = Clock()
        self.model = Model(retention)
        self.path = new_log(self.folder)
        self.steps = 0
        self.start()
        for number, (scope, kind, ttl) in enumerate(filled):
            self.put_several(scope, [number], kind, ttl)

    def start(self) -> None:
        self.ledger = Ledger.open(self.path, durability="process", clock=self.clock, retention=self.model.retention)
        self.runs = [self.ledger.run(scope, run_id=f"run-{number}", keep_open=True) for number, scope in enumerate(SCOPES)]
        for number, run in enumerate(self.runs):
            if not run.joined:
                self.model.sweep(number, self.clock.now_us)

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            try:
                self.check_departures()
                self.all_is_sound()
            finally:
                self.ledger.close()
                shutil.rmtree(self.folder)

    # --- putting ----------------------------------------------------------------------------------------------------------------------

    @rule(
        scope=scopes,
        data=payloads,
        kind=kinds,
        label=st.none() | st.text("ab", min_size=1, max_size=3),
        ttl=st.none() | spans,
        stated=st.none() | st.integers(-2, 40),
        parents=st.lists(st.integers(0, 10), max_size=2),
        key=st.none() | st.sampled_from("kl"),
        door=st.sampled_from(["store", "run"]),
        streamed=st.booleans(),
    )
    def put(
        self,
        scope: int,
        data: Any,
        kind: str,
        label: str | None,
        ttl: timedelta | None,
        stated: int | None,
        parents: list[int],
        key: str | None,
        door: str,
        streamed: bool,
    ) -> None:
        stated = None if ttl is not None else stated
        words: dict[str, Any] = {"kind": kind, "label": label, "ttl": ttl, "key": key}
        words["parents"] = [self.ref(scope, pick) for pick in parents if self.model.held]
        words["expires_at"] = None if stated is None else EPOCH + timedelta(microseconds=self.clock.now_us + stated * SECOND)
        self.put_one(door, scope, data, words, streamed and isinstance(data, bytes))

    def put_one(self, door: str, scope: int, data: Any, words: dict[str, Any], streamed: bool = False) -> None:
        bound, before = self.doors(door, scope), self.totals(scope)
        try:
            if streamed:
                meta: ArtifactMeta = bound.put_stream(iter((data[:2], data[2:])), **words)
            else:
                meta = bound.put(data, **words)
        except (InvalidArtifact, IdempotencyConflict) as error:
            self.refused_put(error, scope, data, words)
            self.model.give_back(self.key_of(door, scope))
            if not isinstance(error, IdempotencyConflict):
                self.model.observe(self.key_of(door, scope))
            assert self.totals(scope)[1:] == before[1:], "a refused put changes nothing"
            return
        self.minted(meta, scope, data, words, self.key_of(door, scope))

    @rule(scope=scopes, sizes=st.lists(st.integers(0, 12), min_size=1, max_size=5), kind=kinds, ttl=st.none() | spans)
    def put_several(self, scope: int, sizes: list[int], kind: str, ttl: timedelta | None) -> None:
        for size in sizes:
            self.put_one(
                "run", scope, b"z" * size, {"kind": kind, "label": None, "ttl": ttl, "expires_at": None, "parents": [], "key": None}
            )

    def minted(self, meta: ArtifactMeta, scope: int, data: Any, words: dict[str, Any], door: str) -> None:
        now_us, model = self.clock.now_us, self.model
        model.commit(door)
        request = (words["kind"], words["label"], type(data).__name__, meta.digest)
        receipt = model.receipts.get((scope, words["key"])) if words["key"] else None
        if receipt is not None:
            assert receipt == (request, meta.ref) and meta == model.held[meta.ref].meta, "the first ticket again"
            return
        assert meta.ref not in model.held and REF.fullmatch(meta.ref)
        assert all(model.find(scope, parent, now_us) for parent in words["parents"])
        victims = model.room(scope, meta.bytes, words["parents"], now_us)
        assert victims is not None
        model.sweep(scope, now_us)
        for ref, cause in victims:
            model.leave(ref, cause, meta.ref)
        expires = self.expiry(words)
        assert (meta.kind, meta.label, meta.minted_us, meta.expires_us) == (words["kind"], words["label"], now_us, expires)
        assert [parent.ref for parent in meta.parents or ()] == words["parents"]
        order = model.tick()
        model.held[meta.ref] = Held(meta, data, scope, minted=order, used=order)
        if words["key"]:
            model.receipts[scope, words["key"]] = (request, meta.ref)

    def refused_put(self, error: Exception, scope: int, data: Any, words: dict[str, Any]) -> None:
        """That there was a reason, and that it was the first."""
        now_us, model = self.clock.now_us, self.model
        receipt = model.receipts.get((scope, words["key"])) if words["key"] else None
        if isinstance(error, IdempotencyConflict):
            assert receipt is not None
        elif isinstance(error, UnknownParentRef):
            assert receipt is None
            assert list(error.unresolved) == [ref for ref in words["parents"] if model.find(scope, ref, now_us) is None] != []
        elif isinstance(error, OverBudget):
            # The reads that wait would have counted; they wait on, since the put was not kept.
            trial = self.with_reads_committed(scope)
            assert trial.room(scope, self.size_of(data), words["parents"], now_us) is None
        else:
            assert isinstance(error, InvalidArtifact) and error.field == "expires_at"
            assert words["expires_at"] is not None and words["expires_at"] <= EPOCH + timedelta(microseconds=now_us)

    def with_reads_committed(self, scope: int) -> Model:
        trial = replace(self.model, held={ref: replace(each) for ref, each in self.model.held.items()}, waiting=dict(self.model.waiting))
        trial.commit(*trial.waiting)
        return trial

    def expiry(self, words: dict[str, Any]) -> int | None:
        now_us, limits = self.clock.now_us, []
        if words["ttl"] is not None:
            limits.append(now_us + words["ttl"] // timedelta(microseconds=1))
        if words["expires_at"] is not None:
            limits.append((words["expires_at"] - EPOCH) // timedelta(microseconds=1))
        if self.model.retention.ttl_us is not None:
            limits.append(now_us + self.model.retention.ttl_us)
        return min(limits, default=None)

    # --- reading ------------------------------------------------------------------------------------------------------------------------

    @rule(scope=scopes, pick=spoken, verb=st.sampled_from(["head", "get", "get_stream"]), door=st.sampled_from(["store", "run"]))
    def read(self, scope: int, pick: int, verb: str, door: str) -> None:
        ref = self.ref(scope, pick)
        found = getattr(self.doors(door, scope), verb)(ref)
        held = self.model.find(scope, ref, self.clock.now_us)
        if held is None:
            assert found is None, "missing, expired, deleted, evicted, foreign and malformed are one absence"
            self.model.observe(self.key_of(door, scope))
            if self.model.is_expired(scope, ref, self.clock.now_us):
                self.model.commit(self.key_of(door, scope))
                self.model.sweep(scope, self.clock.now_us, found=ref)
            return
        if verb == "head":
            assert found == held.meta
        elif verb == "get":
            assert found.meta == held.meta and same(found.data, held.data)
        else:
            assert found.meta == held.meta and len(found.read_all()) == held.meta.bytes and found.verified
        self.model.observe(self.key_of(door, scope), ref)

    @rule(scope=scopes, pick=spoken)
    def present(self, scope: int, pick: int) -> None:
        ref = self.ref(scope, pick)
        presented = self.runs[scope].present(ref, "a table")
        self.model.commit(f"run-{scope}")
        held = self.model.find(scope, ref, self.clock.now_us)
        assert presented.ok is (held is not None)
        if held is None:
            self.check_listed(presented.refusal or "", scope, None, ref)
        else:
            assert presented.snapshot is not None and presented.snapshot["kind"] == held.meta.kind
        self.model.sweep(scope, self.clock.now_us)
        if held is not None:
            self.model.use(ref)

    @rule(scope=scopes, pick=spoken, other=st.none() | picks, kind=kinds)
    def resolve(self, scope: int, pick: int, other: int | None, kind: str) -> None:
        """A dispatch of one argument or two; all resolve, or the model is told what it can pass instead."""
        spoken = {"data": self.ref(scope, pick)} | ({} if other is None else {"more": self.ref(scope, other)})
        with self.runs[scope].call("tool", args=spoken) as call:
            outcome = call.resolve(dict.fromkeys(spoken, kind))
        now_us = self.clock.now_us
        self.model.commit(f"run-{scope}")
        found = {name: self.model.find(scope, value, now_us) for name, value in spoken.items()}
        fits = {name: held for name, held in found.items() if held is not None and held.meta.kind == kind}
        assert outcome.ok is (len(fits) == len(spoken))
        if outcome.ok:
            assert all(same(outcome.args[name], held.data) for name, held in fits.items())
            assert [meta.ref for _, meta in outcome.resolved] == list(spoken.values())
        else:
            assert {refusal.arg_name for refusal in outcome.refusals} == spoken.keys() - fits.keys()
            for refusal in outcome.refusals:
                missing = found[refusal.arg_name] is None
                blank = not spoken[refusal.arg_name].strip()
                assert refusal.reason == ("invalid-input" if blank else "missing-or-expired" if missing else "kind-mismatch")
                self.check_listed(refusal.detail, scope, kind, spoken[refusal.arg_name])
        self.model.sweep(scope, now_us)
        if outcome.ok:
            self.model.use(*spoken.values())
        self.model.observe(f"run-{scope}")

    def check_listed(self, sentence: str, scope: int, kind: str | None, spoken: str) -> None:
        """The newest live refs stand in the sentence, in order, with how many there are in all; and no others."""
        live = [each.meta.ref for each in self.model.live(scope, self.clock.now_us, kind)]
        head, _, tail = sentence.rpartition("newest first")
        listed = REF.findall(tail) if live else []
        assert listed == live[:SHOWN]
        total = re.search(r"([\d,]+) of ([\d,]+):", tail)
        if live:
            assert total is not None and [int(number.replace(",", "")) for number in total.groups()] == [len(listed), len(live)]
        assert set(REF.findall(sentence)) - set(listed) <= set(REF.findall(spoken))

    # --- leaving ------------------------------------------------------------------------------------------------------------------------

    @rule(scope=scopes, pick=spoken, door=st.sampled_from(["store", "run"]))
    def delete(self, scope: int, pick: int, door: str) -> None:
        ref = self.ref(scope, pick)
        self.doors(door, scope).delete(ref)
        self.model.commit(self.key_of(door, scope))
        if self.model.find(scope, ref, self.clock.now_us) is not None:
            self.model.sweep(scope, self.clock.now_us)
            self.model.leave(ref, "deleted")

    @rule(seconds=st.integers(-15, 25))
    def pass_time(self, seconds: int) -> None:
        self.clock.now_us += seconds * SECOND

    @rule(scope=scopes, pick=picks)
    def reach_an_expiry(self, scope: int, pick: int) -> None:
        """The clock stands where an artifact dies, to the microsecond."""
        held = self.model.held.get(self.ref(scope, pick))
        if held is not None and held.meta.expires_us is not None:
            self.clock.now_us = held.meta.expires_us

    # --- listing ------------------------------------------------------------------------------------------------------------------------

    @rule(target=walks, scope=scopes, kind=st.none() | kinds, limit=st.integers(1, 3))
    def begin_walk(self, scope: int, kind: str | None, limit: int) -> Any:
        return self.step(Walk(scope, kind, limit))

    @rule(target=walks, walk=walks)
    def go_on(self, walk: Walk) -> Any:
        """The next page of a walk, whatever happened since: no row again, and none skipped that is live."""
        return self.step(walk)

    def step(self, walk: Walk) -> Any:
        page = self.ledger.store.list(SCOPES[walk.scope], kind=walk.kind, limit=walk.limit, cursor=walk.cursor)
        live = self.model.live(walk.scope, self.clock.now_us, walk.kind)
        rest = [each for each in live if each.minted < walk.below]
        assert page.artifacts == tuple(each.meta for each in rest[: walk.limit])
        assert page.total == (None if walk.kind is None else len(live))
        assert (page.cursor is not None) is (len(rest) > walk.limit)
        return multiple() if page.cursor is None else replace(walk, cursor=page.cursor, below=rest[walk.limit - 1].minted)

    @rule(walk=walks, scope=scopes, kind=st.none() | kinds)
    def a_cursor_opens_no_other_listing(self, walk: Walk, scope: int, kind: str | None) -> None:
        if (scope, kind) != (walk.scope, walk.kind):
            try:
                self.ledger.store.list(SCOPES[scope], kind=kind, cursor=walk.cursor)
            except InvalidArtifact as error:
                assert error.field == "cursor"
            else:
                raise AssertionError("a cursor of another listing was taken")

    # --- the ledger itself --------------------------------------------------------------------------------------------------------------

    @rule()
    def restart(self) -> None:
        self.ledger.close()
        self.model.commit(*self.model.waiting)
        self.start()

    @rule()
    def rebuild(self) -> None:
        self.ledger.rebuild()

    # --- what always holds --------------------------------------------------------------------------------------------------------------

    @invariant()
    def every_scope_holds_what_the_model_says(self) -> None:
        if not hasattr(self, "ledger"):
            return
        for number, scope in enumerate(SCOPES):
            page = self.ledger.store.list(scope, limit=1_000)
            assert page.artifacts == tuple(each.meta for each in self.model.live(number, self.clock.now_us))
            for kind in KINDS:
                live = self.model.live(number, self.clock.now_us, kind)
                page = self.ledger.store.list(scope, kind=kind, limit=1_000)
                assert (page.artifacts, page.total) == (tuple(each.meta for each in live), len(live))
            standing = [each for each in self.model.held.values() if each.scope == number and each.gone is None]
            assert self.totals(number)[1:] == (len(standing), sum(each.meta.bytes for each in standing))
            with self.ledger._store.reading() as reads:
                order = [ref for ref, _ in reads.least_used(scope.key, limit=1_000)]
            assert order == [each.meta.ref for each in sorted(standing, key=by_use)]

    @invariant()
    def nobody_left_unseen(self) -> None:
        if hasattr(self, "ledger"):
            self.steps += 1
            if self.steps % VERIFY_EVERY == 0:
                self.all_is_sound()

    def all_is_sound(self) -> None:
        report = self.ledger.verify()
        assert report.ok, report
        # Verify commits what waits, each door by itself, in the order in which they began to wait.
        self.model.commit(*self.model.waiting)

    def check_departures(self) -> None:
        gone = [each.event for each in self.ledger.events() if isinstance(each.event, ArtifactGone)]
        assert [(event.ref, event.cause, event.forced_by) for event in gone] == self.model.departures

    # --- helpers --------------------------------------------------------------------------------------------------------------------------

    def doors(self, door: str, scope: int) -> Any:
        return self.runs[scope] if door == "run" else Bound(self.ledger, SCOPES[scope])

    def ref(self, scope: int, pick: int) -> str:
        if pick >= 20:
            return UNMINTED[(pick + len(self.model.held)) % len(UNMINTED)]
        live = [each.meta.ref for each in self.model.live(scope, self.clock.now_us)]
        known = live if pick < 10 else list(reversed(self.model.held))
        return known[pick % 10 % len(known)] if known else NEVER

    def key_of(self, door: str, scope: int) -> str:
        return f"run-{scope}" if door == "run" else f"store-{scope}"

    def totals(self, scope: int) -> tuple[int, int, int]:
        with self.ledger._store.reading() as reads:
            totals = reads.totals(SCOPES[scope].key)
        return totals.events, totals.live_count, totals.live_bytes

    def size_of(self, data: Any) -> int:
        from refledger.payloads import encode

        return len(encode(data).data)


@dataclass(frozen=True)
class Walk:
    """A listing as far as it got: what comes next was minted below a place."""

    scope: int
    kind: str | None
    limit: int
    cursor: str | None = None
    below: float = math.inf


class Bound:
    """The bare store's verbs with the scope bound."""

    def __init__(self, ledger: Ledger, scope: Scope) -> None:
        self._store, self._scope = ledger.store, scope

    def __getattr__(self, verb: str) -> Any:
        return lambda *args, **words: getattr(self._store, verb)(self._scope, *args, **words)


def same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and repr(left) == repr(right)


TestContract = Contract.TestCase
TestContract.settings = settings(property_settings(90, 2_000), stateful_step_count=40)
