"""The command line is the library, spoken: each command parses, calls one method, and prints what it gave."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from refledger import __version__
from refledger.cli import answers, artifacts, asking, backtrack, checking, demo, importing, judging, log, runs
from refledger.cli.console import READER_LEFT, complain, say
from refledger_schema.errors import ArtifactIntegrity, LogCorrupt, RefledgerError, StoreFault

OK, DAMAGED, REFUSED, STORE_FAILED, INTERRUPTED, OUR_FAULT = 0, 1, 2, 3, 130, 70
EXIT_CODES = (
    "Exit codes: 0 done; 1 the log is damaged (verify found it, or the command met it); 2 the request was refused "
    "(options, paths, ids, SQL, traces); 3 the store failed (lock, disk, permissions)."
)

app = typer.Typer(
    name="refledger",
    help="The evidence store of agent runtimes. Every command works on one log, named by --log or REFLEDGER_LOG.",
    epilog=EXIT_CODES,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"refledger {__version__}")
        raise typer.Exit


@app.callback()
def _options(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")] = False) -> None:
    pass


for name, command, panel in (
    ("demo", demo.demo, "Start here"),
    ("log", log.log, "Read"),
    ("runs", runs.runs, "Read"),
    ("answers", answers.answers, "Read"),
    ("artifacts", artifacts.artifacts, "Read"),
    ("backtrack", backtrack.backtrack, "Ask"),
    ("sql", asking.sql, "Ask"),
    ("judge", judging.judge, "Record"),
    ("import", importing.import_, "Record"),
    ("verify", checking.verify, "Check"),
):
    app.command(name, rich_help_panel=panel)(command)
