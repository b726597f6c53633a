"""The command line is the library, spoken: each command parses, calls a method, and prints what it gave. docs/cli.md shows all.

Every error is one line on stderr. `refledger.cli.exits` says what the exit codes mean.
"""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from refledger import __version__
from refledger.cli import answers, artifacts, backtrack, demo, importing, judge, log, runs, sql, verify
from refledger.cli.console import complain, reader_left, say
from refledger.cli.exits import INTERRUPTED, OK, OUR_FAULT, REFUSED, SAID, exit_code_of
from refledger_schema.errors import RefledgerError

app = typer.Typer(
    name="refledger",
    help="The evidence store of AI agent runtimes: who was given which data, who was refused and why, and what an answer rests on.",
    epilog=SAID,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"refledger {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")] = False,
) -> None:
    pass


app.command("demo")(demo.demo)
app.command("log")(log.log)
app.command("runs")(runs.runs)
app.command("answers")(answers.answers)
app.command("artifacts")(artifacts.artifacts)
app.command("judge")(judge.judge)
app.command("backtrack")(backtrack.backtrack)
app.command("sql")(sql.sql)
app.command("import")(importing.import_)
app.command("verify")(verify.verify)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and say its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character shows another one; that is no reason to fail.
            stream.reconfigure(errors="replace")
    try:
        code = app(given or ["--help"], prog_name="refledger", standalone_mode=False)
        _flush()
    except typer.TyperException as error:
        complain(f"{error.format_message()} `refledger --help` lists the commands, and `refledger COMMAND --help` its options.")
        return REFUSED
    except RefledgerError as error:
        complain(" ".join([str(error), *getattr(error, "__notes__", ())]))
        return exit_code_of(error)
    except typer.Exit as error:
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception:
        traceback.print_exc()
        complain("that is a bug in Refledger; please report it with the lines above.")
        return OUR_FAULT
    return code or OK


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        reader_left()
