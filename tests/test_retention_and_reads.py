"""How artifacts live and leave: expiry, room and recency; bytes kept once and freed with the last ref; reads that verify; listings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from refledger import Ledger
from refledger.run import Run
from refledger_schema.errors import ArtifactIntegrity, InvalidArtifact, InvalidConfiguration, OverBudget, TooLarge, UnknownParentRef
from refledger_schema.events import ArtifactGone, ArtifactMinted, ArtifactRead, ArtifactRefused, DispatchRefused, Event
from refledger_schema.refs import refs_in
from refledger_store.append import SWEEP
from refledger_store.payloads import INLINE
from refledger_store.retention import Retention
from tests.ledgers import ELSEWHERE, NOON, SCOPE, SECOND, Clock, ask, change, new_log

UNKNOWN = "art_" + "0" * 22
Opens = Callable[..., Run]
LEDGERS: dict[Run, Ledger] = {}


def ledger_of(run: Run) -> Ledger:
    """The ledger that the run is recorded in."""
    return LEDGERS[run]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return new_log(tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opens(path: Path, clock: Clock) -> Iterator[Opens]:
    """Opens the log under some retention, and a run in it."""

    def open_run(**limits: Any) -> Run:
        ledger = Ledger.open(path, clock=clock, retention=Retention(**limits), durability="process")
        run = ledger.run(SCOPE, run_id="r1")
        LEDGERS[run] = ledger
        return run

    yield open_run
    for ledger in LEDGERS.values():
        ledger.close()
    LEDGERS.clear()


@pytest.fixture
def run(opens: Opens) -> Run:
    """A run under no limits."""
    return opens()


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def put(run: Run, data: Any = "x", **words: Any) -> str:
    return run.put(data, **{"kind": "text", **words}).ref


def events(run: Run, *kinds: type[Event]) -> list[Event]:
    """The events of some kinds, what waits included."""
    ledger_of(run).flush()
    return [event.event for event in ledger_of(run).events() if isinstance(event.event, kinds)]


def gone(run: Run) -> list[ArtifactGone]:
    return [event for event in events(run, ArtifactGone) if isinstance(event, ArtifactGone)]


def refused(run: Run) -> list[tuple[str, str, str]]:
    return [(event.op, event.reason, event.cause) for event in events(run, ArtifactRefused) if isinstance(event, ArtifactRefused)]


def live(run: Run, kind: str | None = None) -> list[str]:
    """The newest first."""
    return [meta.ref for meta in run.list(kind=kind, limit=10_000).artifacts]


def payloads(path: Path) -> list[tuple[str, int]]:
    return [(scope, size) for scope, size in ask(path, "SELECT scope, size FROM payloads ORDER BY scope, size")]


def refuse(run: Run, kind: str = "text") -> DispatchRefused:
    """A dispatch that is refused and offers what is live."""
    with run.call("tool", args={"data": "which one?"}) as call:
        assert not call.resolve({"data": kind}).ok
    event = events(run, DispatchRefused)[-1]
    assert isinstance(event, DispatchRefused)
    return event


# --- expiry ------------------------------------------------------------------------------------------------------------------


def test_an_artifact_is_dead_at_the_instant_of_its_expiry_and_not_before(run: Run, clock: Clock) -> None:
    ref = put(run, ttl=seconds(5))
    clock.now_us = NOON + 5 * SECOND - 1
    assert run.head(ref) is not None and live(run) == [ref] and refuse(run).offers[0].total == 1
    clock.now_us = NOON + 5 * SECOND
    assert run.head(ref) is None and run.get(ref) is None and live(run) == [] and refuse(run).offers[0].total == 0
    with pytest.raises(UnknownParentRef):
        put(run, parents=[ref])


def test_an_expiry_may_be_a_time_or_a_span_and_is_told_on_the_ticket(run: Run) -> None:
    at = datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1)))
    with pytest.raises(InvalidArtifact, match="in the future"):
        put(run, expires_at=at)
    assert run.put("x", kind="text", expires_at=at + seconds(1)).expires_us == NOON + SECOND
    assert run.put("x", kind="text", ttl=seconds(1)).expires_us == NOON + SECOND
    assert run.put("x", kind="text").expires_us is None


@pytest.mark.parametrize(("stated", "expires"), [(None, 10), (5, 5), (10, 10), (60, 10)])
def test_retention_tightens_an_expiry_and_never_extends_it(opens: Opens, stated: int | None, expires: int) -> None:
    run = opens(ttl=seconds(10))
    meta = run.put("x", kind="text", ttl=None if stated is None else seconds(stated))
    assert meta.expires_us == NOON + expires * SECOND


def test_what_a_write_sweeps_left_at_its_stated_time_and_was_noticed_at_the_writes(run: Run, clock: Clock) -> None:
    dying = put(run, ttl=seconds(5))
    clock.advance(seconds(9))
    put(run)
    assert gone(run) == [ArtifactGone(ref=dying, cause="expired", stated_us=NOON + 5 * SECOND, observed_us=NOON + 9 * SECOND)]
    assert [type(event) for event in events(run, ArtifactGone, ArtifactMinted)] == [ArtifactMinted, ArtifactGone, ArtifactMinted]


def test_a_write_sweeps_256_of_its_scope_and_counts_are_exact_before_and_after(run: Run, clock: Clock) -> None:
    for _ in range(SWEEP + 44):
        put(run, ttl=seconds(5))
    elsewhere = ledger_of(run).store.put(ELSEWHERE, "x", kind="text", ttl=seconds(5)).ref
    staying = put(run)
    clock.advance(seconds(5))
    assert run.list(kind="text").total == 1, "nothing is swept yet"
    for left in (44, 0, 0):
        event = refuse(run)
        assert [(offer.ref, event.offers[0].total) for offer in event.offers[0].refs] == [(staying, 1)]
        assert ask_unswept(run) == left
    assert SWEEP == 256 and len(gone(run)) == 300
    assert elsewhere not in {event.ref for event in gone(run)}


def ask_unswept(run: Run) -> int:
    """How many artifacts of the scope have expired and still stand in the counters."""
    with ledger_of(run)._store.reading() as reads:
        return reads.totals(SCOPE.key).live_count - 1


def test_an_artifact_that_expires_does_not_leave_twice(run: Run, clock: Clock) -> None:
    ref = put(run, ttl=seconds(5))
    clock.advance(seconds(5))
    run.delete(ref)
    put(run)
    put(run)
    assert [(event.ref, event.cause) for event in gone(run)] == [(ref, "expired")]


# --- room ---------------------------------------------------------------------------------------------------------------------


def test_a_put_over_the_count_evicts_the_least_recently_used_and_says_what_forced_it(opens: Opens) -> None:
    run = opens(max_count=2)
    old, new = put(run), put(run)
    forced = put(run)
    assert gone(run) == [ArtifactGone(ref=old, cause="max-count", forced_by=forced)]
    assert live(run) == [forced, new]


def test_a_put_over_the_bytes_evicts_as_many_as_it_needs_and_no_more(opens: Opens) -> None:
    run = opens(max_bytes=100)
    refs = [put(run, "x" * 30, label=str(number)) for number in range(3)]
    forced = put(run, "y" * 50)
    assert gone(run) == [ArtifactGone(ref=ref, cause="max-bytes", forced_by=forced) for ref in refs[:2]]
    assert live(run) == [forced, refs[2]]
    assert put(run, "z" * 20) and len(gone(run)) == 2, "100 bytes fit exactly"


USES: dict[str, Callable[[Run, str], object]] = {
    "head": lambda run, ref: run.head(ref),
    "get": lambda run, ref: run.get(ref),
    "resolution": lambda run, ref: run.call("tool").resolve({"data": "text"}, args={"data": ref}),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_the_last_read_or_resolution_counts_as_use(opens: Opens, use: Callable[[Run, str], object]) -> None:
    run = opens(max_count=2)
    used, unused = put(run), put(run)
    use(run, used)
    put(run)
    assert [event.ref for event in gone(run)] == [unused]


def hear_of(run: Run, ref: str) -> None:
    assert not run.call("tool").resolve({"data": "text", "other": "text"}, args={"data": ref, "other": "no"}).ok


def read_ruined(run: Run, ref: str) -> None:
    change(ledger_of(run)._store._engine.path, "UPDATE payloads SET data = x'00' WHERE size = 5")
    with pytest.raises(ArtifactIntegrity):
        run.get(ref)


NO_USES: dict[str, Callable[[Run, str], object]] = {
    "a listing": lambda run, ref: run.list(),
    "a read from another scope": lambda run, ref: ledger_of(run).store.get(ELSEWHERE, ref),
    "a read of damaged bytes": read_ruined,
    "a refused dispatch": hear_of,
    "naming it as a parent": lambda run, ref: put(run, "first", parents=[ref]),
    "a delete from another scope": lambda run, ref: ledger_of(run).store.delete(ELSEWHERE, ref),
}


@pytest.mark.parametrize("touch", NO_USES.values(), ids=NO_USES.keys())
def test_what_does_not_read_it_does_not_refresh_it(opens: Opens, touch: Callable[[Run, str], object]) -> None:
    run = opens(max_count=3)
    oldest = put(run, "first")
    put(run, "other")
    touch(run, oldest)
    while not gone(run):
        put(run, "next")
    assert [event.ref for event in gone(run)] == [oldest]


def test_what_has_expired_makes_room_before_anything_live_leaves(opens: Opens, clock: Clock) -> None:
    run = opens(max_count=2)
    staying, dying = put(run), put(run, ttl=seconds(5))
    clock.advance(seconds(5))
    new = put(run)
    assert [(event.ref, event.cause) for event in gone(run)] == [(dying, "expired")]
    assert live(run) == [new, staying]


def test_a_put_never_evicts_the_parents_it_names(opens: Opens) -> None:
    run = opens(max_count=2)
    parent, other = put(run), put(run)
    child = put(run, parents=[parent])
    assert [event.ref for event in gone(run)] == [other]
    assert live(run) == [child, parent]


def test_a_put_never_evicts_what_its_call_resolved(opens: Opens) -> None:
    run = opens(max_count=2)
    with run.call("tool") as call:
        resolved, other = put(run), put(run)
        assert call.resolve({"data": "text"}, args={"data": resolved}).ok
        run.get(other)
        child = call.put("made of it", kind="text").ref
    assert [event.ref for event in gone(run)] == [other]
    assert live(run) == [child, resolved]


def test_a_put_without_room_beside_its_parents_is_refused_and_evicts_nothing(opens: Opens) -> None:
    run = opens(max_count=2)
    parents = [put(run), put(run)]
    with pytest.raises(OverBudget) as over:
        put(run, parents=parents)
    assert over.value.field == "data"
    assert live(run) == parents[::-1] and gone(run) == []
    assert refused(run) == [("put", "invalid-input", "over_budget")]


def test_a_payload_larger_than_all_room_is_refused_and_evicts_nothing(opens: Opens, path: Path) -> None:
    run = opens(max_bytes=100)
    ref = put(run, "x" * 99)
    with pytest.raises(OverBudget):
        put(run, "y" * 101)
    assert live(run) == [ref] and gone(run) == [] and payloads(path) == [(SCOPE.key, 99)]
    assert put(run, "y" * 100), "what fits exactly is taken"


def test_room_is_counted_per_scope(opens: Opens) -> None:
    run = opens(max_count=1)
    ref = put(run)
    for _ in range(3):
        ledger_of(run).store.put(ELSEWHERE, "x", kind="text")
    assert live(run) == [ref]


@pytest.mark.parametrize(
    "limits", [{"max_count": 0}, {"max_bytes": 2**60}, {"max_count": True}, {"ttl": seconds(0)}, {"ttl": timedelta.max}]
)
def test_a_limit_that_no_log_can_hold_is_refused_when_it_is_stated(limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration) as invalid:
        Retention(**limits)
    assert invalid.value.option == next(iter(limits))


# --- bytes ---------------------------------------------------------------------------------------------------------------------


def test_identical_bytes_are_kept_once_a_scope_and_freed_with_the_last_ref(run: Run, path: Path) -> None:
    store = ledger_of(run).store
    one, same, other = put(run, "same"), put(run, "same", kind="report"), put(run, "other!")
    store.put(ELSEWHERE, "same", kind="text")
    assert payloads(path) == [(SCOPE.key, 4), (SCOPE.key, 6), (ELSEWHERE.key, 4)]
    run.delete(one)
    stored = run.get(same)
    assert stored is not None and stored.data == "same"
    run.delete(same)
    assert payloads(path) == [(SCOPE.key, 6), (ELSEWHERE.key, 4)]
    assert live(run) == [other]


def test_expiry_and_eviction_free_bytes_as_deletion_does(opens: Opens, path: Path, clock: Clock) -> None:
    run = opens(max_count=2)
    put(run, "1", ttl=seconds(5))
    put(run, "22")
    clock.advance(seconds(5))
    put(run, "333")
    assert payloads(path) == [(SCOPE.key, 2), (SCOPE.key, 3)]
    put(run, "4444")
    assert payloads(path) == [(SCOPE.key, 3), (SCOPE.key, 4)]


def test_bytes_that_a_put_brings_back_survive_the_eviction_it_forces(opens: Opens) -> None:
    run = opens(max_count=1)
    put(run, "same")
    stored = run.get(put(run, "same"))
    assert stored is not None and stored.data == "same"


@pytest.mark.parametrize("size", [INLINE, INLINE + 1, 3 * INLINE + 7])
def test_large_payloads_come_back_whole_are_kept_once_and_leave_no_chunk_behind(run: Run, path: Path, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"z" * (size % 256)
    chunks = 0 if size <= INLINE else -(-size // INLINE)
    first = run.put(data, kind="blob")
    again = run.put(data, kind="blob")
    assert (first.bytes, first.digest) == (size, "sha-256:" + hashlib.sha256(data).hexdigest())
    assert payloads(path) == [(SCOPE.key, size)]
    assert ask(path, "SELECT COUNT(*), COALESCE(MAX(LENGTH(data)), 0) FROM payload_chunks") == [(chunks, INLINE if chunks else 0)]
    run.delete(first.ref)
    stored = run.get(again.ref)
    assert stored is not None and stored.data == data
    run.delete(again.ref)
    assert payloads(path) == ask(path, "SELECT upload, chunk FROM payload_chunks") == []


def test_a_large_put_that_is_refused_leaves_no_chunk_behind(run: Run, path: Path) -> None:
    with pytest.raises(UnknownParentRef):
        put(run, b"x" * (INLINE + 1), parents=[UNKNOWN])
    assert ask(path, "SELECT upload, chunk FROM payload_chunks") == []


VALUES: dict[str, Any] = {
    "text": "Grüße, 𝄞",
    "bytes": b"\x00\xff",
    "an empty text": "",
    "empty bytes": b"",
    "rows": [{"region": "north", "total": 1.5}, {"total": 2**70, "region": None}],
    "a number": 0,
    "null": None,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_a_payload_comes_back_in_the_shape_it_was_checked_in(run: Run, value: Any) -> None:
    stored = run.get(put(run, value))
    assert stored is not None and stored.data == value and type(stored.data) is type(value)


DAMAGE = {
    "bytes changed": "UPDATE payloads SET data = CAST('ruined' AS BLOB)",
    "bytes cut off": "UPDATE payloads SET data = SUBSTR(data, 1, 3)",
    "the payload gone": "DELETE FROM payloads",
}
LARGE_DAMAGE = {
    "a chunk changed": "UPDATE payload_chunks SET data = CAST('ruined' AS BLOB) WHERE chunk = 1",
    "a chunk gone": "DELETE FROM payload_chunks WHERE chunk = 0",
    "the payload gone": "DELETE FROM payloads",
}


@pytest.mark.parametrize(
    ("data", "damage"),
    [*(("sound", damage) for damage in DAMAGE.values()), *((b"x" * (INLINE + 1), damage) for damage in LARGE_DAMAGE.values())],
    ids=[*DAMAGE, *(f"large, {name}" for name in LARGE_DAMAGE)],
)
def test_damaged_bytes_are_never_handed_out_and_the_damage_is_recorded(run: Run, path: Path, data: str | bytes, damage: str) -> None:
    meta = run.put(data, kind="text")
    change(path, damage)
    with pytest.raises(ArtifactIntegrity) as broken:
        run.get(meta.ref)
    assert (broken.value.ref, broken.value.expected) == (meta.ref, meta.digest)
    assert (broken.value.actual is None) == (damage == "DELETE FROM payloads")
    assert refused(run) == [("get", "digest-mismatch", "corrupt")]
    assert run.head(meta.ref) == meta, "its ticket is as it was"
    assert (run.list(kind="text").total, live(run, "text"), live(run)) == (0, [], [meta.ref])
    refusal = refuse(run)
    assert (refusal.offers[0].refs, refusal.offers[0].total) == ((), 0)


def test_the_same_bytes_again_mend_the_payload_of_every_ref_that_has_them(run: Run, path: Path) -> None:
    broken = put(run, "sound")
    change(path, DAMAGE["bytes changed"])
    put(run, "sound")
    stored = run.get(broken)
    assert stored is not None and stored.data == "sound"


# --- absence -------------------------------------------------------------------------------------------------------------------


def absent(run: Run, clock: Clock) -> dict[str, tuple[object, str]]:
    """Refs that are not there, each with the operator's cause."""
    deleted, expired, evicted = put(run), put(run, ttl=seconds(5)), put(run)
    run.delete(deleted)
    clock.advance(seconds(5))
    for _ in range(4):
        kept = put(run)
    foreign = ledger_of(run).store.put(ELSEWHERE, "x", kind="text").ref
    return {
        "deleted": (deleted, "deleted"),
        "expired": (expired, "expired"),
        "evicted": (evicted, "evicted"),
        "never minted": (UNKNOWN, "never_minted"),
        "another scope's": (foreign, "other_scope"),
        "quoted": (f'"{kept}"', "malformed"),
        "empty": ("", "malformed"),
        "a number": (7, "malformed"),
        "nothing": (None, "malformed"),
        "a lone surrogate": ("\ud800", "malformed"),
    }


