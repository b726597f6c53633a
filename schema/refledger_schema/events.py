"""The events: what can be recorded, one frozen model a kind.

An event says what happened. Its texts (fields marked `Private`: what people or models wrote, and digests of it) are kept
beside the event and can be erased; the rest is its body. Where an event stands in the log is not its own business: see
`refledger_schema.envelope`.

A field that is None is absent from the body. Bounds keep a leaf below 65,535 bytes; excess is refused by pydantic with the
field's name, and by `TooLarge` for the leaf as a whole.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from refledger_schema.reasons import Cause, GoneCause, Reason

MAX_WANTS = 32
MAX_PARENTS = 1_000
MAX_KIND = 100
MAX_LABEL = 200
MAX_SPOKEN = 200
MAX_OFFERED = 10
MAX_NAME = 200
MAX_MATCHES = 200
MAX_SAFE_INTEGER = 2**53 - 1


class _PrivateMark:
    """Marks a field whose value is a text: it stands outside the body and can be erased."""


Private = _PrivateMark()

Count = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
Micros = Annotated[int, Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
"""Microseconds since 1970-01-01 UTC."""
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Kind = Annotated[str, Field(min_length=1, max_length=MAX_KIND)]
Digest = Annotated[str, Field(pattern=r"^sha-256:[0-9a-f]{64}$")]
Ref = Annotated[str, Field(pattern=r"^art_[0-9A-Za-z]{22}$")]
"""A well-formed ref. That it ever was minted is another matter."""

Shape = Literal["text", "bytes", "json", "arrow"]
Via = Literal["head", "get", "stream"]
Status = Literal["ok", "error", "refused", "no-result"]
Outcome = Literal["closed", "failed", "left"]
Verdict = Literal["right", "wrong", "unsure"]
SpokenAs = Literal["text", "empty-text", "null", "boolean", "number", "array", "object", "bytes", "other", "absent"]


class _Frozen(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
        # Building a validator costs more than importing the module; most programs use few of the events.
        defer_build=True,
    )


class Event(_Frozen):
    """The base of every event; `type` and `version` tell them apart."""

    type: str
    version: int
    private_fields: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.private_fields = frozenset(name for name, field in cls.model_fields.items() if Private in field.metadata)

    def body(self) -> dict[str, Any]:
        """What enters the leaf: every field that is present and is not a text."""
        return self._part(private=False)

    def texts(self) -> dict[str, Any]:
        """What stands beside the leaf: the texts that are present."""
        return self._part(private=True)

    def split(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """(body, texts), for the cost of one."""
        body = self.model_dump(exclude_none=True)
        del body["type"], body["version"]
        texts = {name: body.pop(name) for name in self.private_fields if name in body}
        return body, texts

    def _part(self, *, private: bool) -> dict[str, Any]:
        body, texts = self.split()
        return texts if private else body


class Idempotency(_Frozen):
    """The key that a caller gave, and what it was given for, so that the same request is answered and not repeated."""

    key: Digest
    """Digest of the caller's key: the key itself may hold anything."""
    request: Digest
    """Digest of the request without its refs, ids and times."""


class Match(_Frozen):
    """A value that was seen before: the later place holds it word for word. Inferred, and never more than that."""

    argument: Name | None = None
    """The argument that holds the value; absent where the text of an answer does."""
    source: Literal["call", "artifact", "message"]
    """What held the value before."""
    id: Name
    """The call's id, the artifact's ref, or the message's index, within the same run."""


# --- the log -----------------------------------------------------------------------------------------------------------


class LogOpened(Event):
    """The log was opened for writing under a configuration that differs from the last one recorded."""

    type: Literal["log.opened"] = "log.opened"
    version: Literal[1] = 1
    software: Name
    """Version of Refledger."""
    durability: Literal["full", "process"]
    """`full`: acknowledged means on disk; `process`: survives the process, not the machine."""
    observations: Literal["buffered", "durable"]
    """Whether observations wait for the run's next closed act."""
    record_content: bool
    """Whether texts of arguments, results, messages and answers are kept."""
    ttl_us: Count | None = None
    """Retention: how long an artifact lives at most."""
    max_bytes: Count | None = None
    """Retention: live bytes in a scope at most."""
    max_count: Count | None = None
    """Retention: live artifacts in a scope at most."""
    payloads: Literal["database", "folder"] = "database"
    """Where large payloads live."""
    redaction: Name | None = None
    """Name of the redaction in force."""
    signing_key: Name | None = None
    """Id of the key that signs checkpoints."""


