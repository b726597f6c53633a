"""Laws of absence and expiry: all that is not there is not there in the same way, and what is dead is dead to the microsecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from refledger.conformance.law import expect, expect_absent, expect_live, expect_refused, expect_same, law, payload_of, refs_of, walk
from refledger.conformance.scopes import NEIGHBOURS
from refledger.conformance.subject import HOME, KIND, SECOND, Subject, pass_time
from refledger.contract import ArtifactStore
from refledger_schema.errors import InvalidArtifact

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = "art_0000000000000000000000"

MALFORMED: tuple[str, ...] = (
    "",
    " ",
    "art_",
    "art_" + "a" * 21,
    "art_" + "a" * 23,
    "ART_" + "a" * 22,
    "art-" + "a" * 22,
    "art_" + "a" * 21 + "é",
    "art_" + "a" * 21 + "\n",
    NEVER + "\n",
    f" {NEVER}",
    f"'{NEVER}'",
    "../../etc/passwd",
    "art_%",
    "nul\x00nul",
    "\ud800",
    "x" * 100_000,
)


@law("What was never minted, is malformed, deleted, or another scope's is one absence: None from head and get, a delete in silence.")
def absence_is_one(subject: Subject) -> None:
    store = subject.fresh()
    _, neighbour = NEIGHBOURS[0]
    deleted = store.put(HOME, "a", kind=KIND).ref
    store.delete(HOME, deleted)
    foreign = store.put(neighbour, "b", kind=KIND).ref
    known = (("a ref that was never minted", NEVER), ("a deleted artifact", deleted), ("another scope's artifact", foreign))
    for what, ref in (*known, *((f"the malformed ref {ascii(text[:30])}", text) for text in MALFORMED)):
        expect_absent(store, HOME, ref, what)
        _expect_silence(store, ref, what)


@law("A deleted artifact is gone from head, get and list; deleting it again does nothing; the others stay.")
def deletes_are_final_and_idempotent(subject: Subject) -> None:
    store = subject.fresh()
    gone, kept = (store.put(HOME, "the same", kind=KIND).ref for _ in range(2))
    for _ in range(3):
        _expect_silence(store, gone, "an artifact")
        expect_absent(store, HOME, gone, "a deleted artifact")
        expect_same(refs_of(walk(store, HOME)), [kept], "the listing after a delete")
    expect_same(payload_of(store, HOME, kept), "the same", "the payload that stays")


@law("An expired artifact is the same absence, and so it stays.", needs=("advance",))
def the_expired_are_absent(subject: Subject) -> None:
    store = subject.fresh()
    mortal = store.put(HOME, "a", kind=KIND, ttl=timedelta(seconds=1)).ref
    other = store.put(HOME, "b", kind=KIND).ref
    pass_time(subject, 2 * SECOND)
    for _ in range(2):
        expect_absent(store, HOME, mortal, "an expired artifact")
        _expect_silence(store, mortal, "an expired artifact")
    store.put(HOME, "c", kind=KIND)
    expect_absent(store, HOME, mortal, "an expired artifact, after another put")
    expect_live(store, HOME, other, "an artifact without an expiry")


@law("Expiry is inclusive: an artifact lives one microsecond before its expiry, and is dead at it.", needs=("advance",))
def expiry_is_inclusive(subject: Subject) -> None:
    store = subject.fresh()
    ref = store.put(HOME, "a", kind=KIND, ttl=timedelta(seconds=10)).ref
    pass_time(subject, 10 * SECOND - 1)
    expect_live(store, HOME, ref, "an artifact one microsecond before its expiry")
    expect_same(payload_of(store, HOME, ref), "a", "the payload one microsecond before its expiry")
    pass_time(subject, 1)
    expect_absent(store, HOME, ref, "an artifact at its expiry")


@law("An expired artifact is not listed, with a kind or without, nor counted.", needs=("advance",))
def the_expired_are_not_listed(subject: Subject) -> None:
    store = subject.fresh()
    store.put(HOME, "a", kind=KIND, ttl=timedelta(seconds=1))
    kept = store.put(HOME, "b", kind=KIND).ref
    pass_time(subject, 2 * SECOND)
    for kind in (None, KIND):
        page = store.list(HOME, kind=kind)
        expect_same(refs_of(page.artifacts), [kept], "the listing after an expiry")
        expect(page.total in (None, 1), "a total of 1", f"{page.total}")


@law("The ticket states the expiry: the instant that the put gave, in whatever time zone.")
def expiries_are_stated(subject: Subject) -> None:
    store = subject.fresh()
    now = _now(store)
    for offset in (timedelta(0), timedelta(hours=5, minutes=30), timedelta(hours=-11)):
        until = (now + timedelta(hours=1, microseconds=7)).astimezone(timezone(offset))
        meta = store.put(HOME, "a", kind=KIND, expires_at=until)
        expect_same(meta.expires_us, (until - _EPOCH) // timedelta(microseconds=1), f"the expiry that was given at {until:%z}")
        expect_same(expect_live(store, HOME, meta.ref, "the artifact").expires_us, meta.expires_us, "the expiry from `head`")


@law("A time to live counts from the mint.", needs=("advance",))
def a_ttl_counts_from_the_mint(subject: Subject) -> None:
    store = subject.fresh()
    for ttl in (timedelta(microseconds=1), timedelta(seconds=90), timedelta(days=400)):
        meta = store.put(HOME, "a", kind=KIND, ttl=ttl)
        expect_same(meta.expires_us, meta.minted_us + ttl // timedelta(microseconds=1), f"the expiry of a ttl of {ttl}")


@law("An expiry without a time zone is refused: nobody knows when it is.")
def naive_expiries_are_refused(subject: Subject) -> None:
    store = subject.fresh()
    naive = (_now(store) + timedelta(days=2)).replace(tzinfo=None)
    _expect_field(store, "expires_at", "a put with a naive expiry", expires_at=naive)


@law("An expiry in the past is refused on `expires_at`, a ttl of zero or less on `ttl`, and both at once too.")
def past_expiries_are_refused(subject: Subject) -> None:
    store = subject.fresh()
    now = _now(store)
    _expect_field(store, "expires_at", "a put that had expired long ago", expires_at=now - timedelta(days=365))
    _expect_field(store, "ttl", "a put with a ttl of zero", ttl=timedelta(0))
    _expect_field(store, "ttl", "a put with a ttl below zero", ttl=timedelta(seconds=-1))
    _expect_field(store, "expires_at", "a put with both an expiry and a ttl", expires_at=now + timedelta(days=2), ttl=timedelta(days=2))


@law("An expiry at this very microsecond is refused too: it would be dead at birth.", needs=("advance",))
def an_expiry_now_is_refused(subject: Subject) -> None:
    store = subject.fresh()
    now = _now(store)
    _expect_field(store, "expires_at", "a put that expires now", expires_at=now)
    soon = store.put(HOME, "a", kind=KIND, expires_at=now + timedelta(microseconds=1))
    expect_live(store, HOME, soon.ref, "what expires in a microsecond")


def _now(store: ArtifactStore) -> datetime:
    """What the store's clock says, read off a ticket."""
    return _EPOCH + timedelta(microseconds=store.put(HOME, "what time is it", kind="probe").minted_us)


def _expect_field(store: ArtifactStore, field: str, what: str, *, expires_at: datetime | None = None, ttl: timedelta | None = None) -> None:
    refusal = expect_refused(InvalidArtifact, lambda: store.put(HOME, "a", kind=KIND, expires_at=expires_at, ttl=ttl), what)
    expect_same(refusal.field, field, f"the field of the refusal of {what}")


def _expect_silence(store: ArtifactStore, ref: str, what: str) -> None:
    try:
        store.delete(HOME, ref)
    except Exception as error:
        expect(False, f"a delete of {what} to say nothing", type(error).__name__)
