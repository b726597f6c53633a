"""What every door records through: the store, and the one place where texts are redacted before they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from refledger.payloads import text_of
from refledger.redaction import Redact, applied, redacted
from refledger_schema.digests import digest_of, digest_of_text
from refledger_schema.envelope import Draft
from refledger_schema.errors import IdempotencyConflict, InvalidArtifact, NotCanonical
from refledger_schema.events import ArtifactRefused, Event, Idempotency
from refledger_schema.reasons import REASON_OF, Cause
from refledger_schema.refs import is_ref
from refledger_schema.scopes import Scope
from refledger_store.append import Decide, Locked
from refledger_store.store import Store

Door = Literal["call", "run", "store"]
Op = Literal["put", "head", "get", "stream", "delete", "list", "present"]
Operation = Literal["put", "resolve", "answer"]
_E = TypeVar("_E", bound=Event)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Where something happens: whose scope, and which run, call and dispatch, as far as there are any."""

    scope: Scope
    run_id: str | None = None
    call_id: str | None = None
    dispatch: int | None = None
    tool: str | None = None
    door: Door = "store"

    @property
    def key(self) -> str:
        """Under what observations wait: the run, or the scope where there is none."""
        return self.run_id if self.run_id is not None else f"scope {self.scope.key}"

    def draft(self, event: Event) -> Draft:
        return Draft(event, self.scope, run_id=self.run_id, call_id=self.call_id, dispatch=self.dispatch)


@dataclass(frozen=True, slots=True)
class Content:
    """A text of a run as it is recorded: redacted, and then digested."""

    text: str
    digest: str
    size: int
    """Length in UTF-8 bytes."""


class Recorder:
    """The store behind a ledger, and its redaction."""

    def __init__(self, store: Store, redact: Redact | None) -> None:
        self.store = store
        self.redact = redact

    def clean(self, event: _E) -> _E:
        """The event with its texts redacted."""
        return redacted(event, self.redact)

    def draft(self, place: Place, event: Event) -> Draft:
        """The draft of an event, its texts redacted."""
        return place.draft(self.clean(event))

    def content(self, value: Any) -> Content | None:
        """A value as recorded content; None for what has no exact text."""
        text = text_of(value)
        if text is None:
            return None
        text = applied(self.redact, text, "content")
        return Content(text, digest_of_text(text), len(text.encode()))

    def kept(self, place: Place, *contents: Content | None) -> dict[tuple[str, str], bytes]:
        """The contents to store beside the events that name them; none where only digests are recorded."""
        if not self.store.configuration.record_content:
            return {}
        return {(place.scope.key, content.digest): content.text.encode() for content in contents if content is not None}

    def append(self, decide: Decide[T], place: Place | None = None) -> T:
        """Append a closed act, behind what waits for its run, and give its result. A text that no log can hold is named."""
        with named():
            return self.store.append(decide, key=None if place is None else place.key).result

    def observe(self, place: Place, event: Event, *contents: Content | None) -> None:
        """Record an observation with its content, best effort."""
        with named():
            self.store.observe(place.key, self.draft(place, event), self.kept(place, *contents))

    def refused(self, place: Place, op: Op, cause: Cause | None, spoken: object) -> None:
        """Record that a verb refused, and the operator's cause."""
        self.observe(place, refusal_event(op, cause or "never_minted", spoken))


@contextmanager
def named() -> Iterator[None]:
    """Turn a text that no log can hold (NUL, half a character) into an argument to correct, by its name."""
    try:
        yield
    except NotCanonical as error:
        field = error.path.removeprefix("$.")
        raise InvalidArtifact(field, f"expected `{field}` to be text that the log can hold: {error.reason}") from None


def refusal_event(op: Op, cause: Cause, spoken: object) -> ArtifactRefused:
    """A verb's refusal as its event: the ref that was spoken, or length and digest of what was spoken instead."""
    ref = spoken if isinstance(spoken, str) and is_ref(spoken) else None
    text = spoken if isinstance(spoken, str) and ref is None else None
    return ArtifactRefused(
        op=op,
        reason=REASON_OF[cause],
        cause=cause,
        ref=ref,
        spoken_length=None if text is None else len(text),
        spoken_digest=None if text is None else digest_of(text.encode(errors="surrogatepass")),
    )


def idempotency(key: str | None, request: Sequence[str]) -> Idempotency | None:
    """A caller's key with the digest of what it is for. The key itself may hold anything, so only its digest is kept."""
    if key is None:
        return None
    if not isinstance(key, str) or not key:
        raise InvalidArtifact("key", "expected an idempotency key that is a non-empty text, or None. Give one that names the request.")
    parts = "".join(f"{len(part)}:{part}" for part in request)
    return Idempotency(key=digest_of(key.encode(errors="surrogatepass")), request=digest_of(parts.encode(errors="surrogatepass")))


def replayed(state: Locked, scope: Scope, operation: Operation, used: Idempotency | None) -> int | None:
    """The position of the event that answered this request before; None when the key is new, or there is none.

    Raises `IdempotencyConflict` when the key was used for another request.
    """
    receipt = None if used is None else state.receipt(scope.key, operation, used.key)
    if used is None or receipt is None:
        return None
    if receipt.request != used.request:
        raise IdempotencyConflict(operation)
    return receipt.position