def test_every_absence_is_one_to_the_caller_and_has_its_cause_in_the_log(opens: Opens, clock: Clock) -> None:
    run = opens(max_count=4)
    for ref, cause in absent(run, clock).values():
        spoken: Any = ref
        assert (run.head(spoken), run.get(spoken)) == (None, None)
        assert refused(run)[-2:] == [("head", "missing-or-expired", cause), ("get", "missing-or-expired", cause)]
        run.delete(spoken)


def test_what_was_spoken_instead_of_a_ref_is_recorded_as_length_and_digest(run: Run) -> None:
    run.get("the sales of Q3")
    run.get(UNKNOWN)
    digest = "sha-256:" + hashlib.sha256(b"the sales of Q3").hexdigest()
    spoken = {"op": "get", "reason": "missing-or-expired"}
    assert events(run, ArtifactRefused) == [
        ArtifactRefused(**spoken, cause="malformed", spoken_length=15, spoken_digest=digest),  # type: ignore[arg-type]
        ArtifactRefused(**spoken, cause="never_minted", ref=UNKNOWN),  # type: ignore[arg-type]
    ]


def test_a_read_says_through_which_door_and_whether_the_bytes_were_checked(run: Run) -> None:
    ref = put(run)
    run.head(ref)
    run.get(ref)
    with run.call("tool") as call:
        call.get(ref)
    ledger_of(run).store.head(SCOPE, ref)
    assert events(run, ArtifactRead) == [
        ArtifactRead(ref=ref, via="head", door="run", verified=False),
        ArtifactRead(ref=ref, via="get", door="run", verified=True),
        ArtifactRead(ref=ref, via="get", door="call", verified=True),
        ArtifactRead(ref=ref, via="head", door="store", verified=False),
    ]


