"""A refused dispatch teaches: one event holds all of it, one sentence names what can be passed instead, and neither says too much."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from refledger import (
    ArtifactMeta,
    ArtifactStore,
    Ledger,
    Page,
    Refused,
    Resolved,
    Retention,
    Scope,
    StoredArtifact,
    WantsRefusal,
    resolve_tool_wants,
    wants_needs_store_refusal,
)
from refledger_schema.digests import digest_of, digest_of_text
from refledger_schema.envelope import Draft, Recorded
from refledger_schema.errors import ArtifactIntegrity, InvalidArtifact, InvalidDeclaration, StoreFault, TooLarge
from refledger_schema.events import (
    ArtifactGone,
    ArtifactMinted,
    DispatchRefused,
    Event,
    JudgedArgument,
    OfferedRef,
    Offers,
)
from refledger_schema.refs import mint_ref, refs_in
from refledger_schema.wording import dispatch_sentence
from refledger_store.append import Decision
from refledger_store.payloads import Bytes

MINE, THEIRS = Scope("mine", tenant="t"), Scope("theirs", tenant="t")
ROWS, CHART = "dataset/rows", "chart/spec"
REF = re.compile(r"art_[0-9A-Za-z]{22}")
QUOTED = re.compile(r"'(?:\\.|[^'\\])*'")
SECOND = 1_000_000


class Clock:
    """A clock that stands where it is set, in microseconds."""

    def __init__(self) -> None:
        self.now_us = 1_000 * SECOND

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path, empty_log: Path) -> Path:
    """An empty log of the test's own."""
    return Path(shutil.copy(empty_log, tmp_path / "log.db"))


@pytest.fixture
def ledger(path: Path, clock: Clock) -> Iterator[Ledger]:
    with opened(path, clock) as ledger:
        yield ledger


@contextmanager
def opened(path: Path, clock: Clock, retention: Retention | None = None) -> Iterator[Ledger]:
    with Ledger.open(path, clock=clock, durability="process", retention=retention) as ledger:
        yield ledger


def named(name: str) -> str:
    """The ref that a put of this name mints."""
    return "art_" + name.ljust(22, "x")


def put(ledger: Ledger, name: str, data: Any = "x", kind: str = ROWS, scope: Scope = MINE, **fields: Any) -> ArtifactMeta:
    with patch("refledger.verbs.mint_ref", return_value=named(name)):
        return ledger.store.put(scope, data, kind=kind, **fields)


def put_many(ledger: Ledger, kind: str, count: int, scope: Scope = MINE) -> list[str]:
    """Artifacts of one byte, all in one append, oldest first."""
    digest, refs = digest_of(b"x"), [mint_ref() for _ in range(count)]
    minted = [ArtifactMinted(ref=ref, kind=kind, media_type="text/plain", shape="text", bytes=1, digest=digest) for ref in refs]
    drafts = [Draft(event, scope) for event in minted]
    ledger._store.append(lambda state: Decision(None, drafts, payloads=[Bytes(scope.key, digest, 1, b"x")]))
    return refs


def append(ledger: Ledger, event: Event, scope: Scope = MINE) -> None:
    ledger._store.append(lambda state: Decision(None, [Draft(event, scope)]))


def change(path: Path, statement: str, *parameters: object) -> None:
    """Change the file behind the ledger's back. No connection of the ledger is in a transaction meanwhile."""
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, parameters).rowcount > 0


def damage(path: Path, meta: ArtifactMeta) -> None:
    change(path, "UPDATE payloads SET data = x'00' WHERE digest = ?", meta.digest)


def dispatch(
    ledger: Ledger, wants: dict[str, str], args: dict[str, Any], *, tool: str = "t", schema: Any = None, scope: Scope = MINE
) -> Any:
    """What the recorded door answers."""
    with ledger.run(scope) as run, run.call(tool, args=args) as call:
        return call.resolve(wants, input_schema=schema)


def refused(ledger: Ledger, spoken: Any, kind: str = ROWS, scope: Scope = MINE) -> Refused:
    """What the recorded door answers to one bad argument."""
    outcome = dispatch(ledger, {"dataset": kind}, {"dataset": spoken}, scope=scope)
    assert isinstance(outcome, Refused)
    return outcome


def refusals(ledger: Ledger) -> list[Recorded]:
    return [recorded for recorded in ledger.events() if recorded.event.type == "dispatch.refused"]


def last_refusal(ledger: Ledger) -> DispatchRefused:
    event = refusals(ledger)[-1].event
    assert isinstance(event, DispatchRefused)
    return event


# --- one refusal teaches the whole correction -------------------------------------------------------------------------------------------


