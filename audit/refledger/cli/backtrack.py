"""`refledger backtrack`: from an answer back to what shaped it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from refledger.cli.console import identity, note, number, print_table, say, say_indented, say_json, short_digest, short_id, shortened
from refledger.cli.options import JsonDocument, LogPath, answer_named, opened
from refledger.cli.telling import AnswerTold, Offer, RefusalTold, tell
from refledger_queries.backtrack import Backtrack, BacktrackRow

_NODES = (number("depth"), identity("node"), "grade", "what", "via", number("at"))
_OFFERS = (identity("offered"), "label", number("bytes"), "digest", "state", "rested on")
_MAX_TEXT = 600
"""How much of an answer's text people are shown, in characters."""


def backtrack(
    answer: Annotated[str, typer.Argument(metavar="ANSWER", help="The answer's id, or `latest`.")],
    log: LogPath = None,
    as_json: JsonDocument = False,
) -> None:
    """Walk back from an answer to the data and the refusals that shaped it.

    `Ledger.backtrack` in Python, `backtrack(answer)` in SQL. docs/backtrack.md says what the rows mean.
    """
    with opened(log) as ledger:
        walked = ledger.backtrack(answer_named(ledger, answer))
        told, refusals = tell(ledger, walked)
    if as_json:
        say_json({**walked.as_dict(), "answer": asdict(told), "refusals": [asdict(refusal) for refusal in refusals]})
    else:
        _say(walked, told, refusals)


def _say(walked: Backtrack, told: AnswerTold, refusals: Sequence[RefusalTold]) -> None:
    _say_answer(told, walked)
    _say_nodes("What it rests on", walked.cone, told)
    for refusal in refusals:
        _say_refusal(refusal)
    _say_nodes("Earlier calls of the run, of which no more is known", walked.preceded, told)
    holes = [row for row in walked.coverage if row.count]
    say()
    say("What this cannot know:" if holes else "What this cannot know: the log has no hole that it knows of.")
    for hole in holes:
        say(f"  {hole.what}: {hole.count:,}" + (f" ({hole.note})" if hole.note else ""))
    note(f"{walked.scanned.rows:,} events read of log {walked.log_id}.")


def _say_answer(told: AnswerTold, walked: Backtrack) -> None:
    say(f"{told.answer_id} is judged {told.verdict}" + (f" by {told.by}" if told.by else "") + (f": {told.note}" if told.note else ""))
    if told.call_id is not None:
        act = next((row.note for row in walked.cone if row.node_id == f"{told.run_id}/{told.call_id}"), "")
        say_indented(f"The answer is what it did: call {told.call_id} {act}")
    elif told.text is None:
        say_indented("(its text was not kept, or is erased)")
    else:
        say_indented(
            told.text if len(told.text) <= _MAX_TEXT else f"{told.text[:_MAX_TEXT]}… ({len(told.text):,} characters; --json has them all)"
        )


def _say_nodes(title: str, rows: Sequence[BacktrackRow], told: AnswerTold) -> None:
    if rows:
        say()
        say(f"{title}: {len(rows):,}")
        print_table(_NODES, (_node(row, told) for row in rows))


def _node(row: BacktrackRow, told: AnswerTold) -> tuple[str, ...]:
    return (
        "" if row.depth is None else str(row.depth),
        # Refs speak for themselves; within the answer's run its calls and messages need no run.
        row.node_id if row.node_kind == "artifact" else f"{row.node_kind} {_within(row.node_id, told)}",
        (row.grade or "") + ("" if row.argument is None else f" as {row.argument}"),
        shortened(row.note),
        "" if row.via_id is None else short_id(_within(row.via_id, told)),
        "" if row.position is None else str(row.position),
    )


def _say_refusal(refusal: RefusalTold) -> None:
    say()
    say(f"Refused on the way: {refusal.tool}, call {refusal.call_id}, at {refusal.position}")
    for argument in refusal.arguments:
        say(f"  {argument.argument}: {argument.reason} ({argument.cause}); next: {argument.effect}")
    if refusal.sentence is None:
        say("  What the model read cannot be shown: its texts are erased.")
    else:
        say("  The model read:")
        say_indented(refusal.sentence)
    say(f"  Offered: {len(refusal.offers):,} of {refusal.live:,} live")
    print_table(_OFFERS, (_offer(offer) for offer in refusal.offers))


def _offer(offer: Offer) -> tuple[str, ...]:
    digest = "" if offer.digest is None else short_digest(offer.digest)
    return (offer.ref, offer.label or "", f"{offer.bytes:,}", digest, offer.state, "yes" if offer.in_cone else "no")


def _within(node_id: str, told: AnswerTold) -> str:
    return node_id if told.run_id is None else node_id.removeprefix(f"{told.run_id}/").removeprefix(f"{told.run_id}#")