def test_deleting_again_and_deleting_what_is_anothers_changes_nothing(run: Run, path: Path) -> None:
    store = ledger_of(run).store
    ref, foreign = put(run), store.put(ELSEWHERE, "x", kind="text").ref
    run.delete(ref, by="alice", why="old")
    before = ask(path, "SELECT * FROM events")
    run.delete(ref)
    run.delete(foreign)
    run.delete(UNKNOWN)
    run.delete("nonsense")
    assert ask(path, "SELECT * FROM events") == before
    assert store.get(ELSEWHERE, foreign) is not None
    assert gone(run) == [ArtifactGone(ref=ref, cause="deleted", by="alice", why="old")]


# --- listings -------------------------------------------------------------------------------------------------------------------


def test_a_listing_is_newest_first_by_position_whatever_the_clock_says(run: Run, clock: Clock) -> None:
    refs = []
    for _ in range(3):
        refs.append(put(run))
        clock.advance(-seconds(60))
    assert live(run) == refs[::-1]


@pytest.mark.parametrize("kind", [None, "report"])
def test_pages_neither_repeat_nor_skip_while_artifacts_come_and_go(run: Run, kind: str | None) -> None:
    refs = [put(run, kind=("text", "report")[number % 2]) for number in range(12)][::-1]
    seen = []
    page = run.list(kind=kind, limit=2)
    while page.artifacts:
        seen += [meta.ref for meta in page.artifacts]
        put(run, kind="report")
        run.delete(page.artifacts[-1].ref)
        ledger_of(run).store.put(ELSEWHERE, "x", kind="report")
        if page.cursor is None:
            break
        page = run.list(kind=kind, limit=2, cursor=page.cursor)
    assert seen == (refs if kind is None else refs[::2])