class LogGap(Event):
    """Observations were lost: they happened, and the log cannot say what they were."""

    type: Literal["log.gap"] = "log.gap"
    version: Literal[1] = 1
    count: Count | None = None
    """How many; absent when a crash took the count along."""
    first_us: Micros | None = None
    """When the first was made; after a crash, the last time known before the loss."""
    last_us: Micros | None = None
    """When the last was made."""
    why: Literal["crash", "store-fault", "too-large"]
    """What lost them."""


# --- runs, messages, calls -----------------------------------------------------------------------------------------------


class RunStarted(Event):
    """An agent's run opened."""

    type: Literal["run.started"] = "run.started"
    version: Literal[1] = 1
    agent: Name | None = None
    """Who runs."""
    model: Name | None = None
    """The model, as the runtime names it."""
    parent_run: Name | None = None
    """The run that called this one."""
    parent_call: Name | None = None
    """The call of the parent run that opened this one."""
    attributes: Annotated[dict[str, str] | None, Private] = None
    """What else the runtime knows of the run, its own ids included."""


class RunEnded(Event):
    """The run closed, failed or was left. A run without this event is unfinished."""

    type: Literal["run.ended"] = "run.ended"
    version: Literal[1] = 1
    outcome: Outcome
    """`closed`: the block ended; `failed`: by an exception; `left`: interrupted or cancelled."""
    error_class: Name | None = None
    """The class of the exception; never its text."""


class MessageNoted(Event):
    """A message of the conversation."""

    type: Literal["message.noted"] = "message.noted"
    version: Literal[1] = 1
    role: Name
    """system, user, assistant, tool, or what the runtime calls it."""
    index: Count
    """Where the message stands in the conversation, from 1."""
    turn: Count | None = None
    """The turn it belongs to, where the runtime counts turns."""
    content: Annotated[Digest | None, Private] = None
    """Digest of the message's text; absent when it has none."""
    size: Count
    """The text's length in UTF-8 bytes."""


class CallStarted(Event):
    """A tool call began, whether or not the tool came to run."""

    type: Literal["call.started"] = "call.started"
    version: Literal[1] = 1
    tool: Name
    """The tool's name."""
    step: Count
    """1 for the run's first call, 2 for its second, …"""
    turn: Count | None = None
    """The turn that asked for it; calls of one turn are parallel."""
    message: Count | None = None
    """Index of the message that asked for it."""
    arguments: Annotated[Digest | None, Private] = None
    """Digest of the arguments as JSON."""
    size: Count | None = None
    """The arguments' length in UTF-8 bytes."""
    matches: Annotated[tuple[Match, ...] | None, Field(max_length=MAX_MATCHES)] = None
    """Where values of the arguments were seen before."""


class CallEnded(Event):
    """A tool call ended, and what the model read as its result."""

    type: Literal["call.ended"] = "call.ended"
    version: Literal[1] = 1
    status: Status
    """`refused` when dispatch refused it; `no-result` when the block ended without one."""
    message: Count | None = None
    """Index of the message that carries the result."""
    result: Annotated[Digest | None, Private] = None
    """Digest of the result's text."""
    size: Count | None = None
    """The result's length in UTF-8 bytes."""
    placed: Ref | None = None
    """The artifact that holds the result in full, where the model read a ticket instead."""
    error_class: Name | None = None
    """The class of the exception that ended the call; never its text."""


# --- artifacts -----------------------------------------------------------------------------------------------------------


class OfferedRef(_Frozen):
    """One line of what a refusal offered."""

    ref: Ref
    """A live ref of the wanted kind."""
    bytes: Count
    """Its size as shown."""


class Parent(_Frozen):
    """An artifact that another was made from."""

    ref: Ref
    """The parent."""
    how: Literal["declared", "call"]
    """`declared` by the put; `call`: resolved in the call that put it."""


