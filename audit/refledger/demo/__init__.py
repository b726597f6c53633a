"""A small agent, offline, that answers wrongly, and a log that says why. `refledger demo` plays it and tells it.

Its tools check data in and hand the model tickets: two snapshots of one table, a stale one and a fresh one, and a report. The
model is a rule and not a script: it passes the last ref that it read. What it reads is what the tools return, refusals
included, so what goes wrong goes wrong through the log's own sentences. `sales.csv` is the table; the truth is summed from it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from secrets import token_hex
from typing import Any, Protocol

from refledger import REFUSED_PREFIX, Call, Ledger, Refused, Run, Scope
from refledger_schema.events import Verdict
from refledger_schema.refs import refs_in

QUESTION = "What did we sell for in the third quarter of 2025?"
STALE, FRESH = "2025-08-31", "2025-10-02"
"""The days that the two snapshots reach to."""
MAX_TURNS = 12

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model asks for."""

    tool: str
    args: dict[str, Any]


class Model(Protocol):
    """All that the agent needs of a model: it reads a text, then calls a tool or answers."""

    def act(self, read: str) -> ToolCall | str: ...


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model asked for in a turn, and what it read in return."""

    call_id: str
    call: ToolCall
    read: str

    @property
    def refused(self) -> bool:
        return self.read.startswith(REFUSED_PREFIX)


@dataclass(frozen=True, slots=True)
class Played:
    """What there is to tell of one play. The log holds the rest."""

    run_id: str
    turns: tuple[Turn, ...]
    answer_id: str
    answer: str
    truth: str
    verdict: Verdict


class LastRefModel:
    """It plans which tools to call, and where one wants a dataset it passes the last ref that it read, whatever that names."""

    def __init__(self) -> None:
        self._plan = [
            ToolCall("get_sales", {"until": STALE}),
            ToolCall("get_sales", {"until": FRESH}),
            ToolCall("write_report", {}),
            ToolCall("sum_sales", {"dataset": ""}),
        ]
        self._last_ref = ""

    def act(self, read: str) -> ToolCall | str:
        self._last_ref = self.choose(refs_in(read)) or self._last_ref
        if read.startswith(REFUSED_PREFIX):
            return ToolCall("sum_sales", {"dataset": self._last_ref})
        if not self._plan:
            return f"In the third quarter we sold for {read}."
        call = self._plan.pop(0)
        return ToolCall(call.tool, {"dataset": self._last_ref}) if "dataset" in call.args else call

    def choose(self, refs: Sequence[str]) -> str | None:
        return refs[-1] if refs else None


def play(ledger: Ledger, model: Model | None = None) -> Played:
    """Let the agent answer once, in a conversation of its own, and judge the answer against the table."""
    with ledger.run(Scope(conversation=f"demo-{token_hex(4)}"), agent="demo", model="last-ref") as run:
        turns, text = _converse(run, model or LastRefModel())
        answer = run.answer(text)
    truth = _euros(third_quarter(table()))
    verdict: Verdict = "right" if truth in text else "wrong"
    ledger.judge(answer.answer_id, verdict, by="the table", note=f"It sums to {truth}.")
    return Played(run.run_id, turns, answer.answer_id, text, truth, verdict)


def table() -> list[Row]:
    """The whole table."""
    lines = resources.files(__package__).joinpath("sales.csv").read_text(encoding="utf-8").splitlines()
    return [{**row, "amount_eur": int(row["amount_eur"])} for row in csv.DictReader(lines)]


def third_quarter(rows: Sequence[Row]) -> int:
    return sum(row["amount_eur"] for row in rows if "2025-07-01" <= row["booked_on"] <= "2025-09-30")


# --- the agent -------------------------------------------------------------------------------------------------------------


def _converse(run: Run, model: Model) -> tuple[tuple[Turn, ...], str]:
    """Tool after tool until the model answers."""
    run.message("user", QUESTION)
    turns: list[Turn] = []
    act = model.act(QUESTION)
    while isinstance(act, ToolCall):
        if len(turns) == MAX_TURNS:
            raise RuntimeError(f"the model did not answer within {MAX_TURNS} turns")
        call_id = f"t{len(turns) + 1}"
        turns.append(Turn(call_id, act, _dispatch(run, act, call_id, turn=len(turns) + 1)))
        act = model.act(turns[-1].read)
    return tuple(turns), act


def _dispatch(run: Run, asked: ToolCall, call_id: str, *, turn: int) -> str:
    """Run one tool; what it declares is resolved first. Gives what the model reads."""
    tool, wants = _TOOLS[asked.tool]
    with run.call(asked.tool, call_id=call_id, args=asked.args, turn=turn) as call:
        args = asked.args
        if wants:
            outcome = call.resolve(wants)
            if isinstance(outcome, Refused):
                return str(call.result(outcome.refusal))
            args = outcome.args
        return str(call.result(tool(call, **args)))


def _get_sales(call: Call, until: str) -> str:
    rows = [row for row in table() if row["booked_on"] <= until]
    meta = call.put(rows, kind="dataset/rows", label=f"sales until {until}")
    return f"{len(rows)} orders until {until}, stored as {meta.ref}"


def _write_report(call: Call) -> str:
    meta = call.put(
        "Sales are booked on the day of the order. Refunds are not in the table.", kind="report/text", label="how to read the sales"
    )
    return f"a report, stored as {meta.ref}"


def _sum_sales(call: Call, dataset: Sequence[Row]) -> str:
    total = third_quarter(dataset)
    meta = call.put({"third_quarter_eur": total}, kind="number/total", label="third quarter")
    return f"{_euros(total)} ({meta.ref})"


_TOOLS: Mapping[str, tuple[Callable[..., str], Mapping[str, str] | None]] = {
    "get_sales": (_get_sales, None),
    "write_report": (_write_report, None),
    "sum_sales": (_sum_sales, {"dataset": "dataset/rows"}),
}


def _euros(amount: int) -> str:
    return f"EUR {amount:,}"