def test_a_page_ends_without_a_cursor_when_it_holds_the_last(run: Run) -> None:
    refs = [put(run) for _ in range(4)][::-1]
    first = run.list(limit=2)
    second = run.list(limit=2, cursor=first.cursor)
    assert [meta.ref for meta in (*first.artifacts, *second.artifacts)] == refs
    assert second.cursor is None and run.list(limit=4).cursor is None
    assert (run.list().total, run.list(kind="text", limit=1).total) == (None, 4)


def test_a_cursor_opens_only_the_listing_that_gave_it(run: Run) -> None:
    put(run), put(run)
    mine = run.list(limit=1).cursor
    of_kind = run.list(kind="text", limit=1).cursor
    assert mine is not None and of_kind is not None
    ledger_of(run).store.put(ELSEWHERE, "x", kind="text")
    ledger_of(run).store.put(ELSEWHERE, "y", kind="text")
    foreign = ledger_of(run).store.list(ELSEWHERE, limit=1).cursor
    number, _, proof = mine.partition(".")
    for cursor in (foreign, of_kind, f"art_{'0' * 22}.{proof}", number, "", "1.", "nonsense", f"-{mine}", "9" * 5_000, "\ud800.", 7):
        given: Any = cursor
        with pytest.raises(InvalidArtifact) as refusal:
            run.list(cursor=given)
        assert refusal.value.field == "cursor"
    with pytest.raises(InvalidArtifact):
        run.list(kind="report", cursor=of_kind)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "9", 2**63, None])