class ArtifactMinted(Event):
    """A payload was checked in, and its ticket minted."""

    type: Literal["artifact.minted"] = "artifact.minted"
    version: Literal[1] = 1
    ref: Ref
    """The ticket."""
    kind: Kind
    """What the data is, in the tool author's words."""
    media_type: Name
    """How the bytes are to be read."""
    shape: Shape
    """How the payload is given back."""
    bytes: Count
    """The payload's length in bytes."""
    digest: Digest
    """SHA-256 of the payload's bytes. Of a guessable payload it remains guessable after erasure."""
    label: Annotated[str | None, Field(max_length=MAX_LABEL), Private] = None
    """A few words for the model and for people."""
    expires_us: Micros | None = None
    """When it is dead."""
    parents: Annotated[tuple[Parent, ...] | None, Field(max_length=MAX_PARENTS)] = None
    """What it was made from, declared parents first; absent when unknown, never empty."""
    tool: Name | None = None
    """The tool that put it."""
    idempotency: Idempotency | None = None
    """The put's key, where one was given."""


class ArtifactRead(Event):
    """A ticket was shown or redeemed outside dispatch."""

    type: Literal["artifact.read"] = "artifact.read"
    version: Literal[1] = 1
    ref: Ref
    """The ticket."""
    via: Via
    """`head`: the ticket alone; `get`, `stream`: the payload."""
    door: Literal["call", "run", "store"]
    """Whose verb it was."""
    verified: bool
    """Whether the payload was checked against its digest."""


class ArtifactGone(Event):
    """An artifact left, and what made it leave."""

    type: Literal["artifact.gone"] = "artifact.gone"
    version: Literal[1] = 1
    ref: Ref
    """The ticket that is dead now."""
    cause: GoneCause
    """How it left."""
    forced_by: Ref | None = None
    """The artifact whose put needed the room."""
    stated_us: Micros | None = None
    """The expiry that was stated at mint."""
    observed_us: Micros | None = None
    """When the expiry was noticed."""
    by: Annotated[str | None, Field(max_length=MAX_LABEL), Private] = None
    """Who deleted or erased it."""
    why: Annotated[str | None, Field(max_length=1_000), Private] = None
    """Why they did."""


class ArtifactRefused(Event):
    """A verb refused what it was asked."""

    type: Literal["artifact.refused"] = "artifact.refused"
    version: Literal[1] = 1
    op: Literal["put", "head", "get", "stream", "delete", "list", "present"]
    """The verb."""
    reason: Reason
    """What the caller was told."""
    cause: Cause
    """What was the matter."""
    ref: Ref | None = None
    """The ref that was spoken, if it was one."""
    spoken_length: Count | None = None
    """Length in characters of what was spoken instead of a ref."""
    spoken_digest: Annotated[Digest | None, Private] = None
    """Digest of what was spoken instead of a ref."""
    wording: Count | None = None
    """Which renderer made the sentence that a model read, where one did."""
    offered: Annotated[tuple[OfferedRef, ...] | None, Field(max_length=MAX_OFFERED)] = None
    """The live refs that the sentence offered, newest first."""
    total: Count | None = None
    """How many were live in all."""
    sentence: Digest | None = None
    """Digest of the sentence."""
    spoken: Annotated[str | None, Field(max_length=MAX_SPOKEN), Private] = None
    """What was spoken, as the sentence repeats it."""
    labels: Annotated[dict[str, str] | None, Private] = None
    """By offered ref: its label as shown."""


class ArtifactPresented(Event):
    """An artifact was handed to the screen. The snapshot keeps it nameable after it has expired."""

    type: Literal["artifact.presented"] = "artifact.presented"
    version: Literal[1] = 1
    ref: Ref
    """The artifact."""
    via: Literal["head"] = "head"
    """Its ticket was read, not its payload."""
    door: Literal["call", "run", "store"]
    """Whose verb it was."""
    shown_as: Annotated[str | None, Field(max_length=MAX_NAME), Private] = None
    """What it was to be shown as."""
    snapshot: Annotated[dict[str, str] | None, Private] = None
    """Kind, media type, bytes and label as they were shown."""


# --- dispatch ------------------------------------------------------------------------------------------------------------


class ResolvedArgument(_Frozen):
    """An argument whose ref was replaced by its payload."""

    argument: Name
    """The argument's name."""
    kind: Kind
    """The kind wanted, and found."""
    ref: Ref
    """The ref that the model spoke."""
    digest: Digest
    """Digest of the payload delivered."""
    bytes: Count
    """Length of the payload delivered."""
    verified: bool
    """Whether the payload was checked against that digest."""