def test_two_bad_arguments_and_a_good_one_are_one_event_and_one_sentence_and_the_tool_does_not_run(ledger: Ledger) -> None:
    good = put(ledger, "good", [1, 2, 3], label="Q3 rows")
    chart = put(ledger, "chart", {"mark": "bar"}, kind=CHART)
    wants, ran = {"left": ROWS, "right": ROWS, "look": CHART, "spare": ROWS}, []
    args = {"left": good.ref, "right": chart.ref, "look": None}
    with ledger.run(MINE) as run, run.call("compare", args=args) as call:
        outcome = call.resolve(wants)
        if outcome.ok:
            ran.append(outcome.args)
        else:
            call.result(outcome.refusal)
    right = (
        f"Argument 'right' takes a ref of kind 'dataset/rows', and '{chart.ref}' is of kind 'chart/spec'. "
        f"Live refs of kind 'dataset/rows', newest first, 1 of 1: {good.ref} ('Q3 rows', 7 bytes)."
    )
    look = (
        "Argument 'look' takes a ref of kind 'chart/spec' as text, not null. "
        f"Live refs of kind 'chart/spec', newest first, 1 of 1: {chart.ref} (14 bytes)."
    )
    sentence = f"refused: the tool 'compare' did not run. {right} {look}"
    assert (ran, outcome) == (
        [],
        Refused(
            (
                WantsRefusal("right", ROWS, "kind-mismatch", chart.ref, right),
                WantsRefusal("look", CHART, "invalid-input", None, look),
            ),
            sentence,
        ),
    )
    (recorded,) = refusals(ledger)
    assert (recorded.scope, recorded.run_id, recorded.call_id, recorded.dispatch) == (MINE, run.run_id, call.call_id, 1)
    assert recorded.event == DispatchRefused(
        tool="compare",
        wording=1,
        arguments=(
            JudgedArgument(
                argument="left",
                wanted=ROWS,
                outcome="resolved",
                ref=good.ref,
                digest=good.digest,
                bytes=7,
                spoken_as="text",
                spoken_length=26,
            ),
            JudgedArgument(
                argument="right",
                wanted=ROWS,
                outcome="refused",
                reason="kind-mismatch",
                cause="wrong_kind",
                ref=chart.ref,
                digest=chart.digest,
                bytes=14,
                actual=CHART,
                spoken_as="text",
                spoken_length=26,
            ),
            JudgedArgument(
                argument="look",
                wanted=CHART,
                outcome="refused",
                reason="invalid-input",
                cause="not_a_string",
                spoken_as="null",
                spoken_length=4,
            ),
            JudgedArgument(argument="spare", wanted=ROWS, outcome="absent", spoken_as="absent"),
        ),
        offers=(
            Offers(kind=ROWS, refs=(OfferedRef(ref=good.ref, bytes=7),), total=1),
            Offers(kind=CHART, refs=(OfferedRef(ref=chart.ref, bytes=14),), total=1),
        ),
        sentence=digest_of_text(sentence),
        spoken={"left": good.ref, "right": chart.ref},
        labels={good.ref: "Q3 rows"},
    )
    ends = [recorded.event.model_dump()["status"] for recorded in ledger.events() if recorded.event.type == "call.ended"]
    assert ends == ["refused"]


def test_a_required_argument_that_is_left_out_is_refused_by_name(ledger: Ledger) -> None:
    outcome = dispatch(ledger, {"dataset": ROWS, "spare": ROWS}, {}, schema={"required": ["dataset"]})
    assert outcome.refusal == (
        "refused: the tool 't' did not run. Argument 'dataset' is required and was not given; it takes a ref of kind 'dataset/rows'. "
        "No ref of kind 'dataset/rows' is live in this conversation: produce one first."
    )
    assert [(judged.cause, judged.spoken_as) for judged in last_refusal(ledger).arguments] == [
        ("required_missing", "absent"),
        (None, "absent"),
    ]


def test_a_refused_kind_does_not_count_as_a_use(ledger: Ledger) -> None:
    chart = put(ledger, "chart", kind=CHART)
    before = {artifact.ref: artifact.used for artifact in ledger.artifacts(MINE)}
    refused(ledger, chart.ref)
    assert {artifact.ref: artifact.used for artifact in ledger.artifacts(MINE)} == before


def test_awkward_names_of_tools_and_arguments_are_quoted(ledger: Ledger) -> None:
    outcome = dispatch(ledger, {"it's": ROWS, "with space": CHART}, {"it's": 1, "with space": 2}, tool="t'1 \n")
    none = "No ref of kind '{}' is live in this conversation: produce one first."
    assert outcome.refusal == " ".join(
        (
            r"refused: the tool 't\'1  ' did not run.",
            r"Argument 'it\'s' takes a ref of kind 'dataset/rows' as text, not a number. " + none.format(ROWS),
            "Argument 'with space' takes a ref of kind 'chart/spec' as text, not a number. " + none.format(CHART),
        )
    )


