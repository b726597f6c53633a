"""The recorded door of dispatch: judge every declared argument under the lock, and append what came of it as one event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from refledger.contract import ArtifactMeta
from refledger.payloads import text_of
from refledger.recorder import Place, Recorder, idempotency, replayed
from refledger.verbs import absence, deliver, found, invalid, meta_of
from refledger.wants import (
    Judgement,
    Refused,
    Resolved,
    Schema,
    ToolWants,
    damaged_refs,
    judged,
    offers_of,
    refusal_of,
    refused_event,
    refused_kinds,
    resolution,
    slips,
)
from refledger_schema.envelope import event_of
from refledger_schema.events import MAX_OFFERED, DispatchRefused, DispatchResolved, Idempotency, Offers, ResolvedArgument
from refledger_schema.scopes import Scope
from refledger_store.append import Decision, Locked
from refledger_store.reads import Reads


def resolve(
    recorder: Recorder, place: Place, wants: ToolWants, args: Mapping[str, Any], input_schema: Schema | None, key: str | None = None
) -> Resolved | Refused:
    """Resolve a call's ref arguments and record it, closed: no event, no data.

    Payloads are read and hashed before the lock; who is live is judged under it.
    """
    tool = place.tool or "?"
    used = None if key is None else idempotency(key, _request(tool, wants, args))
    judgements = tuple(judged(tool, wants, args, input_schema))
    with recorder.store.reading() as reads:
        now_us = recorder.store.clock()
        loaded = {
            judgement.argument: _looked_up(reads, place.scope, judgement, now_us)
            for judgement in judgements
            if judgement.outcome == "resolved"
        }

    def decide(state: Locked) -> Decision[Resolved | Refused]:
        settled = [_settled(state, place.scope, judgement, loaded) for judgement in judgements]
        before = replayed(state, place.scope, "resolve", used)
        again = None if before is None else _again(state, before, args, settled)
        # What was resolved before and is gone since is judged anew, under the key that is already spent.
        return Decision(again) if again is not None else _decide(state, recorder, place, args, settled, None if before else used)

    return recorder.append(decide, place)


def _decide(
    state: Locked,
    recorder: Recorder,
    place: Place,
    args: Mapping[str, Any],
    judgements: Sequence[Judgement],
    used: Idempotency | None,
) -> Decision[Resolved | Refused]:
    tool = place.tool or "?"
    try:
        if not any(judgement.outcome == "refused" for judgement in judgements):
            return Decision(resolution(args, judgements), [place.draft(_resolved_event(tool, judgements, used))])
        damaged = damaged_refs(judgements)
        offers = [_offers(state, place.scope.key, kind, damaged) for kind in refused_kinds(judgements)]
        event = refused_event(tool, judgements, offers, used, recorder.clean)
    except ValidationError as error:
        raise invalid(error) from None
    return Decision(refusal_of(event), [place.draft(event)])


def _again(state: Locked, position: int, args: Mapping[str, Any], judgements: Sequence[Judgement]) -> Resolved | Refused | None:
    """What the same request was told before, if it still holds: the same refs resolve, or the same sentence can be made again."""
    row = state.event(position)
    event = None if row is None else event_of(row)
    if isinstance(event, DispatchRefused):
        return None if row is None or row.salt is None else refusal_of(event)
    if isinstance(event, DispatchResolved):
        refs = [argument.ref for argument in event.arguments]
        resolved = [judgement.meta.ref for judgement in judgements if judgement.meta is not None and judgement.outcome == "resolved"]
        if refs == resolved and not any(judgement.outcome == "refused" for judgement in judgements):
            return resolution(args, judgements)
    return None


def _request(tool: str, wants: ToolWants, args: Mapping[str, Any]) -> list[str]:
    """What a dispatch asks for. What the model spoke belongs to it: another ref is another request.

    Of a value that is no JSON, its type stands for it: every such value of a type is refused in the same words.
    """
    spoken = [part for name in wants if name in args for part in (name, type(args[name]).__name__, _text(args[name]))]
    return [tool, *(part for pair in wants.items() for part in pair), *spoken]


def _text(spoken: object) -> str:
    return spoken if isinstance(spoken, str) else text_of(spoken) or ""


def _looked_up(reads: Reads, scope: Scope, judgement: Judgement, now_us: int) -> Judgement:
    """A spoken text as the log and the payloads judge it; the kind is judged from the ticket, before any payload is read."""
    spoken: str = judgement.spoken
    meta, cause = found(reads, scope, spoken, now_us)
    if meta is None:
        return _absent(reads, scope, judgement, cause, now_us)
    if meta.kind != judgement.wanted:
        return replace(judgement, outcome="refused", cause="wrong_kind", meta=meta)
    delivery = deliver(reads, scope, meta)
    if delivery.damage is not None:
        return replace(judgement, outcome="refused", cause=delivery.damage, meta=meta)
    return replace(judgement, meta=meta, data=delivery.data)


def _settled(state: Locked, scope: Scope, judgement: Judgement, loaded: Mapping[str, Judgement]) -> Judgement:
    """The judgement under the lock: what was loaded stands if its artifact is still live; anything else is looked up again."""
    if judgement.outcome != "resolved":
        return judgement
    before = loaded[judgement.argument]
    if before.meta is not None:
        cause = absence(state.artifact(before.meta.ref), scope, state.now_us)
        return before if cause is None else _absent(state, scope, judgement, cause, state.now_us)
    return _looked_up(state, scope, judgement, state.now_us)


def _absent(reads: Reads, scope: Scope, judgement: Judgement, cause: Any, now_us: int) -> Judgement:
    spoken: str = judgement.spoken
    meant = next((ref for ref in slips(spoken) if found(reads, scope, ref, now_us)[0] is not None), None)
    if meant is not None:
        return replace(judgement, outcome="refused", cause="near_miss", meant=meant, meta=None, data=None)
    artifact = reads.artifact(spoken) if cause == "evicted" else None
    gone_by = None if artifact is None else artifact.gone_by
    return replace(judgement, outcome="refused", cause=cause, gone_by=gone_by, meta=None, data=None)


def _offers(state: Locked, scope: str, kind: str, damaged: frozenset[str]) -> tuple[Offers, dict[str, str]]:
    """What may be offered: what is live and not known to be damaged, be it only since this dispatch."""
    rows = state.live(scope, kind, now_us=state.now_us, limit=MAX_OFFERED + len(damaged))
    newest: list[ArtifactMeta] = [meta_of(state, row) for row in rows if row.ref not in damaged]
    found_now = sum(1 for ref in damaged if (row := state.artifact(ref)) is not None and row.kind == kind and row.corrupt is None)
    return offers_of(kind, newest, state.live_total(scope, kind, now_us=state.now_us) - found_now)


def _resolved_event(tool: str, judgements: Sequence[Judgement], used: Idempotency | None) -> DispatchResolved:
    return DispatchResolved(
        tool=tool,
        idempotency=used,
        arguments=tuple(
            ResolvedArgument(
                argument=judgement.argument,
                kind=judgement.meta.kind,
                ref=judgement.meta.ref,
                digest=judgement.meta.digest,
                bytes=judgement.meta.bytes,
                verified=True,
            )
            for judgement in judgements
            if judgement.meta is not None
        ),
    )