class DispatchResolved(Event):
    """Every declared argument that was spoken resolved, and the tool may run."""

    type: Literal["dispatch.resolved"] = "dispatch.resolved"
    version: Literal[1] = 1
    tool: Name
    """The tool."""
    arguments: Annotated[tuple[ResolvedArgument, ...], Field(max_length=MAX_WANTS)]
    """What was delivered, in the order of the declaration."""
    idempotency: Idempotency | None = None
    """The dispatch's key, where one was given."""


class JudgedArgument(_Frozen):
    """How one declared argument of a refused dispatch was judged."""

    argument: Name
    """The argument's name."""
    wanted: Kind
    """The kind that the tool declares."""
    outcome: Literal["resolved", "refused", "absent"]
    """`absent`: optional, and not spoken."""
    reason: Reason | None = None
    """What the model was told."""
    cause: Cause | None = None
    """What was the matter."""
    ref: Ref | None = None
    """The artifact that was found, where one of this scope was."""
    digest: Digest | None = None
    """The digest of the artifact that was found."""
    bytes: Count | None = None
    """The size of the artifact that was found."""
    actual: Kind | None = None
    """The kind that was found instead."""
    meant: Ref | None = None
    """The live ref that a slip of the pen away was spoken."""
    gone_by: Ref | None = None
    """The artifact whose put evicted the one that was spoken."""
    spoken_as: SpokenAs
    """What was spoken, as a type of JSON value."""
    spoken_length: Count | None = None
    """Length in characters of a text that was spoken; of another value, of its JSON."""


class Offers(_Frozen):
    """What a refusal showed of one wanted kind, newest first."""

    kind: Kind
    """The wanted kind."""
    refs: Annotated[tuple[OfferedRef, ...], Field(max_length=MAX_OFFERED)]
    """The refs shown."""
    total: Count
    """How many were live in all."""


class DispatchRefused(Event):
    """At least one declared argument did not resolve, so the tool did not run. Holds all that the model was told."""

    type: Literal["dispatch.refused"] = "dispatch.refused"
    version: Literal[1] = 1
    tool: Name
    """The tool."""
    wording: Count
    """Which renderer made the sentence."""
    arguments: Annotated[tuple[JudgedArgument, ...], Field(max_length=MAX_WANTS)]
    """Every declared argument, the good ones too, in the order of the declaration."""
    offers: Annotated[tuple[Offers, ...], Field(max_length=MAX_WANTS)]
    """What was offered, once for each kind that a refused argument wanted."""
    sentence: Digest
    """Digest of the sentence that the model read."""
    spoken: Annotated[dict[str, str] | None, Private] = None
    """By argument: the text spoken, where it had at most 200 characters."""
    spoken_digests: Annotated[dict[str, str] | None, Private] = None
    """By argument: digest of what was spoken instead of a ref and is too long or not a text, such as a dataset inlined."""
    labels: Annotated[dict[str, str] | None, Private] = None
    """By offered ref: its label as shown."""
    idempotency: Idempotency | None = None
    """The dispatch's key, where one was given."""


# --- limits of results ---------------------------------------------------------------------------------------------------------


class CoverageItem(_Frozen):
    """One thing that was checked, or was not."""

    what: Annotated[str, Field(max_length=500)]
    """What it is."""
    why: Annotated[str | None, Field(max_length=500)] = None
    """Why it stands in its list."""


class CoverageDeclared(Event):
    """A tool said how far its result reaches, or that it looked and found nothing."""

    type: Literal["coverage.declared"] = "coverage.declared"
    version: Literal[1] = 1
    kind: Literal["absent", "coverage", "described"]
    """Which result helper spoke."""
    checked: Annotated[tuple[CoverageItem, ...] | None, Field(max_length=64), Private] = None
    """What the result stands on."""
    not_checked: Annotated[tuple[CoverageItem, ...] | None, Field(max_length=64), Private] = None
    """What could have been checked and was not."""
    cannot_cover: Annotated[tuple[CoverageItem, ...] | None, Field(max_length=64), Private] = None
    """What no repetition reaches."""
    looked_for: Annotated[str | None, Field(max_length=500), Private] = None
    """What was looked for and not found."""