@pytest.mark.parametrize(
    ("wants", "error"),
    [
        ({"dataset": ""}, InvalidDeclaration),
        ({"dataset": " \ufeff"}, InvalidDeclaration),
        ({"dataset": "a\x00"}, InvalidDeclaration),
        ({"\ud800": ROWS}, InvalidDeclaration),
        ({"": ROWS}, InvalidDeclaration),
        ({"dataset": "k" * 101}, TooLarge),
        ({f"a{i}": ROWS for i in range(33)}, TooLarge),
    ],
)
def test_a_declaration_that_no_event_could_hold_is_refused_at_both_doors_and_nothing_is_recorded(
    ledger: Ledger, wants: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        resolve_tool_wants(ledger.store, MINE, "t", wants, dict.fromkeys(wants, 1))
    with pytest.raises(error):
        dispatch(ledger, wants, dict.fromkeys(wants, 1))
    assert refusals(ledger) == []


# --- what is offered, and how many there are ------------------------------------------------------------------------------------------------


def test_one_old_live_ref_behind_5000_newer_artifacts_of_other_kinds_is_offered_and_counted(ledger: Ledger) -> None:
    old = put(ledger, "old", label="the only one")
    for kind in ("a", "b", "c", "d", "e"):
        put_many(ledger, kind, 1_000)
    listing = f"Live refs of kind 'dataset/rows', newest first, 1 of 1: {old.ref} ('the only one', 1 byte)."
    bare = resolve_tool_wants(ledger.store, MINE, "t", {"dataset": ROWS}, {"dataset": 5})
    recorded = refused(ledger, 5)
    assert (bare, recorded.refusal.endswith(f" {listing}")) == (recorded, True)
    assert last_refusal(ledger).offers == (Offers(kind=ROWS, refs=(OfferedRef(ref=old.ref, bytes=1),), total=1),)


def test_ten_of_37_are_offered_newest_first_and_the_sentence_says_of_how_many(ledger: Ledger) -> None:
    refs = put_many(ledger, ROWS, 37)
    put_many(ledger, CHART, 200)
    put_many(ledger, ROWS, 5, THEIRS)
    newest = refs[:-11:-1]
    listing = ", ".join(f"{ref} (1 byte)" for ref in newest)
    bare = resolve_tool_wants(ledger.store, MINE, "t", {"dataset": ROWS}, {"dataset": 5})
    recorded = refused(ledger, 5)
    assert bare == recorded
    assert recorded.refusal.partition("not a number. ")[2] == f"Live refs of kind 'dataset/rows', newest first, 10 of 37: {listing}."
    assert last_refusal(ledger).offers == (Offers(kind=ROWS, refs=tuple(OfferedRef(ref=ref, bytes=1) for ref in newest), total=37),)


def test_the_expired_but_unswept_are_neither_offered_nor_counted(ledger: Ledger, clock: Clock) -> None:
    for i in range(300):  # more than one write sweeps
        put(ledger, f"old{i}", ttl=timedelta(seconds=1))
    live = put(ledger, "live")
    clock.now_us += SECOND
    offers: list[Offers] = []
    for _ in range(3):
        refused(ledger, 5)
        offers += last_refusal(ledger).offers
    assert offers == [Offers(kind=ROWS, refs=(OfferedRef(ref=live.ref, bytes=1),), total=1)] * 3


def test_large_sizes_and_counts_are_grouped(ledger: Ledger) -> None:
    put_many(ledger, ROWS, 1_233)
    big = put(ledger, "big", "x" * 1_234_567)
    assert f"newest first, 10 of 1,234: {big.ref} (1,234,567 bytes), " in refused(ledger, 5).refusal


class OtherStore:
    """A third party's store: it lists a few artifacts a page and does not count them."""

    def __init__(self, count: int, fault: Exception | None = None) -> None:
        self._metas = [
            ArtifactMeta(named(f"n{i}n"), ROWS, "text/plain", "text", 1, digest_of(b"x"), minted_us=i) for i in reversed(range(count))
        ]
        self._fault = fault

    def put(self, scope: Scope, data: Any, **fields: Any) -> ArtifactMeta:
        raise NotImplementedError

    def delete(self, scope: Scope, ref: str) -> None:
        raise NotImplementedError

    def head(self, scope: Scope, ref: str) -> ArtifactMeta | None:
        return next((meta for meta in self._metas if meta.ref == ref), None)

    def get(self, scope: Scope, ref: str) -> StoredArtifact | None:
        if ref == named("n0n"):
            raise ArtifactIntegrity(ref, digest_of(b"x"), None)
        meta = self.head(scope, ref)
        return None if meta is None else StoredArtifact(meta, "x")

    def list(self, scope: Scope, *, kind: str | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        if self._fault is not None:
            raise self._fault
        start, end = int(cursor or 0), int(cursor or 0) + min(limit, 20)
        return Page(tuple(self._metas[start:end]), str(end) if end < len(self._metas) else None)


def test_a_store_that_does_not_count_is_counted(ledger: Ledger) -> None:
    store = OtherStore(37)
    assert isinstance(store, ArtifactStore)
    outcome = resolve_tool_wants(store, MINE, "t", {"dataset": ROWS}, {"dataset": 5})
    assert isinstance(outcome, Refused)
    assert (len(REF.findall(outcome.refusal)), "10 of 37" in outcome.refusal) == (10, True)


def test_over_another_store_too_data_is_delivered_and_damage_is_refused_and_not_offered() -> None:
    good = resolve_tool_wants(OtherStore(3), MINE, "t", {"dataset": ROWS}, {"dataset": named("n1n")})
    bad = resolve_tool_wants(OtherStore(3), MINE, "t", {"dataset": ROWS}, {"dataset": named("n0n")})
    assert isinstance(good, Resolved) and good.args == {"dataset": "x"}
    assert isinstance(bad, Refused) and REF.findall(bad.refusal) == [named("n0n"), named("n2n"), named("n1n")]
    assert ("2 of 2" in bad.refusal, bad.refusals[0].reason) == (True, "digest-mismatch")


def test_a_fault_of_the_store_is_raised_and_never_made_a_refusal() -> None:
    with pytest.raises(StoreFault, match="disk on fire"):
        resolve_tool_wants(OtherStore(3, StoreFault("disk on fire")), MINE, "t", {"dataset": ROWS}, {"dataset": 5})


# --- what a foreign scope holds is nobody else's business -----------------------------------------------------------------------------------


SPOKEN_OF_THEIRS: list[Any] = [named("spoken"), f"'{named('spoken')}'", f" {named('spoken')} ", named("never"), named("shared"), 5, ""]


@pytest.mark.parametrize("spoken", SPOKEN_OF_THEIRS)
def test_a_refusal_is_the_same_to_the_byte_whatever_a_foreign_scope_holds(
    tmp_path: Path, empty_log: Path, clock: Clock, spoken: Any
) -> None:
    def world(name: str, *, foreign: bool) -> tuple[Any, ...]:
        path = Path(shutil.copy(empty_log, tmp_path / name))
        with opened(path, clock) as ledger:
            put(ledger, "chart", {"mark": "bar"}, kind=CHART)
            put(ledger, "first", "of both", label="first")
            if foreign:
                put_many(ledger, ROWS, 20, THEIRS)
                put(ledger, "spoken", "secret", label="secret", scope=THEIRS)
                damage(path, put(ledger, "shared", "damaged", scope=THEIRS))
                put(ledger, "copy", "of both", label="secret", scope=THEIRS)
                ledger.store.delete(THEIRS, named("copy"))
                assert isinstance(dispatch(ledger, {"dataset": ROWS}, {"dataset": named("shared")}, scope=THEIRS), Refused)
            put(ledger, "second", "yy")
            wants, args = {"dataset": ROWS, "chart": CHART}, {"dataset": spoken, "chart": named("first")}
            read_of_bare = resolve_tool_wants(ledger.store, MINE, "t", wants, args)
            read_of_call = dispatch(ledger, wants, args)
            event = last_refusal(ledger)
            judged = [argument.model_copy(update={"cause": None}) for argument in event.arguments]
            return read_of_bare, read_of_call, judged, event.offers, event.sentence, event.labels, event.spoken

    with_them, without = world("with", foreign=True), world("without", foreign=False)
    assert with_them == without
    assert repr(with_them).encode() == repr(without).encode()
    assert "secret" not in repr(with_them)


def test_the_log_alone_knows_that_a_ref_is_foreign(ledger: Ledger) -> None:
    put(ledger, "theirs", scope=THEIRS)
    refused(ledger, named("theirs"))
    (judged,) = last_refusal(ledger).arguments
    assert judged == JudgedArgument(
        argument="dataset",
        wanted=ROWS,
        outcome="refused",
        reason="missing-or-expired",
        cause="other_scope",
        spoken_as="text",
        spoken_length=26,
    )


# --- one absence for the model, the true cause for the log -----------------------------------------------------------------------------------


ABSENT = named("absent")


def _never(ledger: Ledger, clock: Clock) -> None:
    pass


def _expired_unswept(ledger: Ledger, clock: Clock) -> None:
    put(ledger, "absent", ttl=timedelta(seconds=1))
    clock.now_us += SECOND


def _expired_swept(ledger: Ledger, clock: Clock) -> None:
    _expired_unswept(ledger, clock)
    put(ledger, "sweeper", kind="other")


def _deleted(ledger: Ledger, clock: Clock) -> None:
    put(ledger, "absent")
    ledger.store.delete(MINE, ABSENT)


def _evicted(ledger: Ledger, clock: Clock) -> None:
    put(ledger, "absent", "x" * 90)
    put(ledger, "evictor", "y" * 90, kind="other")


def _erased(ledger: Ledger, clock: Clock) -> None:
    put(ledger, "absent")
    append(ledger, ArtifactGone(ref=ABSENT, cause="erased"))


def _foreign(ledger: Ledger, clock: Clock) -> None:
    put(ledger, "absent", label="secret", scope=THEIRS)


def _of_another_kind_and_gone(ledger: Ledger, clock: Clock) -> None:
    put(ledger, "absent", kind=CHART)
    ledger.store.delete(MINE, ABSENT)


def _damaged_and_gone(ledger: Ledger, clock: Clock) -> None:
    put(ledger, "absent", "soon damaged")
    append(ledger, ArtifactGone(ref=ABSENT, cause="deleted"))


@pytest.mark.parametrize(
    ("happened", "cause", "gone_by"),
    [
        (_never, "never_minted", None),
        (_expired_unswept, "expired", None),
        (_expired_swept, "expired", None),
        (_deleted, "deleted", None),
        (_evicted, "evicted", named("evictor")),
        (_erased, "erased", None),
        (_foreign, "other_scope", None),
        (_of_another_kind_and_gone, "deleted", None),
        (_damaged_and_gone, "deleted", None),
    ],
)
def test_every_absence_reads_the_same_to_the_byte_and_its_cause_is_in_the_event(
    path: Path, clock: Clock, happened: Callable[[Ledger, Clock], None], cause: str, gone_by: str | None
) -> None:
    with opened(path, clock, Retention(max_bytes=100)) as ledger:
        happened(ledger, clock)
        live = put(ledger, "live")
        sentence = (
            f"refused: the tool 't' did not run. Argument 'dataset': '{ABSENT}' is missing or expired. "
            f"Live refs of kind 'dataset/rows', newest first, 1 of 1: {live.ref} (1 byte)."
        )
        detail = sentence.partition(" did not run. ")[2]
        told = Refused((WantsRefusal("dataset", ROWS, "missing-or-expired", ABSENT, detail),), sentence)
        assert resolve_tool_wants(ledger.store, MINE, "t", {"dataset": ROWS}, {"dataset": ABSENT}) == told
        assert refused(ledger, ABSENT) == told
        (judged,) = last_refusal(ledger).arguments
    assert judged == JudgedArgument(
        argument="dataset",
        wanted=ROWS,
        outcome="refused",
        reason="missing-or-expired",
        cause=cause,  # type: ignore[arg-type]
        gone_by=gone_by,
        spoken_as="text",
        spoken_length=26,
    )


def test_a_malformed_ref_reads_as_any_other_absence(ledger: Ledger) -> None:
    well_formed, malformed = refused(ledger, ABSENT).refusal, refused(ledger, ABSENT + "x").refusal
    assert malformed == well_formed.replace(ABSENT, ABSENT + "x")
    assert [refusal.event.arguments[0].cause for refusal in refusals(ledger) if isinstance(refusal.event, DispatchRefused)] == [
        "never_minted",
        "malformed",
    ]


# --- near misses -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "around",
    [
        " {} ",
        "\n{}",
        "{}\n",
        "{}\ufeff",
        "\u00a0{}",
        "'{}'",
        '"{}"',
        "`{}`",
        "“{}”",
        "«{}»",
        "<{}>",
        "({})",
        "[{}]",
        "{{{}}}",
        "\" '{}' \"",
        "```{}```",
    ],
)
def test_what_a_trim_or_unquoting_would_make_a_live_ref_is_said_to_be_that_ref(ledger: Ledger, around: str) -> None:
    live = put(ledger, "live")
    spoken = around.format(live.ref)
    outcome = refused(ledger, spoken)
    hint = f" is missing or expired. Without what stands around it, it is the live ref {live.ref}: pass just that. Live refs of kind "
    assert (hint in outcome.refusal, outcome.refusals[0].ref) == (True, spoken)
    assert resolve_tool_wants(ledger.store, MINE, "t", {"dataset": ROWS}, {"dataset": spoken}) == outcome
    (judged,) = last_refusal(ledger).arguments
    assert (judged.cause, judged.reason, judged.meant, judged.ref) == ("near_miss", "missing-or-expired", live.ref, None)


def test_white_space_around_a_ref_is_shown_so_that_the_slip_is_seen(ledger: Ledger) -> None:
    live = put(ledger, "live")
    assert f"Argument 'dataset': '  {live.ref} ' is missing" in refused(ledger, f"\n\t{live.ref}\u00a0").refusal


@pytest.mark.parametrize("spoken", ["'{}x'", "ref: {}", "{},{}", "https://x/{}", '{{"ref": "{}"}}', "{}.", "*{}*", "_{}_"])
def test_nothing_past_trimming_and_unquoting_is_guessed(ledger: Ledger, spoken: str) -> None:
    live = put(ledger, "live")
    refused(ledger, spoken.format(live.ref, live.ref))
    (judged,) = last_refusal(ledger).arguments
    assert (judged.cause, judged.meant) == ("malformed", None)


def test_a_ref_in_another_case_is_another_ref(ledger: Ledger) -> None:
    put(ledger, "live")
    refused(ledger, "art_" + named("live")[4:].upper())
    assert last_refusal(ledger).arguments[0].cause == "never_minted"


@pytest.mark.parametrize("gone", [_deleted, _expired_unswept, _foreign, _never])
def test_there_is_no_near_miss_of_what_is_not_live_here(ledger: Ledger, clock: Clock, gone: Callable[[Ledger, Clock], None]) -> None:
    gone(ledger, clock)
    refused(ledger, f"'{ABSENT}'")
    (judged,) = last_refusal(ledger).arguments
    assert (judged.cause, judged.meant) == ("malformed", None)


# --- what was spoken instead of a ref ---------------------------------------------------------------------------------------------------------


BLANK = [char for char in map(chr, range(0x110000)) if char.isspace()] + ["\ufeff"]


@pytest.mark.parametrize("spoken", ["", *BLANK, "".join(BLANK)], ids=ascii)
def test_a_blank_text_is_refused_as_an_empty_one(ledger: Ledger, spoken: str) -> None:
    outcome = refused(ledger, spoken)
    assert outcome.refusals[0].detail.startswith("Argument 'dataset' takes a ref of kind 'dataset/rows' as text, not an empty text. ")
    (judged,) = last_refusal(ledger).arguments
    assert judged == JudgedArgument(
        argument="dataset",
        wanted=ROWS,
        outcome="refused",
        reason="invalid-input",
        cause="blank",
        spoken_as="empty-text",
        spoken_length=len(spoken),
    )


@pytest.mark.parametrize(
    ("spoken", "spoken_as", "called", "length"),
    [
        (None, "null", "null", 4),
        (True, "boolean", "a boolean", 4),
        (False, "boolean", "a boolean", 5),
        (0, "number", "a number", 1),
        (10**30, "number", "a number", 31),
        (1.5, "number", "a number", 3),
        (float("nan"), "number", "a number", None),
        ([], "array", "an array", 2),
        (("a",), "array", "an array", 5),
        ({}, "object", "an object", 2),
        (b"\x00", "bytes", "bytes", None),
        (bytearray(), "bytes", "bytes", None),
        (object(), "other", "a value that JSON does not have", None),
        ({1, 2}, "other", "a value that JSON does not have", None),
    ],
)
def test_a_value_that_is_no_text_is_named_by_its_type(ledger: Ledger, spoken: Any, spoken_as: Any, called: str, length: int | None) -> None:
    outcome = refused(ledger, spoken)
    assert outcome == Refused(
        (
            WantsRefusal(
                "dataset",
                ROWS,
                "invalid-input",
                None,
                detail := f"Argument 'dataset' takes a ref of kind 'dataset/rows' as text, not {called}. "
                "No ref of kind 'dataset/rows' is live in this conversation: produce one first.",
            ),
        ),
        f"refused: the tool 't' did not run. {detail}",
    )
    (judged,) = last_refusal(ledger).arguments
    assert judged == JudgedArgument(
        argument="dataset",
        wanted=ROWS,
        outcome="refused",
        reason="invalid-input",
        cause="not_a_string",
        spoken_as=spoken_as,
        spoken_length=length,
    )


def test_null_is_present_even_where_the_argument_is_optional(ledger: Ledger) -> None:
    outcome = dispatch(ledger, {"dataset": ROWS}, {"dataset": None}, schema={"properties": {"dataset": {"type": "string"}}})
    assert (outcome.ok, outcome.refusals[0].reason) == (False, "invalid-input")


TABLE = [{"row": i, "value": "needle-4711"} for i in range(60_000)]


@pytest.mark.parametrize("spoken", [json.dumps(TABLE), TABLE, {"rows": TABLE}], ids=["text", "list", "dict"])
def test_a_dataset_spoken_in_place_of_a_ref_is_recorded_as_length_and_digest_and_never_echoed(
    ledger: Ledger, path: Path, spoken: Any
) -> None:
    text = spoken if isinstance(spoken, str) else json.dumps(spoken, separators=(",", ":"))
    assert len(text) > 2_000_000
    outcome = refused(ledger, spoken)
    bare = resolve_tool_wants(ledger.store, MINE, "t", {"dataset": ROWS}, {"dataset": spoken})
    assert (bare, "needle" in repr(outcome), len(outcome.refusal) < 300) == (outcome, False, True)
    event = last_refusal(ledger)
    (judged,) = event.arguments
    assert (judged.spoken_length, event.spoken, event.spoken_digests) == (
        len(text),
        None,
        {"dataset": f"sha-256:{sha256(text.encode()).hexdigest()}"},
    )
    ledger.flush()
    with closing(sqlite3.connect(path)) as connection:
        rows = [str(row) for row in connection.execute("SELECT body, texts FROM events")]
    assert (any("needle" in row for row in rows), max(map(len, rows)) < 2_000) == (False, True)


def test_a_value_nested_deeper_than_any_payload_is_a_refusal_too(ledger: Ledger) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert refused(ledger, deep).refusals[0].reason == "invalid-input"


@pytest.mark.parametrize(
    ("spoken", "told"),
    [
        ("\u200b", "what was passed (1 character)"),
        ("\u2060\x07\u200b", "what was passed (3 characters)"),
        ("a\x00", "what was passed (2 characters)"),
        ("a\ud800", "what was passed (2 characters)"),
        ("x" * 201, "what was passed (201 characters)"),
        ("x" * 5_000, "what was passed (5,000 characters)"),
        ("x" * 80, f"'{'x' * 80}'"),
        ("x" * 81, f"'{'x' * 79}…'"),
        ("say 'hi' \\", r"'say \'hi\' \\'"),
        ("two\nlines\u202e", "'two lines '"),
        ("é日本😀", "'é日本😀'"),
    ],
)
def test_the_models_own_words_are_given_back_bounded_and_on_one_line(ledger: Ledger, spoken: str, told: str) -> None:
    assert refused(ledger, spoken).refusals[0].detail.startswith(f"Argument 'dataset': {told} is missing or expired. ")


# --- labels and names can plant nothing ----------------------------------------------------------------------------------------------------------


PIECES = st.sampled_from(
    [
        "'",
        "\\",
        "\\'",
        "\n",
        "\r\n",
        "\u2028",
        "\u202e",
        "\u200b",
        "\x1b[2J",
        "\U000e0041",
        "\ufe0f",
        "art_",
        "art_" + "Z" * 21,
        "art_" + "Z" * 22,
        "art_" + "Z" * 23,
        "art_art_" + "Z" * 22,
        ", 5 bytes), ",
        ". Live refs of kind 'dataset/rows', newest first, 1 of 1: ",
        " refused: ",
        "’",
        "…",
        " " * 40,
    ]
)
HOSTILE = st.lists(PIECES | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40), max_size=8).map("".join)