def test_a_limit_is_an_integer_from_one(run: Run, limit: Any) -> None:
    with pytest.raises(InvalidArtifact) as refusal:
        run.list(limit=limit)
    assert refusal.value.field == "limit"


# --- what a put may say ------------------------------------------------------------------------------------------------------------


def test_a_label_is_text_or_nothing_and_an_empty_one_is_nothing(run: Run) -> None:
    labels = [run.put("x", kind="text", label=label).label for label in (None, "", "Q3 sales", " ", "ä" * 200)]
    assert labels == [None, None, "Q3 sales", " ", "ä" * 200]
    assert [run.head(ref) and run.head(ref).label for ref in live(run)] == labels[::-1]  # type: ignore[union-attr]


def test_a_put_says_all_that_the_ticket_says(run: Run, clock: Clock) -> None:
    parent = put(run)
    with run.call("get_sales", call_id="t1") as call:
        meta = call.put({"a": 1}, kind="dataset/rows", label="Q3", media_type="application/json", parents=[parent])
    assert run.head(meta.ref) == meta
    minted = events(run, ArtifactMinted)[-1]
    assert isinstance(minted, ArtifactMinted)
    assert (minted.ref, minted.bytes, minted.digest, minted.parents, minted.tool) == (
        meta.ref,
        7,
        "sha-256:" + hashlib.sha256(b'{"a":1}').hexdigest(),
        meta.parents,
        "get_sales",
    )


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


