"""What stands behind a backtrack's rows: the answer's words and verdict, and each refusal as the model met it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from refledger.ledger import Ledger
from refledger_queries.backtrack import Backtrack
from refledger_schema.digests import digest_of_text
from refledger_schema.envelope import Recorded
from refledger_schema.events import AnswerGiven, AnswerJudged, DispatchRefused, JudgedArgument, OfferedRef
from refledger_schema.wording import dispatch_sentence

_DIGEST_AND_STATE = re.compile(r"(sha-256:[0-9a-f]{64}) (.*)")


@dataclass(frozen=True, slots=True)
class AnswerTold:
    """An answer and its newest verdict, with their texts."""

    answer_id: str
    run_id: str | None
    call_id: str | None
    """The call that the answer is, where it is one."""
    text: str | None
    """What was said; None where the answer is a call, or its text was not kept or is erased."""
    verdict: str
    by: str | None
    note: str | None


@dataclass(frozen=True, slots=True)
class Offer:
    """One line of what a refusal showed."""

    kind: str
    ref: str
    bytes: int
    label: str | None
    digest: str | None
    """None where this scope's log never minted it."""
    state: str
    """`live`, or how it has left since."""
    in_cone: bool
    """Whether the answer rests on it."""


@dataclass(frozen=True, slots=True)
class ArgumentTold:
    """One refused argument."""

    argument: str
    wanted: str
    spoken: str | None
    """What the model passed, where it was a text of at most 200 characters."""
    actual: str | None
    """The kind that was found instead."""
    reason: str | None
    cause: str | None
    effect: str
    """What the model did next, and how that went."""


@dataclass(frozen=True, slots=True)
class RefusalTold:
    """A refusal as the model met it."""

    event_id: str
    position: int
    run_id: str | None
    call_id: str | None
    tool: str
    sentence: str | None
    """What the model read, to the letter; None where the texts in it are erased."""
    arguments: tuple[ArgumentTold, ...]
    offers: tuple[Offer, ...]
    live: int
    """How many refs of the wanted kinds were live in all."""


def tell(ledger: Ledger, walked: Backtrack) -> tuple[AnswerTold, tuple[RefusalTold, ...]]:
    """The answer that a backtrack starts from, and its refusals in their order. Reads the answer's scope once."""
    (start,) = (row.position for row in walked.rows if row.node_kind == "answer")
    given = next(ledger.events(after=(start or 1) - 1))
    assert isinstance(given.event, AnswerGiven) and given.scope is not None
    refused = {row.position for row in walked.refusals}
    judged: AnswerJudged | None = None
    refusals = []
    for recorded in ledger.events(scope=given.scope):
        if isinstance(recorded.event, AnswerJudged) and recorded.event.answer_id == walked.answer_id:
            judged = recorded.event
        elif recorded.position in refused:
            refusals.append(_refusal(recorded, walked))
    text = None if given.event.content is None else ledger.content(given.scope, given.event.content)
    return _answer(given, given.event, text, judged), tuple(refusals)


def _answer(given: Recorded, event: AnswerGiven, text: str | None, judged: AnswerJudged | None) -> AnswerTold:
    return AnswerTold(
        answer_id=event.answer_id,
        run_id=given.run_id,
        call_id=given.call_id,
        text=text,
        verdict="unjudged" if judged is None else judged.verdict,
        by=None if judged is None else judged.by,
        note=None if judged is None else judged.note,
    )


def _refusal(recorded: Recorded, walked: Backtrack) -> RefusalTold:
    event = recorded.event
    assert isinstance(event, DispatchRefused)
    sentence = dispatch_sentence(event)
    effects = {row.argument: row.note for row in walked.refusals if row.node_id == recorded.event_id}
    return RefusalTold(
        event_id=recorded.event_id,
        position=recorded.position,
        run_id=recorded.run_id,
        call_id=recorded.call_id,
        tool=event.tool,
        sentence=sentence if digest_of_text(sentence) == event.sentence else None,
        arguments=tuple(_argument(event, argument, effects) for argument in event.arguments if argument.outcome == "refused"),
        offers=tuple(_offer(event, offers.kind, offered, walked) for offers in event.offers for offered in offers.refs),
        live=sum(offers.total for offers in event.offers),
    )


def _argument(event: DispatchRefused, argument: JudgedArgument, effects: Mapping[str | None, str]) -> ArgumentTold:
    return ArgumentTold(
        argument=argument.argument,
        wanted=argument.wanted,
        spoken=argument.ref or (event.spoken or {}).get(argument.argument),
        actual=argument.actual,
        reason=argument.reason,
        cause=argument.cause,
        effect=effects.get(argument.argument, "").partition(": ")[2],
    )


def _offer(event: DispatchRefused, kind: str, offered: OfferedRef, walked: Backtrack) -> Offer:
    row = next((row for row in walked.rows if row.node_kind == "artifact" and row.node_id == offered.ref), None)
    found = None if row is None else _DIGEST_AND_STATE.search(row.note)
    digest, state = (None, "" if row is None else row.note) if found is None else found.groups()
    return Offer(
        kind=kind,
        ref=offered.ref,
        bytes=offered.bytes,
        label=(event.labels or {}).get(offered.ref),
        digest=digest,
        state=state,
        in_cone=row is not None and row.in_cone,
    )
