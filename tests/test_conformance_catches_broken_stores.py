"""The laws catch what they are for: a correct store passes, and each broken one fails exactly the laws that it breaks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from refledger import ArtifactStore, Page, Scope
from refledger.conformance import LAWS, Broken, Law, Outcome, Subject, run
from refledger_schema.errors import InvalidConfiguration
from tests import broken_stores as broken
from tests.broken_stores import MemoryStore
from tests.ledgers import Clock

BREAKS: dict[type[MemoryStore], set[str]] = {
    broken.IgnoresTheTenant: {
        "neighbours-read-nothing",
        "neighbours-list-nothing",
        "neighbours-delete-nothing",
        "confusable-scopes-stay-apart",
        "awkward-scopes-hold-artifacts",
        "absence-is-one",
        "parents-are-proven",
        "every-unknown-parent-is-named",
        "looking-is-no-use",
        "limits-are-per-scope",
        "streams-know-one-absence",
    },
    broken.FoldsCase: {"confusable-scopes-stay-apart"},
    broken.JoinsNamesWithASlash: {"confusable-scopes-stay-apart"},
    broken.CutsLongNames: {"confusable-scopes-stay-apart"},
    broken.DeletesForNeighbours: {"neighbours-delete-nothing", "confusable-scopes-stay-apart"},
    broken.DerivesRefs: {"refs-are-minted-not-derived"},
    broken.MintsAShortRefForNothing: {"refs-are-well-formed-and-unique"},
    broken.ShoutsItsDigests: {"digests-are-of-the-bytes", "streams-come-back"},
    broken.DigestsWithoutOrder: {"equal-bytes-have-equal-digests"},
    broken.RoundsItsClock: {"tickets-state-their-time", "expiry-is-inclusive"},
    broken.IgnoresTheMediaType: {"tickets-say-what-was-put"},
    broken.TrimsBytes: {"bytes-come-back"},
    broken.CutsLargePayloads: {"large-payloads-come-back", "streams-come-back"},
    broken.ChecksNoDigest: {"gets-verify", "known-damage-is-not-listed-by-kind", "streams-verify"},
    broken.SpreadsDamage: {"damage-does-not-spread"},
    broken.ForgetsOnRestart: {"what-was-kept-outlives-the-handle"},
    broken.ReadsTextAsJson: {"text-comes-back", "shapes-stay-apart"},
    broken.SortsKeys: {"json-comes-back", "key-order-comes-back"},
    broken.TakesNoneForAnAbsence: {"json-comes-back", "shapes-stay-apart"},
    broken.ApproximatesJson: {"json-is-exact-or-refused", "malformed-puts-are-refused-by-field"},
    broken.KeepsTheCallersObject: {"puts-are-detached"},
    broken.HandsOutOneObject: {"gets-are-detached"},
    broken.RaisesOnMalformedRefs: {"absence-is-one"},
    broken.RaisesOnDeletedRefs: {
        "neighbours-delete-nothing",
        "confusable-scopes-stay-apart",
        "absence-is-one",
        "deletes-are-final-and-idempotent",
        "the-expired-are-absent",
    },
    broken.LivesAtItsExpiry: {"expiry-is-inclusive"},
    broken.ListsTheExpired: {"the-expired-are-not-listed"},
    broken.IgnoresTheTimeZone: {"expiries-are-stated"},
    broken.CutsTtlsToSeconds: {"expiry-is-inclusive", "a-ttl-counts-from-the-mint"},
    broken.TakesNaiveExpiries: {"naive-expiries-are-refused"},
    broken.TakesPastExpiries: {"past-expiries-are-refused", "an-expiry-now-is-refused"},
    broken.ExtendsExpiries: {"retention-only-tightens"},
    broken.ProvesNoParents: {"parents-are-proven", "expired-parents-are-refused", "every-unknown-parent-is-named"},
    broken.NamesAParentOnce: {"parents-are-kept"},
    broken.NamesTheFirstUnknownParent: {"every-unknown-parent-is-named"},
    broken.StoresWhatItRefuses: {"refused-puts-store-nothing", "refused-puts-evict-nothing", "broken-streams-store-nothing"},
    broken.QuotesWhatItRefuses: {"refusals-keep-secrets"},
    broken.BlamesTheWrongField: {"malformed-puts-are-refused-by-field"},
    broken.ListsOldestFirst: {"lists-are-newest-first", "order-is-not-the-clocks"},
    broken.ListsByTheClock: {"order-is-not-the-clocks"},
    broken.PagesByOffset: {"walks-survive-puts", "walks-survive-deletes"},
    broken.RestartsOnABadCursor: {"bad-cursors-are-refused"},
    broken.AlwaysHasAnotherPage: {"pages-are-complete", "walks-survive-puts"},
    broken.PagesAreLonger: {"a-page-holds-fifty"},
    broken.TakesAnyLimit: {"bad-limits-are-refused"},
    broken.ListsNoParents: {"lists-hold-tickets"},
    broken.MatchesKindsByTheirStart: {"kinds-are-exact"},
    broken.CountsThePage: {"totals-count-the-live"},
    broken.EvictsParents: {"parents-are-not-evicted", "no-room-evicts-nothing"},
    broken.EvictsTheOldest: {"the-least-used-leaves"},
    broken.ListingIsAUse: {"looking-is-no-use"},
    broken.CountsNoIncomingBytes: {"a-byte-budget-is-kept", "no-room-evicts-nothing", "oversize-evicts-nothing"},
    broken.EvictsBeforeItRefuses: {"oversize-evicts-nothing"},
    broken.LetsTheExpiredHoldRoom: {"the-expired-leave-first"},
    broken.StreamsOneWay: {"streams-come-in-pairs"},
    broken.StreamsUnverified: {"streams-verify"},
    broken.StreamsTheExpired: {"streams-expire"},
}
"""By store: every law that it fails, and no other."""


def subject_of(store: type[MemoryStore]) -> Subject:
    clock = Clock()
    return Subject(
        fresh=lambda: store(clock),
        retained=lambda retention: store(clock, retention),
        advance=lambda us: clock.advance(timedelta(microseconds=us)),
        corrupt=lambda kept, scope, ref: memory(kept).damage(scope, ref),
        reopen=lambda kept: memory(kept).reopened(),
    )


def memory(store: ArtifactStore) -> MemoryStore:
    assert isinstance(store, MemoryStore)
    return store


def failed(outcomes: tuple[Outcome, ...]) -> set[str]:
    return {outcome.law.name for outcome in outcomes if outcome.result == "failed"}


def outcome_of(name: str, outcomes: tuple[Outcome, ...]) -> Outcome:
    (outcome,) = (outcome for outcome in outcomes if outcome.law.name == name)
    return outcome


def test_a_correct_store_in_memory_keeps_every_law() -> None:
    outcomes = run(subject_of(MemoryStore))
    assert [str(outcome) for outcome in outcomes] == [f"pass: {law.name}" for law in LAWS]


@pytest.mark.parametrize("store", BREAKS, ids=lambda store: store.__name__)
def test_a_broken_store_fails_exactly_the_laws_that_it_breaks(store: type[MemoryStore]) -> None:
    assert failed(run(subject_of(store))) == BREAKS[store]


def test_every_broken_store_is_named_here() -> None:
    stores = {found for found in vars(broken).values() if isinstance(found, type) and issubclass(found, MemoryStore)}
    assert stores - {MemoryStore} == BREAKS.keys()


@pytest.mark.parametrize("law", LAWS, ids=[law.name for law in LAWS])
def test_a_law_catches_at_least_one_broken_store(law: Law) -> None:
    assert any(law.name in laws for laws in BREAKS.values())


def test_names_of_laws_are_unique_and_each_has_a_sentence() -> None:
    assert len({law.name for law in LAWS}) == len(LAWS)
    assert [law.name for law in LAWS if not law.statement.endswith(".")] == []


def test_a_failure_says_what_was_expected_and_what_was_found() -> None:
    outcomes = run(subject_of(broken.LivesAtItsExpiry))
    outcome = outcome_of("expiry-is-inclusive", outcomes)
    assert outcome.said.startswith("expected `head` of an artifact at its expiry to be None; found ArtifactMeta(")
    assert not outcome.ok


def test_an_error_that_no_law_expects_is_a_failure_and_stops_no_other_law() -> None:
    class CannotList(MemoryStore):
        def list(self, scope: Scope, **asked: Any) -> Page:
            raise OSError("the disk is gone")

    outcomes = run(subject_of(CannotList))
    assert outcome_of("lists-are-newest-first", outcomes).said == "expected no error; found OSError: 'the disk is gone'."
    assert outcome_of("text-comes-back", outcomes).result == "pass"


def test_a_check_is_a_plain_function_that_raises_an_assertion() -> None:
    (law,) = (law for law in LAWS if law.name == "expiry-is-inclusive")
    law.check(subject_of(MemoryStore))
    with pytest.raises(AssertionError) as caught:
        law.check(subject_of(broken.LivesAtItsExpiry))
    assert isinstance(caught.value, Broken)


# --- what is not there ---------------------------------------------------------------------------------------------------


class Bare:
    """The five verbs of a correct store, without streams, totals, or anything else."""

    def __init__(self) -> None:
        store = MemoryStore(Clock())
        self.put, self.head, self.get, self.delete = store.put, store.head, store.get, store.delete
        self._list: Callable[..., Page] = store.list

    def list(self, scope: Scope, *, kind: str | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        page = self._list(scope, kind=kind, limit=limit, cursor=cursor)
        return Page(page.artifacts, page.cursor)


def test_a_law_is_not_applicable_without_what_it_needs_and_says_what_is_missing() -> None:
    outcomes = run(Subject(fresh=Bare))
    assert {outcome.result for outcome in outcomes} == {"pass", "not-applicable"}
    said = {outcome.law.name: outcome.said for outcome in outcomes if outcome.result == "not-applicable"}
    assert said.keys() == {law.name for law in LAWS if law.needs}
    assert said["expiry-is-inclusive"] == "the subject has no hook `advance`"
    assert said["retention-only-tightens"] == "the subject has no hook `retained`; the subject has no hook `advance`"
    assert said["streams-come-back"] == "the store has no `put_stream` and no `get_stream`"
    assert said["totals-count-the-live"] == "the store counts no totals"
    assert all(outcome.ok for outcome in outcomes)


def test_a_store_that_raises_while_it_is_asked_what_it_has_fails() -> None:
    class CannotCount(MemoryStore):
        def total(self, scope: Scope, kind: str | None) -> int | None:
            raise OSError("no")

    assert outcome_of("totals-count-the-live", run(subject_of(CannotCount))).result == "failed"


# --- what is declared ----------------------------------------------------------------------------------------------------


def test_a_declared_law_still_runs_and_gives_its_reason_with_what_was_found() -> None:
    outcomes = run(subject_of(broken.ListsByTheClock), declared={"order-is-not-the-clocks": "our index is by time"})
    outcome = outcome_of("order-is-not-the-clocks", outcomes)
    assert (outcome.result, outcome.stale, outcome.ok) == ("declared", False, True)
    assert outcome.said.startswith("our index is by time (expected the listing after the clock ran back to be [")
    assert failed(outcomes) == set()


def test_a_declaration_is_stale_when_its_law_passes() -> None:
    outcome = outcome_of("text-comes-back", run(subject_of(MemoryStore), declared={"text-comes-back": "we thought it did not"}))
    assert (outcome.result, outcome.stale, outcome.ok) == ("declared", True, False)
    assert str(outcome) == "declared, and stale: it passes. Take the declaration out: text-comes-back: we thought it did not"


def test_a_declared_law_that_is_not_applicable_says_so() -> None:
    assert outcome_of("gets-verify", run(Subject(fresh=Bare), declared={"gets-verify": "no digests"})).result == "not-applicable"


@pytest.mark.parametrize("declared", [{"no-such-law": "a reason"}, {"gets-verify": " "}, {"gets-verify": None}])
def test_a_declaration_of_no_law_or_without_a_reason_is_refused(declared: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        run(subject_of(MemoryStore), declared=declared)
    assert caught.value.option == "declared"
