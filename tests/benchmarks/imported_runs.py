"""Does a backtrack over imported runs hold the step that a person blamed, and how small is it?

    python -m tests.benchmarks.imported_runs

The runs and their labels are read from ../shared/traces/tau_retail and belong to others; see the README there.

How it is counted. A step is a message of the run. `calls` are the messages that asked for a call in the cone: a call and its result are
one event, so only the asking message counts. `and messages` adds the messages that the cone names, and the answer's own. `and results`
adds the messages that carry the results of cone calls as well, which is the most that one can count. A label is in the cone if it is the
asking message or the result of a cone call, or the answer's own message; one that the cone names as a message only is shown apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from refledger import Ledger
from refledger.importers import FORMATS, ImportedRun
from refledger_queries.backtrack import BacktrackRow
from refledger_schema.events import AnswerGiven, CallEnded, CallStarted, MessageNoted

ROOT = Path(__file__).parents[2]
TRACES = ROOT.parent / "shared" / "traces" / "tau_retail"
RUNS = TRACES / "failed_runs.json"
LABELS = TRACES / "human_labels.json"
WRITE_TOOLS = ("cancel_*", "modify_*", "return_*", "exchange_*")
REFERENCE = "a naive value match over the whole set of 29 runs (../shared/reference/agent-runtimes.md): 10 of 13, median cone 0.31"
KINDS = ("tool call", "assistant text", "user")


@dataclass(frozen=True, slots=True)
class Label:
    """What a person said of a run: the message that is the root cause, and every message at fault."""

    root: int
    failures: frozenset[int]


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: its size, its cone as message indexes, and its label."""

    task: str
    steps: int
    answer: int
    all_calls: frozenset[int]
    calls: frozenset[int]
    messages: frozenset[int]
    results: frozenset[int]
    label: Label
    kind: str
    ended_in_call: bool
    """Whether the answer is a call because the run ended in it, and not because it wrote what it should not have."""

    @property
    def cone(self) -> frozenset[int]:
        return self.calls | self.results | {self.answer}

    @property
    def hit(self) -> bool:
        return self.label.root in self.cone

    @property
    def found(self) -> str:
        if self.hit:
            return "the answer" if self.label.root == self.answer else "yes"
        return "as a message" if self.label.root in self.messages else "no"

    def shares(self) -> tuple[float, float, float]:
        sets = (self.calls, self.calls | self.messages | {self.answer}, self.cone | self.messages)
        calls, messages, results = (len(indexes) / self.steps for indexes in sets)
        return calls, messages, results


def main() -> None:
    if not RUNS.exists():
        print("The traces are not here: expected ../shared/traces/tau_retail beside this folder. Nothing was measured.")
        return
    runs = list(measured())
    _print_runs(runs)
    _print_totals(runs)


def measured() -> Iterator[Measured]:
    """Import every run into one log, and walk back from its answer."""
    labels = _labels()
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "runs.db") as ledger:
        for record in FORMATS["openai-chat"].read_runs(RUNS):
            run = FORMATS["openai-chat"].imported_run(record, write_tools=WRITE_TOOLS)
            task = str(record["task_id"])
            ledger.record(run)
            yield _measured(task, run, cone_of(ledger, run), labels[task])


def cone_of(ledger: Ledger, run: ImportedRun) -> Sequence[BacktrackRow]:
    """What the run's answer rests on. The one place that says by what it is computed."""
    answer = next(draft.event for draft in run.drafts if isinstance(draft.event, AnswerGiven))
    return ledger.backtrack(answer.answer_id).cone


def _measured(task: str, run: ImportedRun, cone: Sequence[BacktrackRow], label: Label) -> Measured:
    events = [(draft.call_id, draft.event) for draft in run.drafts]
    asked = {call: event.message or 0 for call, event in events if isinstance(event, CallStarted)}
    ended = {call: event.message or 0 for call, event in events if isinstance(event, CallEnded)}
    tools = {call: event.tool for call, event in events if isinstance(event, CallStarted)}
    answering = [call for call, event in events if isinstance(event, AnswerGiven)]
    roles = {event.index: event.role for _, event in events if isinstance(event, MessageNoted)}
    calls = {row.node_id.partition("/")[2] for row in cone if row.node_kind == "call"}
    return Measured(
        task=task,
        steps=run.steps,
        answer=next(event.message or 0 for _, event in events if isinstance(event, AnswerGiven)),
        all_calls=frozenset(asked.values()),
        calls=frozenset(asked[call] for call in calls),
        messages=frozenset(int(row.node_id.partition("#")[2]) for row in cone if row.node_kind == "message"),
        results=frozenset(ended[call] for call in calls if call in ended),
        label=label,
        kind=_kind(label.root, roles, {*asked.values(), *ended.values()}),
        ended_in_call=any(not any(fnmatchcase(tools[call], pattern) for pattern in WRITE_TOOLS) for call in answering if call is not None),
    )


def _kind(step: int, roles: Mapping[int, str], of_calls: set[int]) -> str:
    if step in of_calls:
        return "tool call"
    return "assistant text" if roles.get(step) == "assistant" else roles.get(step, "unknown")


