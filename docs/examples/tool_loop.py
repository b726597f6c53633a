"""How a runtime dispatches a model's tool calls through Refledger. Run it: python tool_loop.py

The model here is a list of turns; yours answers after each. What matters is `dispatch`: the one place where arguments that are refs
become data, or the tool does not run and the model reads why.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from refledger import Call, Ledger, Refused, Run, Scope, assert_tool_wants

SCHEMA = {"type": "object", "properties": {"before": {"type": "string"}, "after": {"type": "string"}}, "required": ["before", "after"]}


@dataclass
class Tool:
    run: Callable[..., str]
    wants: dict[str, str] | None = None
    input_schema: dict[str, Any] | None = None


def fetch(call: Call, day: str) -> str:
    meta = call.put({"day": day, "visits": len(day) * 100}, kind="visits/day", label=f"visits of {day}")
    return f"fetched, stored as {meta.ref}"


def compare(call: Call, before: dict[str, Any], after: dict[str, Any]) -> str:
    return f"from {before['visits']} to {after['visits']} visits"


TOOLS = {"fetch": Tool(fetch), "compare": Tool(compare, wants={"before": "visits/day", "after": "visits/day"}, input_schema=SCHEMA)}
for name, tool in TOOLS.items():
    assert_tool_wants(name, tool.wants, tool.input_schema)  # a declaration that cannot be honoured fails here, not at a dispatch


def dispatch(run: Run, turn: int, call_id: str, name: str, args: dict[str, Any]) -> str:
    """Run one tool call of a turn, and give what the model reads."""
    tool = TOOLS[name]
    with run.call(name, call_id=call_id, args=args, turn=turn) as call:
        if tool.wants:
            outcome = call.resolve(tool.wants, input_schema=tool.input_schema)
            if isinstance(outcome, Refused):
                return str(call.result(outcome.refusal))
            args = outcome.args
        return str(call.result(tool.run(call, **args)))


def main() -> None:
    with Ledger.open("tools.db") as ledger, ledger.run(Scope(conversation="visits"), agent="example") as run:
        read = [dispatch(run, 1, "a", "fetch", {"day": "Monday"}), dispatch(run, 1, "b", "fetch", {"day": "Wednesday"})]
        monday, wednesday = (text.split()[-1] for text in read)
        print(dispatch(run, 2, "c", "compare", {"before": monday}))  # it forgot one: refused, and told which refs are live
        print(dispatch(run, 3, "d", "compare", {"before": monday, "after": wednesday}))
        answer = run.answer("Visits went up.", cites=[monday, wednesday])
        print(ledger.backtrack(answer.answer_id))


if __name__ == "__main__":
    main()