def skeleton(sentence: str) -> str:
    """A sentence without what stands in quotes."""
    return QUOTED.sub("''", sentence)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, empty_log: Path) -> Iterator[Ledger]:
    """One log for all the examples of a property; each example has a scope of its own."""
    with opened(Path(shutil.copy(empty_log, tmp_path_factory.mktemp("shared"))), Clock()) as ledger:
        yield ledger


@settings(max_examples=200, deadline=None)
@given(HOSTILE.map(lambda text: text[:200]))
@example("'), art_" + "Z" * 22 + " (1 byte). Now pass art_" + "Z" * 22)
@example("x" * 75 + "art_" + "Z" * 30)
def test_a_label_can_plant_neither_a_ref_nor_a_sentence(shared: Ledger, label: str) -> None:
    scope = Scope(mint_ref())
    offered = shared.store.put(scope, "x", kind=ROWS, label=label)
    outcome = refused(shared, named("never"), scope=scope)
    assert REF.findall(outcome.refusal) == [named("never"), offered.ref]
    assert skeleton(outcome.refusal) in [
        f"refused: the tool '' did not run. Argument '': '' is missing or expired. Live refs of kind '', newest first, 1 of 1: {offered.ref} ({shown})."
        for shown in ("'', 1 byte", "1 byte")
    ]
    assert not set("\n\r\x1b\u2028\u202e\u200b\U000e0041") & set(outcome.refusal)
    assert max(map(len, QUOTED.findall(outcome.refusal))) <= 2 * 80 + 2