def _labels() -> dict[str, Label]:
    """By task. The labels count messages from 1, as the runs do."""
    labels = {}
    for run in json.loads(LABELS.read_text(encoding="utf-8")):
        steps = {failure["failure_id"]: failure["step_number"] for failure in run["failures"]}
        labels[str(run["trajectory_id"])] = Label(steps[run["root_cause"]["failure_id"]], frozenset(steps.values()))
    return labels


# A naive match, to compare with --------------------------------------------------------------------------------------------------------


def naive_cone(messages: Sequence[Mapping[str, Any]], answer: int) -> set[int]:
    """What the simplest match finds: every earlier result or user message that a value is a part of, as text, back to the start."""
    asking = {call["id"]: place for place, message in enumerate(messages, 1) for call in message.get("tool_calls") or ()}
    event = {place: asking.get(message.get("tool_call_id"), place) for place, message in enumerate(messages, 1)}
    texts = {place: message.get("content") or "" for place, message in enumerate(messages, 1) if message["role"] in ("user", "tool")}
    cone: set[int] = set()
    pending = [answer]
    while pending:
        step = pending.pop()
        if step not in cone:
            cone.add(step)
            values = _naive_values(messages[step - 1], said=step == answer)
            pending += [event[place] for place, text in texts.items() if place < step and any(value in text for value in values)]
    return cone


def _naive_values(message: Mapping[str, Any], *, said: bool) -> list[str]:
    calls = message.get("tool_calls") or ()
    if not calls:
        return [word for word in re.findall(r"[\w.@-]+", message.get("content") or "") if said and any(map(str.isdigit, word))]
    pending = [json.loads(call["function"]["arguments"]) for call in calls]
    values = []
    while pending:
        value = pending.pop()
        if isinstance(value, dict | list):
            pending += value.values() if isinstance(value, dict) else value
        elif value is not None and len(str(value)) >= 3:
            values.append(str(value))
    return values


# Printing ------------------------------------------------------------------------------------------------------------------------------


def _print_runs(runs: Sequence[Measured]) -> None:
    print("task  steps  cone: calls  and messages  and results   share  label  of kind         in the cone")
    for run in runs:
        calls, messages, results = (round(share * run.steps) for share in run.shares())
        print(
            f"{run.task:>4}  {run.steps:>5}  {calls:>11}  {messages:>12}  {results:>11}  {run.shares()[0]:>6.2f}"
            f"  {run.label.root:>5}  {run.kind:<14}  {run.found}"
        )


def _print_totals(runs: Sequence[Measured]) -> None:
    print()
    print("labels on       runs  in the cone  of them the answer  median share: calls  and messages  and results")
    for kind in (*KINDS, "all but user", "all"):
        _print_total(kind, [run for run in runs if kind in ("all", run.kind) or (kind == "all but user" and run.kind != "user")])
    tool_calls = [run for run in runs if run.kind == "tool call"]
    chance = sum(len(run.calls) / len(run.all_calls) for run in tool_calls)
    naive = _naive(tool_calls)
    print()
    print(f"Of the {len(tool_calls)} labels on tool calls, {sum(run.hit for run in tool_calls)} are in the cone.")
    print(f"  As many calls drawn by chance from each run would hold {chance:.1f} of them.")
    print(f"  Labels later than the answer, which no backtrack from it holds: {sum(run.label.root > run.answer for run in tool_calls)}.")
    last = [run for run in tool_calls if run.ended_in_call]
    print(f"  Answers that are calls since the run ended in one: {len(last)}; of their labels in the cone: {sum(run.hit for run in last)}.")
    print(f"  A naive match from the same answers: {sum(hit for hit, _ in naive)}, median share {median(share for _, share in naive):.2f}")
    print("  (each value as a part of any earlier result or user message; calls and messages counted).")
    print(f"  The reference, {REFERENCE}.")
    print(f"Runs whose cone holds any failure that a person named, not only the root cause: {_any(runs)} of {len(runs)}.")
    print("Labels on a user's turn say that the user asked wrongly: no store of evidence can find those.")


def _print_total(kind: str, runs: Sequence[Measured]) -> None:
    if not runs:
        return
    calls, messages, results = (median(shares) for shares in zip(*(run.shares() for run in runs), strict=True))
    hits = sum(run.hit for run in runs)
    itself = sum(run.found == "the answer" for run in runs)
    print(f"{kind:<14}  {len(runs):>4}  {hits:>11}  {itself:>18}  {calls:>19.2f}  {messages:>12.2f}  {results:>11.2f}")


def _naive(runs: Sequence[Measured]) -> list[tuple[bool, float]]:
    records = {str(record["task_id"]): record["traj"] for record in json.loads(RUNS.read_text(encoding="utf-8"))}
    cones = [(run, naive_cone(records[run.task], run.answer)) for run in runs]
    return [(run.label.root in cone, len(cone) / run.steps) for run, cone in cones]


def _any(runs: Sequence[Measured]) -> int:
    return sum(bool(run.label.failures & run.cone) for run in runs)


if __name__ == "__main__":
    main()