class DeclarationRefused(Event):
    """A declaration or a result helper's keys were refused, so a limit did not reach the model as its author meant it."""

    type: Literal["declaration.refused"] = "declaration.refused"
    version: Literal[1] = 1
    helper: Name | None = None
    """Which helper refused."""
    at: Name | None = None
    """The nested object that the key belongs to."""
    key: Annotated[str | None, Field(max_length=MAX_NAME), Private] = None
    """The key, as it was printed."""
    meant: Name | None = None
    """The known key that it spells otherwise."""
    known: Annotated[tuple[Name, ...] | None, Field(max_length=100)] = None
    """The keys that are known there."""


# --- windows, answers, imports ---------------------------------------------------------------------------------------------


class ContextComposed(Event):
    """What the window of a model call held, where the runtime knows it."""

    type: Literal["context.composed"] = "context.composed"
    version: Literal[1] = 1
    model: Name | None = None
    """The model as reported."""
    parameters: Annotated[dict[str, str] | None, Private] = None
    """The call's parameters."""
    system: Annotated[Digest | None, Private] = None
    """Digest of the system prompt."""
    messages: Annotated[tuple[Count, ...] | None, Field(max_length=2_000)] = None
    """Indexes of the messages in the window."""
    calls: Annotated[tuple[Name, ...] | None, Field(max_length=500)] = None
    """Ids of the calls whose results were in the window."""
    refs: Annotated[tuple[Ref, ...] | None, Field(max_length=MAX_PARENTS)] = None
    """Refs whose data or ticket was in the window."""
    dropped: Annotated[tuple[Name, ...] | None, Field(max_length=500)] = None
    """Ids of the calls whose results were dropped to make room."""


class AnswerGiven(Event):
    """What the run said in the end. With a call_id in the envelope, what it did: the call is the answer."""

    type: Literal["answer.given"] = "answer.given"
    version: Literal[1] = 1
    answer_id: Name
    """The answer's id."""
    content: Annotated[Digest | None, Private] = None
    """Digest of the answer's text."""
    size: Count
    """The text's length in UTF-8 bytes."""
    message: Count | None = None
    """Index of the message that carries it."""
    cited: Annotated[tuple[Ref, ...] | None, Field(max_length=MAX_PARENTS)] = None
    """The refs that the runtime says it rests on."""
    found: Annotated[tuple[Ref, ...] | None, Field(max_length=MAX_PARENTS)] = None
    """The refs found in its text."""
    matches: Annotated[tuple[Match, ...] | None, Field(max_length=MAX_MATCHES)] = None
    """Where values of its text were seen before."""
    idempotency: Idempotency | None = None
    """The answer's key, where one was given."""


class AnswerJudged(Event):
    """What a person or a grader said of an answer. The newest verdict stands."""

    type: Literal["answer.judged"] = "answer.judged"
    version: Literal[1] = 1
    answer_id: Name
    """The answer."""
    verdict: Verdict
    """The verdict."""
    by: Annotated[str | None, Field(max_length=MAX_LABEL), Private] = None
    """Who judged."""
    note: Annotated[str | None, Field(max_length=4_000), Private] = None
    """What they said of it."""


class ImportNoted(Event):
    """Opens each imported run: it was not recorded here but read from a trace."""

    type: Literal["import.noted"] = "import.noted"
    version: Literal[1] = 1
    format: Name
    """The format the trace was read as."""
    source: Digest
    """Digest of the imported run's canonical JSON."""
    inferred: tuple[Name, ...] | None = None
    """What the importer concluded and the trace does not say."""
    lost: tuple[Name, ...] | None = None
    """What a native record would have and the trace does not."""
    idempotency: Idempotency | None = None
    """Format and source, so that importing twice changes nothing."""


KINDS: dict[tuple[str, int], type[Event]] = {
    (cls.model_fields["type"].default, cls.model_fields["version"].default): cls
    for cls in (
        LogOpened,
        LogGap,
        RunStarted,
        RunEnded,
        MessageNoted,
        CallStarted,
        CallEnded,
        ArtifactMinted,
        ArtifactRead,
        ArtifactPresented,
        ArtifactGone,
        ArtifactRefused,
        DispatchResolved,
        DispatchRefused,
        CoverageDeclared,
        DeclarationRefused,
        ContextComposed,
        AnswerGiven,
        AnswerJudged,
        ImportNoted,
    )
}
"""Every released event by (type, version). No entry is ever removed."""