INVALID: dict[str, tuple[str, dict[str, Any]]] = {
    "a blank kind": ("kind", {"kind": " \n"}),
    "no kind": ("kind", {"kind": None}),
    "a kind that is no text": ("kind", {"kind": 7}),
    "a kind too long": ("kind", {"kind": "k" * 101}),
    "a kind with NUL": ("kind", {"kind": "a\x00"}),
    "a kind with a lone surrogate": ("kind", {"kind": "\ud800"}),
    "a blank media type": ("media_type", {"media_type": ""}),
    "a media type that is no text": ("media_type", {"media_type": b"text/csv"}),
    "a media type with NUL": ("media_type", {"media_type": "text/\x00"}),
    "a label that is no text": ("label", {"label": 7}),
    "a label too long": ("label", {"label": "x" * 201}),
    "a label with NUL": ("label", {"label": "a\x00b"}),
    "a label with a lone surrogate": ("label", {"label": "\ud800"}),
    "an expiry without a zone": ("expires_at", {"expires_at": datetime(2027, 1, 1)}),
    "an expiry now": ("expires_at", {"expires_at": datetime(2026, 3, 1, 12, tzinfo=UTC)}),
    "an expiry that is a number": ("expires_at", {"expires_at": NOON}),
    "an expiry past what the log can hold": ("expires_at", {"expires_at": datetime(9999, 1, 1, tzinfo=UTC)}),
    "no time to live": ("ttl", {"ttl": timedelta(0)}),
    "a ttl that is a number": ("ttl", {"ttl": 5}),
    "a ttl past what the log can hold": ("ttl", {"ttl": timedelta.max}),
    "both": ("expires_at", {"ttl": timedelta(1), "expires_at": datetime(2027, 1, 1, tzinfo=UTC)}),
    "one parent instead of a list": ("parents", {"parents": UNKNOWN}),
    "a parent that is no ref": ("parents", {"parents": ["nonsense"]}),
    "a parent that is no text": ("parents", {"parents": [7]}),
    "an unknown parent": ("parents", {"parents": [UNKNOWN]}),
    "too many parents": ("parents", {"parents": [UNKNOWN] * 1_001}),
    "data that JSON cannot carry": ("data", {"data": {"at": datetime(2026, 3, 1)}}),
    "data that is not a number": ("data", {"data": [float("nan")]}),
    "data with a lone surrogate": ("data", {"data": "\ud800"}),
}
CAUSES = {"a parent that is no ref", "a parent that is no text", "an unknown parent", "too many parents"}