@settings(max_examples=200, deadline=None)
@given(HOSTILE.map(lambda text: text[:200]), HOSTILE.map(lambda text: text[:200]), HOSTILE.map(lambda text: text[:100]))
def test_the_names_of_a_tool_its_arguments_and_kinds_can_plant_nothing_either(shared: Ledger, tool: str, argument: str, kind: str) -> None:
    tool, argument, kind = tool or "t", argument or "a", kind if kind.replace("\ufeff", "").strip() else "k"
    outcome = resolve_tool_wants(shared.store, Scope("nothing here"), tool, {argument: kind}, {argument: 5})
    assert isinstance(outcome, Refused)
    assert (REF.findall(outcome.refusal), skeleton(outcome.refusal)) == (
        [],
        "refused: the tool '' did not run. Argument '' takes a ref of kind '' as text, not a number. "
        "No ref of kind '' is live in this conversation: produce one first.",
    )


@settings(max_examples=200, deadline=None)
@given(HOSTILE | st.text(st.characters(codec="utf-8")))
@example("y" * 52 + " art_" + "Z" * 30)  # cut after the 22nd Z, it would be a ref
@example("'" + named("offered") + "'")
def test_a_refusal_holds_no_other_refs_than_those_spoken_offered_and_meant(shared: Ledger, spoken: str) -> None:
    scope = Scope(mint_ref())
    offered = shared.store.put(scope, "x", kind=ROWS)
    outcome = resolve_tool_wants(shared.store, scope, "t", {"dataset": ROWS}, {"dataset": spoken})
    assert isinstance(outcome, Refused)
    assert set(refs_in(outcome.refusal)) <= {*refs_in(spoken), offered.ref}
    assert set(REF.findall(outcome.refusal)) <= {*REF.findall(spoken), offered.ref}
    assert skeleton(outcome.refusal).count("refused: ") == 1
    assert not {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} & set(map(unicodedata.category, outcome.refusal))


