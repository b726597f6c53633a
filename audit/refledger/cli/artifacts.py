"""`refledger artifacts`: the artifacts, newest first."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from refledger.cli.console import identity, note, number, print_table, say_json, short_digest
from refledger.cli.options import JsonLines, Limit, LogPath, opened
from refledger.ledger import system_clock
from refledger_schema.scopes import scope_of
from refledger_store.reads import Artifact

_COLUMNS = (identity("ref"), "kind", "state", number("bytes"), "digest", "scope", number("minted at"), "label")


def artifacts(
    log: LogPath = None,
    scope: Annotated[
        str | None,
        typer.Option("--scope", metavar="KEY", help="Only what is live in this scope, by its key: tenant/principal/conversation."),
    ] = None,
    limit: Limit = 50,
    as_json: JsonLines = False,
) -> None:
    """List the artifacts, newest first, those that are gone too. `Ledger.artifacts` in Python, `artifacts` in SQL."""
    now_us = system_clock()
    with opened(log) as ledger:
        found = ledger.artifacts(None if scope is None else scope_of(scope), limit=limit)
    if as_json:
        for artifact in found:
            say_json({**asdict(artifact), "state": _state(artifact, now_us)})
    elif not print_table(
        _COLUMNS,
        (
            (
                artifact.ref,
                artifact.kind,
                _state(artifact, now_us),
                f"{artifact.bytes:,}",
                short_digest(artifact.digest),
                artifact.scope,
                str(artifact.minted),
                artifact.label or "",
            )
            for artifact in found
        ),
    ):
        note("No artifact there.")


def _state(artifact: Artifact, now_us: int) -> str:
    """live, damaged, or how it left. What has expired is dead, whether or not the log has swept it yet."""
    if artifact.gone_cause is not None:
        return artifact.gone_cause
    if not artifact.live(now_us):
        return "expired"
    return "live" if artifact.corrupt is None else "damaged"