@pytest.mark.parametrize("name", INVALID)
def test_what_a_put_may_not_say_is_refused_by_its_field_and_recorded(run: Run, path: Path, name: str) -> None:
    field, words = INVALID[name]
    with pytest.raises(InvalidArtifact) as refusal:
        put(run, words.pop("data", "x"), **words)
    assert refusal.value.field == field
    cause = ("unknown-parent", "unknown_parent") if name in CAUSES else ("invalid-input", "refused_input")
    assert refused(run) == [("put", *cause)]
    assert (live(run), payloads(path)) == ([], [])


def test_data_nested_too_deeply_is_too_large_and_recorded(run: Run) -> None:
    with pytest.raises(TooLarge) as refusal:
        put(run, nested(200))
    assert (refusal.value.what, refusal.value.limit) == ("payload depth", 128)
    assert refused(run) == [("put", "invalid-input", "refused_input")]


def test_unknown_parents_are_all_named_in_their_order(run: Run) -> None:
    known = put(run)
    foreign = ledger_of(run).store.put(ELSEWHERE, "x", kind="text").ref
    with pytest.raises(UnknownParentRef) as refusal:
        put(run, parents=[UNKNOWN, known, foreign, UNKNOWN])
    assert refusal.value.unresolved == (UNKNOWN, foreign, UNKNOWN)


def test_parents_declared_stand_verbatim_and_then_what_the_call_resolved_once_each(run: Run) -> None:
    declared, both, resolved = put(run), put(run), put(run)
    with run.call("tool") as call:
        assert call.resolve({"a": "text", "b": "text", "c": "text"}, args={"a": both, "b": resolved, "c": resolved}).ok
        meta = call.put("made", kind="text", parents=[both, declared, both])
    assert [(parent.ref, parent.how) for parent in meta.parents or ()] == [
        (both, "declared"),
        (declared, "declared"),
        (both, "declared"),
        (resolved, "call"),
    ]
    assert run.put("of nothing", kind="text", parents=[]).parents is None


def test_a_refusal_counts_and_offers_across_thousands_of_other_kinds(run: Run) -> None:
    old = put(run, kind="dataset/rows")
    for _ in range(300):
        put(run, kind="text")
    event = refuse(run, "dataset/rows")
    assert ([offer.ref for offer in event.offers[0].refs], event.offers[0].total) == ([old], 1)
    with run.call("tool") as call:
        outcome = call.resolve({"data": "text"}, args={"data": "?"})
    assert not outcome.ok
    assert (len(refs_in(outcome.refusal)), "10 of 300" in outcome.refusal) == (10, True)