def test_a_label_is_shown_as_it_is_as_far_as_it_is_harmless(ledger: Ledger) -> None:
    long = "L" * 200
    for name, label in (
        ("a", "bob's"),
        ("b", "a', 5 bytes), b ('"),
        ("c", "line1\nline2"),
        ("d", long),
        ("e", " "),
        ("f", ""),
        ("g", named("a")),
    ):
        put(ledger, name, label=label)
    listing = refused(ledger, 5).refusal.partition("7 of 7: ")[2]
    assert listing == (
        f"{named('g')} ('art_…', 1 byte), {named('f')} (1 byte), {named('e')} (1 byte), {named('d')} ('{'L' * 79}…', 1 byte), "
        f"{named('c')} ('line1 line2', 1 byte), {named('b')} ('a\\', 5 bytes), b (\\'', 1 byte), {named('a')} ('bob\\'s', 1 byte)."
    )


def test_kinds_that_differ_in_white_space_are_seen_to_differ(ledger: Ledger) -> None:
    meta = put(ledger, "a", kind="rows")
    detail = refused(ledger, meta.ref, kind="rows ").refusals[0].detail
    assert detail.startswith(f"Argument 'dataset' takes a ref of kind 'rows ', and '{meta.ref}' is of kind 'rows'. ")


