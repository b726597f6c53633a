"""`refledger demo`: a wrong answer, and the way back to why, in one screen."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from refledger.cli.console import say, shortened
from refledger.cli.options import LogPath, opened
from refledger.cli.telling import Offer, RefusalTold, tell
from refledger.demo import QUESTION, Played, Turn, play
from refledger_queries.backtrack import Backtrack

DEFAULT_LOG = "demo.db"
_WIDTH = 100
_QUERY = "SELECT tool, cause, offered, effect FROM refusals"


def demo(log: LogPath = None) -> None:
    """Play a small agent that answers wrongly, and walk back to why. Needs no model and no network.

    Without --log and REFLEDGER_LOG the log is demo.db in the current folder. Playing again adds a run to it.
    """
    path = log or DEFAULT_LOG
    with opened(path, create=True) as ledger:
        played = play(ledger)
        walked = ledger.backtrack(played.answer_id)
        _, refusals = tell(ledger, walked)
    for line in (*_story(played), *_way_back(walked, refusals), *_next(path)):
        say(line)


def _story(played: Played) -> Iterator[str]:
    yield "REFLEDGER DEMO: an agent answers wrongly, and its log says why."
    yield ""
    yield f"The question: {QUESTION}"
    yield "The tools keep data in the log and hand out tickets (refs). The model passes the last ref it read."
    yield ""
    for turn in played.turns:
        yield from _turn(turn)
    yield ""
    yield f"The answer:   {played.answer}"
    yield f"The truth:    {played.truth}, summed from the table. The answer is judged {played.verdict}."


def _turn(turn: Turn) -> Iterator[str]:
    spoken = ", ".join(f"{name}={value}" for name, value in turn.call.args.items())
    asked = f"  {turn.call_id}  {turn.call.tool}({spoken})"
    if not turn.refused:
        yield f"{asked}: {turn.read}"
        return
    yield f"{asked}: refused, and not run. The model reads:"
    yield from textwrap.wrap(turn.read, _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)


def _way_back(walked: Backtrack, refusals: Sequence[RefusalTold]) -> Iterator[str]:
    yield ""
    yield "THE WAY BACK, asked of the log alone: each step from the answer, and how well it is known."
    for row in walked.cone:
        yield f"  {row.depth}  {row.node_id.rpartition('/')[2]:<26}  {row.grade:<9}  {shortened(row.note)}"
    for refusal in refusals:
        yield from _refusal(refusal)


def _refusal(refusal: RefusalTold) -> Iterator[str]:
    (argument,) = refusal.arguments
    yield f"On the way call {refusal.call_id} of {refusal.tool} was refused ({argument.reason}); next: {argument.effect}."
    yield f"That refusal offered {len(refusal.offers)} of {refusal.live} live datasets, newest first. The answer rests on the stale one:"
    yield from (_offered(offer) for offer in refusal.offers if offer.in_cone)
    yield "The fresh one was live and offered too, and passed over:"
    yield from (_offered(offer) for offer in refusal.offers if not offer.in_cone)


def _offered(offer: Offer) -> str:
    return f"  '{offer.label}'  {offer.digest}"


def _next(path: str) -> Iterator[str]:
    command, log = _command(), shlex.quote(path)
    yield ""
    yield f"The log is {path}. Try next:"
    yield f"  {command} backtrack latest --log {log}"
    yield f'  {command} sql "{_QUERY}" --log {log}'
    yield f"  {command} verify --log {log}"


def _command() -> str:
    """How this refledger is called from the current folder."""
    script = Path(sys.executable).with_name("refledger")
    if not script.is_file():
        return f"{shlex.quote(sys.executable)} -m refledger"
    found = shutil.which("refledger")
    if found is not None and os.path.samefile(found, script):
        return "refledger"
    inside = script.is_relative_to(Path.cwd())
    return shlex.quote(str(script.relative_to(Path.cwd()) if inside else script))
