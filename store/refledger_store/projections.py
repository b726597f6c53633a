"""What each event does to the projections. They are functions of the events alone, so they can be thrown away and rebuilt.

One function an event type, in `EFFECTS`; a type that is not there changes nothing but its scope's count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refledger_schema.envelope import Row
from refledger_schema.events import (
    AnswerGiven,
    AnswerJudged,
    ArtifactGone,
    ArtifactMinted,
    ArtifactPresented,
    ArtifactRead,
    ArtifactRefused,
    DispatchRefused,
    DispatchResolved,
    Event,
    Idempotency,
    ImportNoted,
    RunEnded,
    RunStarted,
)
from refledger_store.reads import Connection, Reads
from refledger_store.statements import statements

_SQL = statements("projections")
DAMAGE = ("corrupt", "undecodable")
"""The causes by which an event says that a payload is damaged."""


class Projection:
    """Applies events to the projections over one connection, inside the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._reads = Reads(connection)

    def apply(self, row: Row, event: Event) -> None:
        """The effect of one event. The scope's count is `count`'s."""
        effect = EFFECTS.get(type(event))
        if effect is not None:
            effect(self, row, event)

    def count(self, scope: str, events: int) -> None:
        """The scope's newest sequence number."""
        self._run("count_scope_event", scope=scope, events=events)

    # --- one function an event type --------------------------------------------------------------------------------------

    def _minted(self, row: Row, event: ArtifactMinted) -> None:
        self._run(
            "mint",
            ref=event.ref,
            scope=row.scope,
            kind=event.kind,
            media_type=event.media_type,
            shape=event.shape,
            bytes=event.bytes,
            digest=event.digest,
            label=event.label,
            expires_us=event.expires_us,
            minted_us=row.recorded_us,
            run_id=row.run_id,
            call_id=row.call_id,
            tool=event.tool,
            minted=row.position,
        )
        self._run("count_live", scope=row.scope, count=1, bytes=event.bytes)
        self._run("count_kind", scope=row.scope, kind=event.kind, count=1)
        for ordinal, parent in enumerate(event.parents or ()):
            self._run("add_edge", child=event.ref, ordinal=ordinal, parent=parent.ref, how=parent.how, position=row.position)
        self._receipt(row, "put", event.idempotency)

    def _gone(self, row: Row, event: ArtifactGone) -> None:
        artifact = self._reads.artifact(event.ref)
        if artifact is None or artifact.gone is not None or artifact.scope != row.scope:
            return
        self._run("leave", ref=event.ref, position=row.position, cause=event.cause, forced_by=event.forced_by)
        self._run("count_live", scope=row.scope, count=-1, bytes=-artifact.bytes)
        if artifact.corrupt is None:
            self._run("count_kind", scope=row.scope, kind=artifact.kind, count=-1)

    def _read(self, row: Row, event: ArtifactRead | ArtifactPresented) -> None:
        self._run("use", ref=event.ref, scope=row.scope, position=row.position)

    def _artifact_refused(self, row: Row, event: ArtifactRefused) -> None:
        if event.cause in DAMAGE:
            self._damaged(row, event.ref)

    def _resolved(self, row: Row, event: DispatchResolved) -> None:
        for argument in event.arguments:
            self._run("use", ref=argument.ref, scope=row.scope, position=row.position)
        self._receipt(row, "resolve", event.idempotency)

    def _refused(self, row: Row, event: DispatchRefused) -> None:
        for argument in event.arguments:
            if argument.cause in DAMAGE:
                self._damaged(row, argument.ref)
        self._receipt(row, "resolve", event.idempotency)

    def _damaged(self, row: Row, ref: str | None) -> None:
        artifact = None if ref is None else self._reads.artifact(ref)
        if artifact is None or artifact.corrupt is not None or artifact.scope != row.scope:
            return
        self._run("know_corrupt", ref=artifact.ref, position=row.position)
        if artifact.gone is None:
            self._run("count_kind", scope=row.scope, kind=artifact.kind, count=-1)

    def _run_started(self, row: Row, event: RunStarted) -> None:
        self._run(
            "start_run",
            run_id=row.run_id,
            scope=row.scope,
            agent=event.agent,
            model=event.model,
            parent_run=event.parent_run,
            parent_call=event.parent_call,
            started=row.position,
        )

    def _run_ended(self, row: Row, event: RunEnded) -> None:
        self._run("end_run", run_id=row.run_id, position=row.position, outcome=event.outcome)

    def _answered(self, row: Row, event: AnswerGiven) -> None:
        self._run("give_answer", answer_id=event.answer_id, scope=row.scope, run_id=row.run_id, call_id=row.call_id, given=row.position)
        self._receipt(row, "answer", event.idempotency)

    def _judged(self, row: Row, event: AnswerJudged) -> None:
        self._run("judge_answer", answer_id=event.answer_id, verdict=event.verdict, position=row.position)

    def _imported(self, row: Row, event: ImportNoted) -> None:
        self._receipt(row, "import", event.idempotency)

    def _receipt(self, row: Row, operation: str, used: Idempotency | None) -> None:
        if used is not None:
            self._run("add_receipt", scope=row.scope, operation=operation, key=used.key, request=used.request, position=row.position)

    def _run(self, name: str, /, **parameters: Any) -> None:
        self._connection.execute(_SQL[name], parameters)


EFFECTS: dict[type[Event], Callable[[Projection, Row, Any], None]] = {
    ArtifactMinted: Projection._minted,
    ArtifactGone: Projection._gone,
    ArtifactRead: Projection._read,
    ArtifactPresented: Projection._read,
    ArtifactRefused: Projection._artifact_refused,
    DispatchResolved: Projection._resolved,
    DispatchRefused: Projection._refused,
    RunStarted: Projection._run_started,
    RunEnded: Projection._run_ended,
    AnswerGiven: Projection._answered,
    AnswerJudged: Projection._judged,
    ImportNoted: Projection._imported,
}