def test_a_label_past_its_bound_is_refused_at_put_by_name(ledger: Ledger) -> None:
    with pytest.raises(InvalidArtifact) as caught:
        put(ledger, "a", label="L" * 300)
    assert caught.value.field == "label"
    assert ledger.artifacts(MINE) == []


# --- damage ---------------------------------------------------------------------------------------------------------------------------------


def test_a_damaged_artifact_is_refused_with_alternatives_and_never_offered_again(ledger: Ledger, path: Path) -> None:
    put_many(ledger, ROWS, 10)
    bad = put(ledger, "bad", "true bytes")
    damage(path, bad)
    refused(ledger, 5)
    assert (last_refusal(ledger).offers[0].refs[0].ref, last_refusal(ledger).offers[0].total) == (bad.ref, 11)  # nobody knows it yet

    outcome = refused(ledger, bad.ref)
    event = last_refusal(ledger)
    assert outcome.refusals[0].detail.startswith(f"Argument 'dataset': the data behind '{bad.ref}' is damaged and was not passed on. ")
    assert event.arguments == (
        JudgedArgument(
            argument="dataset",
            wanted=ROWS,
            outcome="refused",
            reason="digest-mismatch",
            cause="corrupt",
            ref=bad.ref,
            digest=bad.digest,
            bytes=10,
            spoken_as="text",
            spoken_length=26,
        ),
    )
    offers = [event.offers]
    for spoken in (5, bad.ref):
        refused(ledger, spoken)
        offers.append(last_refusal(ledger).offers)
    assert [(len(offer.refs), offer.total, bad.ref in str(offer.refs)) for (offer,) in offers] == [(10, 10, False)] * 3
    page = ledger.store.list(MINE, kind=ROWS)
    assert (len(page.artifacts), page.total) == (10, 10)


def test_an_argument_refused_for_another_reason_is_not_offered_what_the_same_dispatch_finds_damaged(ledger: Ledger, path: Path) -> None:
    good, bad = put(ledger, "good", "aa"), put(ledger, "bad", "bb")
    damage(path, bad)
    wants, args = {"a": ROWS, "b": ROWS}, {"a": 5, "b": bad.ref}
    bare, recorded = resolve_tool_wants(ledger.store, MINE, "t", wants, args), dispatch(ledger, wants, args)
    offers = Offers(kind=ROWS, refs=(OfferedRef(ref=good.ref, bytes=2),), total=1)
    assert (bare, last_refusal(ledger).offers) == (recorded, (offers,))


def test_of_another_kind_it_is_not_looked_at_and_so_not_found_damaged(ledger: Ledger, path: Path) -> None:
    bad = put(ledger, "bad", "true bytes", kind=CHART)
    damage(path, bad)
    assert refused(ledger, bad.ref).refusals[0].reason == "kind-mismatch"


def test_a_payload_that_is_missing_is_damaged(ledger: Ledger, path: Path) -> None:
    bad = put(ledger, "bad", "true bytes")
    change(path, "DELETE FROM payloads WHERE digest = ?", bad.digest)
    assert refused(ledger, bad.ref).refusals[0].reason == "digest-mismatch"
    assert last_refusal(ledger).arguments[0].cause == "corrupt"


def test_bytes_that_are_whole_and_cannot_be_decoded_are_told_apart_in_the_log_alone(ledger: Ledger, path: Path) -> None:
    bad = put(ledger, "bad", "{not json")
    change(path, "UPDATE artifacts SET shape = 'json' WHERE ref = ?", bad.ref)
    outcome = refused(ledger, bad.ref)
    (judged,) = last_refusal(ledger).arguments
    assert (outcome.refusals[0].reason, judged.cause, last_refusal(ledger).offers[0].total) == ("digest-mismatch", "undecodable", 0)


# --- the sentence stays what the model read ----------------------------------------------------------------------------------------------------


def test_the_sentence_is_rendered_again_from_the_event_after_a_restart_and_after_its_refs_are_gone(path: Path, clock: Clock) -> None:
    with opened(path, clock) as ledger:
        for i in range(12):
            put(ledger, f"n{i}n", i, label=f"number {i}'s", ttl=timedelta(seconds=60))
        chart = put(ledger, "chart", kind=CHART, ttl=timedelta(seconds=60))
        wants = {"a": ROWS, "b": ROWS, "c": CHART, "d": ROWS}
        args = {"a": chart.ref, "b": f"'{named('n11n')}'", "c": "no 'such' thing\n", "d": ["needle"]}
        read = dispatch(ledger, wants, args, tool="compare")
    clock.now_us += 60 * SECOND
    with opened(path, clock) as ledger:
        put(ledger, "later")
        refs = [named("n11n"), chart.ref]
        assert [ledger.store.head(MINE, ref) for ref in refs] == [None, None]
        assert {recorded.event.model_dump()["cause"] for recorded in ledger.events() if recorded.event.type == "artifact.gone"} == {
            "expired"
        }
        (recorded,) = refusals(ledger)
        event = recorded.event
    assert isinstance(event, DispatchRefused) and recorded.erased is False
    assert dispatch_sentence(event).encode() == read.refusal.encode()
    assert (event.sentence, event.wording) == (digest_of_text(read.refusal), 1)
    again = [refusal.detail for refusal in read.refusals]
    assert read.refusal == " ".join(["refused: the tool 'compare' did not run.", *again])


def test_where_texts_are_erased_that_is_said_and_what_is_rendered_then_claims_nothing_else(ledger: Ledger, path: Path) -> None:
    live = put(ledger, "live", label="alice's salary")
    read = refused(ledger, "alice")
    change(path, "UPDATE events SET texts = NULL, salt = NULL WHERE type = 'dispatch.refused'")
    (recorded,) = refusals(ledger)
    event = recorded.event
    assert isinstance(event, DispatchRefused)
    assert (recorded.erased, event.spoken, event.labels) == (True, None, None)
    assert dispatch_sentence(event) == (
        "refused: the tool 't' did not run. Argument 'dataset': what was passed (5 characters) is missing or expired. "
        f"Live refs of kind 'dataset/rows', newest first, 1 of 1: {live.ref} (1 byte)."
    )
    assert event.sentence == digest_of_text(read.refusal) != digest_of_text(dispatch_sentence(event))


def test_wording_1_is_pinned_to_the_byte() -> None:
    """Once released, a renderer is never changed: if this fails, the change needs a new wording."""
    event = DispatchRefused(
        tool="t",
        wording=1,
        arguments=(
            JudgedArgument(argument="absent", wanted="k", outcome="refused", reason="invalid-input", spoken_as="absent"),
            *(
                JudgedArgument(argument=spoken_as, wanted="k", outcome="refused", reason="invalid-input", spoken_as=spoken_as)
                for spoken_as in ("empty-text", "null", "boolean", "number", "array", "object", "bytes", "other")
            ),
            JudgedArgument(
                argument="kind", wanted="k", outcome="refused", reason="kind-mismatch", ref=named("a"), actual="l", spoken_as="text"
            ),
            JudgedArgument(argument="damage", wanted="k", outcome="refused", reason="digest-mismatch", ref=named("b"), spoken_as="text"),
            JudgedArgument(
                argument="near",
                wanted="k",
                outcome="refused",
                reason="missing-or-expired",
                meant=named("c"),
                spoken_as="text",
                spoken_length=28,
            ),
            JudgedArgument(argument="good", wanted="k", outcome="resolved", ref=named("d"), spoken_as="text"),
            JudgedArgument(
                argument="gone", wanted="none", outcome="refused", reason="missing-or-expired", spoken_as="text", spoken_length=2_000
            ),
        ),
        offers=(
            Offers(kind="k", refs=(OfferedRef(ref=named("c"), bytes=1_000), OfferedRef(ref=named("d"), bytes=1)), total=1_002),
            Offers(kind="none", refs=(), total=0),
        ),
        sentence=digest_of(b""),
        spoken={"near": f"'{named('c')}'"},
        labels={named("d"): "Q3"},
    )
    live = f"Live refs of kind 'k', newest first, 2 of 1,002: {named('c')} (1,000 bytes), {named('d')} ('Q3', 1 byte)."
    assert dispatch_sentence(event) == " ".join(
        (
            "refused: the tool 't' did not run.",
            f"Argument 'absent' is required and was not given; it takes a ref of kind 'k'. {live}",
            f"Argument 'empty-text' takes a ref of kind 'k' as text, not an empty text. {live}",
            f"Argument 'null' takes a ref of kind 'k' as text, not null. {live}",
            f"Argument 'boolean' takes a ref of kind 'k' as text, not a boolean. {live}",
            f"Argument 'number' takes a ref of kind 'k' as text, not a number. {live}",
            f"Argument 'array' takes a ref of kind 'k' as text, not an array. {live}",
            f"Argument 'object' takes a ref of kind 'k' as text, not an object. {live}",
            f"Argument 'bytes' takes a ref of kind 'k' as text, not bytes. {live}",
            f"Argument 'other' takes a ref of kind 'k' as text, not a value that JSON does not have. {live}",
            f"Argument 'kind' takes a ref of kind 'k', and '{named('a')}' is of kind 'l'. {live}",
            f"Argument 'damage': the data behind '{named('b')}' is damaged and was not passed on. {live}",
            f"Argument 'near': '\\'{named('c')}\\'' is missing or expired. "
            f"Without what stands around it, it is the live ref {named('c')}: pass just that. {live}",
            "Argument 'gone': what was passed (2,000 characters) is missing or expired. "
            "No ref of kind 'none' is live in this conversation: produce one first.",
        )
    )


def test_without_a_store_the_model_reads_that_it_is_a_setting_and_not_its_fault() -> None:
    assert wants_needs_store_refusal("summarize", {"dataset": ROWS, "it's": CHART}) == (
        "refused: the tool 'summarize' did not run. It takes refs ('dataset' (kind 'dataset/rows'), 'it\\'s' (kind 'chart/spec')), "
        "and no artifact store is attached here, so they cannot be resolved. Whoever runs this agent must attach one: "
        "open a Ledger and dispatch through `call.resolve`."
    )


def test_a_dispatch_that_resolves_says_nothing_to_the_model(ledger: Ledger) -> None:
    meta = put(ledger, "good", [1, 2])
    outcome = dispatch(ledger, {"dataset": ROWS, "spare": ROWS}, {"dataset": meta.ref, "limit": 5})
    assert outcome == Resolved({"dataset": [1, 2], "limit": 5}, {"dataset": meta}, (("dataset", meta),))
    assert refusals(ledger) == []
