"""What becomes of runs recorded as OpenAI-style chat messages, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refledger.importers import FORMATS, ImportedRun, openai_chat
from refledger.importers.openai_chat import imported_run, parse, read_runs
from refledger_schema.digests import digest_of_text
from refledger_schema.envelope import Draft
from refledger_schema.errors import ImportRefused
from refledger_schema.events import (
    MAX_PARENTS,
    AnswerGiven,
    AnswerJudged,
    ArtifactMinted,
    CallEnded,
    CallStarted,
    Event,
    Idempotency,
    ImportNoted,
    Match,
    MessageNoted,
    RunEnded,
    RunStarted,
)
from refledger_schema.scopes import Scope
from tests.logmaking import make_log

WRITE_TOOLS = ("cancel_*", "return_items")
SECRET = "s3cret-content"


def ref(number: int) -> str:
    return f"art_{number:022}"


@pytest.fixture(autouse=True)
def refs_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count(1)
    monkeypatch.setattr(openai_chat, "mint_ref", lambda: ref(next(numbers)))


# Traces made by hand -------------------------------------------------------------------------------------------------------------------


def says(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def call(id: str | None, tool: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {**({} if id is None else {"id": id}), "type": "function", "function": {"name": tool, "arguments": text}}


def asks(*calls: dict[str, Any], content: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(id: str | None, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", **({} if id is None else {"tool_call_id": id}), "content": content, **more}


FOUND = '{"user": "mia_4516", "orders": ["#W77"]}'
RUN = [
    says("system", "Be brief."),
    says("user", "I am mia@example.com, cancel all"),
    asks(call("t1", "find_user", {"email": "mia@example.com"})),
    result("t1", FOUND),
    asks(call("t2", "cancel_order", {"order": "#W77", "user": "mia_4516"})),
    result("t2", "cancelled"),
    says("assistant", "Order #W77 of mia_4516 is cancelled."),
]
GRADED = {"task_id": 7, "reward": 0.0, "traj": RUN, "info": {"task": {"actions": [{"name": "find_user", "kwargs": {}}]}}}


def the_run(record: Any, **more: Any) -> ImportedRun:
    return imported_run(record if isinstance(record, dict) else {"messages": record}, **more)


def events(run: ImportedRun, *kinds: type[Event]) -> list[Event]:
    return [draft.event for draft in run.drafts if not kinds or isinstance(draft.event, kinds)]


def noted(index: int, role: str, text: str | None) -> MessageNoted:
    if not text:
        return MessageNoted(role=role, index=index, size=0)
    return MessageNoted(role=role, index=index, content=digest_of_text(text), size=len(text.encode()))


def started(step: int, message: int, tool: str, arguments: str, *matches: Match) -> CallStarted:
    return CallStarted(
        tool=tool,
        step=step,
        turn=message,
        message=message,
        arguments=digest_of_text(arguments),
        size=len(arguments.encode()),
        matches=matches or None,
    )


def minted(number: int, tool: str, text: str, media_type: str = "text/plain") -> ArtifactMinted:
    return ArtifactMinted(
        ref=ref(number),
        kind=f"tool-result/{tool}",
        media_type=media_type,
        shape="text",
        bytes=len(text.encode()),
        digest=digest_of_text(text),
        label=f"{tool} result",
        tool=tool,
    )


def ended(message: int, text: str, status: Any = "ok") -> CallEnded:
    return CallEnded(status=status, message=message, result=digest_of_text(text), size=len(text.encode()))


def from_artifact(argument: str | None, number: int) -> Match:
    return Match(argument=argument, source="artifact", id=ref(number))


def from_message(argument: str | None, index: int) -> Match:
    return Match(argument=argument, source="message", id=str(index))


def lost(run: ImportedRun) -> tuple[str, ...]:
    opening = run.drafts[0].event
    assert isinstance(opening, ImportNoted) and opening.lost is not None
    return opening.lost[2:]


# What becomes of a run -----------------------------------------------------------------------------------------------------------------


def test_a_run_becomes_its_events_in_the_order_of_the_transcript() -> None:
    run = the_run(RUN)

    def draft(event: Event, call_id: str | None = None) -> Draft:
        dispatch = None if call_id is None else 1
        return Draft(event, scope=Scope(conversation=run.run_id), run_id=run.run_id, call_id=call_id, dispatch=dispatch)

    answer = RUN[6]["content"]
    assert list(run.drafts) == [
        draft(
            ImportNoted(
                format="openai-chat",
                source=run.source,
                inferred=("how calls ended", "turns", "where values came from", "which act is the answer"),
                lost=("times", "what the model's window held"),
                idempotency=Idempotency(key=digest_of_text("openai-chat" + run.source), request=run.source),
            )
        ),
        draft(RunStarted()),
        draft(noted(1, "system", "Be brief.")),
        draft(noted(2, "user", RUN[1]["content"])),
        draft(noted(3, "assistant", None)),
        draft(started(1, 3, "find_user", '{"email": "mia@example.com"}', from_message("email", 2)), "t1"),
        draft(minted(1, "find_user", FOUND, "application/json"), "t1"),
        draft(ended(4, FOUND), "t1"),
        draft(noted(5, "assistant", None)),
        draft(
            started(2, 5, "cancel_order", '{"order": "#W77", "user": "mia_4516"}', from_artifact("order", 1), from_artifact("user", 1)),
            "t2",
        ),
        draft(minted(2, "cancel_order", "cancelled"), "t2"),
        draft(ended(6, "cancelled"), "t2"),
        draft(noted(7, "assistant", answer)),
        draft(
            AnswerGiven(
                answer_id="ans_" + run.run_id.removeprefix("run_"),
                content=digest_of_text(answer),
                size=len(answer),
                message=7,
                matches=(from_artifact(None, 1),),
            )
        ),
        draft(RunEnded(outcome="closed")),
    ]
    assert run.steps == 7
    assert run.payloads == {digest_of_text(text): text.encode() for text in (FOUND, "cancelled")}
    texts = [
        "Be brief.",
        RUN[1]["content"],
        '{"email": "mia@example.com"}',
        FOUND,
        '{"order": "#W77", "user": "mia_4516"}',
        "cancelled",
        answer,
    ]
    assert run.content == {digest_of_text(text): text.encode() for text in texts}


def test_a_graded_run_answers_with_its_first_write_outside_the_gold_actions_and_is_judged() -> None:
    run = the_run(GRADED, write_tools=WRITE_TOOLS)
    kinds = [draft.event.type for draft in run.drafts]
    assert kinds[-5:] == ["call.ended", "answer.given", "message.noted", "run.ended", "answer.judged"]
    answer_id = "ans_" + run.run_id.removeprefix("run_")
    assert run.drafts[-4] == Draft(
        AnswerGiven(answer_id=answer_id, size=0, message=5), scope=run.scope, run_id=run.run_id, call_id="t2", dispatch=1
    )
    assert run.drafts[-1] == Draft(AnswerJudged(answer_id=answer_id, verdict="wrong", by="reward"), scope=run.scope, run_id=run.run_id)
    assert run.drafts[1].event == RunStarted(attributes={"task_id": "7"})


@pytest.mark.parametrize(
    ("gold", "write_tools", "answering"),
    [
        ([], WRITE_TOOLS, "t2"),
        ([{"name": "cancel_order", "kwargs": {"user": "mia_4516", "order": "#W77"}}], WRITE_TOOLS, None),
        ([{"name": "cancel_order", "arguments": '{"user": "mia_4516", "order": "#W77"}'}], WRITE_TOOLS, None),
        ([{"name": "cancel_order", "kwargs": {"order": "#W77"}}], WRITE_TOOLS, "t2"),
        ([{"name": "cancel", "kwargs": {"user": "mia_4516", "order": "#W77"}}], WRITE_TOOLS, "t2"),
        ([], ("cancel_order",), "t2"),
        ([], ("cancel",), None),
        ([], (), None),
        (None, WRITE_TOOLS, None),
    ],
)
def test_a_call_is_the_answer_if_it_writes_and_is_no_gold_action(gold: Any, write_tools: tuple[str, ...], answering: str | None) -> None:
    run = the_run({"messages": RUN, "gold_actions": gold}, write_tools=write_tools)
    assert [draft.call_id for draft in run.drafts if isinstance(draft.event, AnswerGiven)] == [answering]


@pytest.mark.parametrize("place", [{"actions": []}, {"gold_actions": []}, {"info": {"task": {"actions": [], "outputs": ["10"]}}}])
def test_gold_actions_are_found_in_each_of_their_places(place: dict[str, Any]) -> None:
    run = the_run({"messages": RUN, **place}, write_tools=WRITE_TOOLS)
    assert [draft.call_id for draft in run.drafts if isinstance(draft.event, AnswerGiven)] == ["t2"]


def test_a_gold_action_is_equal_as_json_is_so_that_true_is_not_1_and_1_is_1_0() -> None:
    def answering(gold: Any) -> list[str | None]:
        record = {"messages": [asks(call("t1", "cancel_it", {"n": 1, "deep": [True]}))], "actions": [{"name": "cancel_it", "kwargs": gold}]}
        run = the_run({**record, "messages": [*record["messages"], says("assistant", "Done.")]}, write_tools=WRITE_TOOLS)
        return [draft.call_id for draft in run.drafts if isinstance(draft.event, AnswerGiven)]

    assert answering({"deep": [True], "n": 1.0}) == [None]
    assert answering({"deep": [1], "n": 1}) == ["t1"]


@pytest.mark.parametrize(("reward", "verdicts"), [(1.0, ["right"]), (1, ["right"]), (0.5, ["wrong"]), (0, ["wrong"]), (None, [])])
def test_the_reward_judges(reward: float | None, verdicts: list[str]) -> None:
    run = the_run({"messages": RUN, "reward": reward})
    assert [event.verdict for event in events(run) if isinstance(event, AnswerJudged)] == verdicts


def test_a_run_that_ends_in_calls_answers_with_the_last_of_them() -> None:
    run = the_run([says("assistant", "Let me see."), asks(call("t1", "look", {}), call("t2", "submit", {})), result("t2", "ok")])
    assert [(draft.call_id, draft.event.type) for draft in run.drafts[-3:]] == [
        ("t2", "call.ended"),
        ("t2", "answer.given"),
        (None, "run.ended"),
    ]


def test_a_call_that_answers_and_never_ended_answers_where_it_started() -> None:
    run = the_run([asks(call("t1", "submit", {}))])
    assert [draft.event.type for draft in run.drafts[-3:]] == ["call.started", "answer.given", "run.ended"]


def test_what_the_assistant_says_last_is_the_answer_though_it_also_calls() -> None:
    run = the_run([asks(call("t1", "look", {}), content="The total is 42."), result("t1", "ok"), says("user", "thanks")])
    [answer] = events(run, AnswerGiven)
    assert answer == AnswerGiven(
        answer_id="ans_" + run.run_id.removeprefix("run_"), content=digest_of_text("The total is 42."), size=16, message=1
    )


def test_a_run_in_which_nobody_answers_has_no_answer_and_no_verdict() -> None:
    run = the_run({"messages": [says("user", "Hello?")], "reward": 0})
    assert [event.type for event in events(run)] == ["import.noted", "run.started", "message.noted", "run.ended"]
    assert lost(run) == ("the verdict, as there is no answer",)


def test_refs_in_the_answer_are_found() -> None:
    run = the_run([says("assistant", f"See {ref(5)}.")])
    [answer] = events(run, AnswerGiven)
    assert isinstance(answer, AnswerGiven) and answer.found == (ref(5),)


def test_of_very_many_refs_in_the_answer_the_first_are_kept() -> None:
    refs = tuple(ref(number) for number in range(MAX_PARENTS + 1))
    [answer] = events(the_run([says("assistant", " ".join(refs))]), AnswerGiven)
    assert isinstance(answer, AnswerGiven) and answer.found == refs[:MAX_PARENTS]


def test_calls_of_one_message_are_parallel_so_that_none_came_from_another() -> None:
    first, second = {"id": "A-4711"}, {"id": "A-4711", "of": "B-1234"}
    run = the_run(
        [asks(call("t1", "look", first), call("t2", "look", second), content="I look at A-4711."), asks(call("t3", "use", second))]
    )
    same = [Match(argument="id", source="call", id="t1"), Match(argument="of", source="call", id="t2")]
    assert events(run, CallStarted) == [
        started(1, 1, "look", json.dumps(first)),
        started(2, 1, "look", json.dumps(second)),
        started(3, 2, "use", json.dumps(second), *same),
    ]


@pytest.mark.parametrize("text", ["Error: not found", "  Error: A-4711 is gone"])
def test_a_result_that_begins_with_error_is_a_failed_call_and_no_artifact(text: str) -> None:
    run = the_run([asks(call("t1", "look", {})), result("t1", text)])
    assert events(run, ArtifactMinted, CallEnded) == [ended(2, text, "error")]
    assert run.payloads == {}


def test_a_value_that_an_error_brought_in_came_from_the_failed_call() -> None:
    run = the_run([asks(call("t1", "look", {})), result("t1", "Error: try A-4711"), asks(call("t2", "look", {"id": "A-4711"}))])
    assert events(run, CallStarted)[1] == started(2, 3, "look", '{"id": "A-4711"}', Match(argument="id", source="call", id="t1"))


@pytest.mark.parametrize(
    ("text", "media_type"),
    [
        ('{"a": 1}', "application/json"),
        (" [1, 2]\n", "application/json"),
        ("42", "text/plain"),
        ('"text"', "text/plain"),
        ('{"a": NaN}', "text/plain"),
        ("Not an Error: at all", "text/plain"),
        ("", "text/plain"),
    ],
)
def test_a_result_is_kept_to_the_byte_and_is_json_where_it_reads_as_an_object_or_an_array(text: str, media_type: str) -> None:
    run = the_run([asks(call("t1", "look", {})), result("t1", text)])
    assert events(run, ArtifactMinted) == [minted(1, "look", text, media_type)]
    assert run.payloads == {digest_of_text(text): text.encode()}


def test_a_call_without_a_result_is_unfinished() -> None:
    assert events(the_run([asks(call("t1", "look", {})), says("assistant", "Never mind.")]), CallEnded) == []


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([result("t9", "late"), says("assistant", "Done.")], id="of an unknown id"),
        pytest.param([says("assistant", "Done."), result(None, "late")], id="without an id when no call waits"),
        pytest.param([result(None, "late", name="look"), asks(call("t1", "look", {}))], id="before the call"),
    ],
)
def test_a_result_without_a_call_is_a_message_and_counted_as_lost(messages: list[Any]) -> None:
    run = the_run(messages)
    place = messages.index(next(message for message in messages if message["role"] == "tool")) + 1
    assert noted(place, "tool", "late") in events(run, MessageNoted)
    assert lost(run) == ("results without a call, kept as messages: 1",)


def test_a_second_result_of_one_call_is_a_message() -> None:
    run = the_run([asks(call("t1", "look", {})), result("t1", "one"), result("t1", "two")])
    assert events(run, ArtifactMinted, CallEnded) == [minted(1, "look", "one"), ended(2, "one")]
    assert lost(run) == ("results without a call, kept as messages: 1",)


def test_ids_that_are_missing_or_repeated_are_told_apart_by_place_the_same_at_every_reading() -> None:
    messages = [
        asks(call("t", "look", {}), call("t", "look", {}), call(None, "look", {}), call('a"b', "use", {}), call("t~2", "use", {})),
        result("t", "first"),
        result(None, "third", name="use"),
        result("t", "second"),
        result('a"b', "none: it was answered by name"),
        result(None, "fourth"),
    ]
    ids = ["t", "t~2", "call-1", "call-1~2", "t~2~2"]
    ends = [("t", 2), ("call-1~2", 3), ("t~2", 4), ("call-1", 6)]
    for run in (the_run(messages), the_run(messages)):
        assert [draft.call_id for draft in run.drafts if isinstance(draft.event, CallStarted)] == ids
        assert [(draft.call_id, draft.event.message) for draft in run.drafts if isinstance(draft.event, CallEnded)] == ends
        assert lost(run) == ("ids of calls that were missing, repeated or unusable: 4", "results without a call, kept as messages: 1")


def test_legacy_function_calls_are_calls() -> None:
    run = the_run(
        [
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {"role": "function", "name": "look", "content": "seen"},
        ]
    )
    assert events(run, CallStarted, CallEnded) == [started(1, 1, "look", "{}"), ended(2, "seen")]
    assert {draft.call_id for draft in run.drafts} == {None, "call-1"}


def test_custom_calls_are_calls_and_their_input_is_text() -> None:
    custom = {"id": "t1", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}
    run = the_run([{"role": "assistant", "tool_calls": [custom]}])
    assert events(run, CallStarted) == [started(1, 1, "shell", "ls -l")]


@pytest.mark.parametrize("arguments", ['{"id": "A-4711"', '{"a": 1, "a": 2, "b": "A-4711"}', "A-4711"])
def test_arguments_that_are_no_json_are_kept_as_text_and_matched_without_a_name(arguments: str) -> None:
    run = the_run([says("user", "It is A-4711."), asks(call("t1", "look", arguments))])
    assert events(run, CallStarted) == [started(1, 2, "look", arguments, from_message(None, 1))]
    assert lost(run) == ("arguments that are no JSON, kept as text: 1",)


def test_arguments_given_as_an_object_and_none_at_all_are_accepted() -> None:
    spoken = [{"id": "t1", "function": {"name": "a", "arguments": {"n": 1}}}, {"id": "t2", "function": {"name": "b"}}]
    assert events(the_run([{"role": "assistant", "tool_calls": spoken}]), CallStarted) == [
        started(1, 1, "a", '{"n":1}'),
        started(2, 1, "b", ""),
    ]


def test_content_in_parts_is_its_texts_a_line_each() -> None:
    parts = [{"type": "text", "text": "One"}, {"type": "image_url", "image_url": {"url": "x"}}, "two", {"type": "text", "text": "drei ✓"}]
    run = the_run([says("user", parts)])
    assert events(run, MessageNoted) == [noted(1, "user", "One\ntwo\ndrei ✓")]
    assert lost(run) == ("message parts that are no text: 1",)


def test_a_refusal_of_the_model_is_its_text() -> None:
    run = the_run([{"role": "assistant", "content": None, "refusal": "I cannot help."}])
    assert events(run, MessageNoted) == [noted(1, "assistant", "I cannot help.")]


def test_texts_of_all_languages_are_kept_in_utf_8() -> None:
    run = the_run([says("user", "Größe 😀 ١٢٣"), asks(call("t1", "sök", {"n": "Größe"})), result("t1", '{"ok": "😀"}')])
    assert events(run)[2:] == [
        noted(1, "user", "Größe 😀 ١٢٣"),
        noted(2, "assistant", None),
        started(1, 2, "sök", '{"n": "Gr\\u00f6\\u00dfe"}', from_message("n", 1)),
        minted(1, "sök", '{"ok": "😀"}', "application/json"),
        ended(3, '{"ok": "😀"}'),
        AnswerGiven(answer_id="ans_" + run.run_id.removeprefix("run_"), size=0, message=2),
        RunEnded(outcome="closed"),
    ]


def test_the_trace_s_own_numbers_of_messages_are_kept_where_they_count_upwards() -> None:
    def indexes(*given: Any) -> list[int]:
        run = the_run([{**says("user", "Hi"), "index": index} for index in given])
        return [event.index for event in events(run) if isinstance(event, MessageNoted)]

    assert indexes(2, 3, 7) == [2, 3, 7]
    assert indexes(0, 1, 2) == indexes(2, 2, 3) == indexes(1, None, 3) == indexes(True, 5, 6) == indexes(1, 2, 2**60) == [1, 2, 3]


def test_hostile_names_are_bounded_and_made_harmless() -> None:
    tool = "a\0b\n" + "x" * 500
    run = the_run({"messages": [asks(call("i" * 500, tool, {})), result("i" * 500, "ok")], "model": "m\0", "t\x1b[1m": "y" * 500})
    [start, mint] = events(run, CallStarted, ArtifactMinted)
    assert isinstance(start, CallStarted) and start.tool == "a_b_" + "x" * 196
    assert isinstance(mint, ArtifactMinted) and (len(mint.kind), len(mint.label or "")) == (100, 200)
    assert events(run, RunStarted) == [RunStarted(model="m_", attributes={"t_[1m": "y" * 200})]
    assert len(make_log(run.drafts)) == len(run.drafts)


def test_the_scope_is_a_conversation_of_the_run_s_own_unless_given() -> None:
    scope = Scope(conversation="c-1", tenant="acme")
    assert the_run(RUN).scope == Scope(conversation=the_run(RUN).run_id)
    given = the_run(RUN, scope=scope)
    assert given.scope == scope and {draft.scope for draft in given.drafts} == {scope}


# Identity ------------------------------------------------------------------------------------------------------------------------------


def test_one_run_is_one_run_however_its_file_is_written() -> None:
    forms = [json.dumps(RUN), json.dumps([RUN]), json.dumps({"messages": RUN}, indent=1), json.dumps(RUN) + "\n\n" + json.dumps(RUN[:2])]
    runs = [the_run(next(parse(form))) for form in forms]
    assert len({(run.run_id, run.source, run.drafts[0]) for run in runs}) == 1
    assert runs[0].run_id.startswith("run_") and len(runs[0].run_id) == 26 and runs[0].run_id[4:].isalnum()


def test_the_id_of_a_run_never_changes() -> None:
    assert the_run(RUN).run_id == "run_bbJaq6okIbO1Rg62kajmwr"


def test_runs_that_differ_in_anything_are_two() -> None:
    others = [RUN[:-1], [*RUN, says("user", "Thanks")]]
    ids = {
        the_run(record).run_id for record in (RUN, *others, {"messages": RUN, "reward": 0}, {"messages": RUN, "reward": 1}, {"traj": RUN})
    }
    assert len(ids) == 6


def test_integers_of_any_size_and_floats_have_a_digest() -> None:
    ids = {the_run({"messages": RUN, "n": n}).run_id for n in (2**64, 2**64 + 1, 50.88, 50, 50.0)}
    assert len(ids) == 4


def test_the_same_record_gives_the_same_drafts_but_for_the_refs(monkeypatch: pytest.MonkeyPatch) -> None:
    first = the_run(GRADED, write_tools=WRITE_TOOLS)
    numbers = count(1)
    monkeypatch.setattr(openai_chat, "mint_ref", lambda: ref(next(numbers)))
    assert the_run(GRADED, write_tools=WRITE_TOOLS) == first


@given(st.text(), st.text(), st.dictionaries(st.text(min_size=1), st.text()))
def test_every_text_can_be_imported_and_written_to_a_log(said: str, found: str, args: dict[str, str]) -> None:
    run = the_run([says("user", said), asks(call("t1", "look", args)), result("t1", found), says("assistant", said)])
    assert len(make_log(run.drafts)) == len(run.drafts)


# Files ---------------------------------------------------------------------------------------------------------------------------------

RECORD = {"traj": RUN, "reward": 0}


@pytest.mark.parametrize(
    ("text", "records"),
    [
        pytest.param(json.dumps(RUN), [{"messages": RUN}], id="one list of messages"),
        pytest.param(json.dumps(RUN, indent=2), [{"messages": RUN}], id="over many lines"),
        pytest.param(json.dumps([RUN, RUN[:2]]), [{"messages": RUN}, {"messages": RUN[:2]}], id="a list of runs"),
        pytest.param(json.dumps(RECORD), [RECORD], id="a record"),
        pytest.param(json.dumps([RECORD, {"messages": RUN}], indent=1), [RECORD, {"messages": RUN}], id="a list of records"),
        pytest.param(json.dumps([RECORD, RUN]), [RECORD, {"messages": RUN}], id="records and lists"),
        pytest.param(f"{json.dumps(RECORD)}\n\n{json.dumps(RUN)}\r\n", [RECORD, {"messages": RUN}], id="a run a line"),
        pytest.param("\n" + json.dumps(RUN), [{"messages": RUN}], id="one line"),
        pytest.param("\ufeff" + json.dumps(RUN), [{"messages": RUN}], id="with a byte order mark"),
    ],
)
def test_each_form_of_file_is_read(tmp_path: Path, text: str, records: list[Any]) -> None:
    path = tmp_path / "trace"
    path.write_bytes(text.encode())
    assert (
        list(read_runs(path))
        == list(FORMATS["openai-chat"].read_runs(str(path)))
        == list(parse(text))
        == list(parse(text.encode()))
        == records
    )


def test_a_run_a_line_is_read_as_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(f"{json.dumps(RUN)}\n{json.dumps(RUN)}\nbroken\n", encoding="utf-8")
    runs: Iterator[Any] = read_runs(path)
    assert [next(runs), next(runs)] == [{"messages": RUN}] * 2
    with pytest.raises(ImportRefused):
        next(runs)


A_RUN = "a run: a list of messages, or a record with `messages` or `traj`"
IN_ONE_LIST = "Put the messages of a run in one list"
STRICTLY = "(UTF-8, no key twice in an object, no NaN, no half characters)"
DOCUMENT = f"JSON, or a JSON value a line {STRICTLY}"
REPAIR = "Repair it, or write it anew"
PASS_THE_FILE = "Pass the file that holds the trace"
NO_EMPTY_RUNS = "Leave out runs without messages"
SAY_WHO = "Say who speaks: system, user, assistant or tool"
AS_NUMBER = "Write 1 for right and 0 for wrong"
AS_LIST = "Write them as a list of {name, kwargs}, or leave them out"
NESTED = "[" * 200 + "]" * 200


def then(message: Any) -> str:
    return json.dumps([says("user", SECRET), message])


def calling(*calls: Any) -> str:
    return then({"role": "assistant", "tool_calls": list(calls)})


def graded(**more: Any) -> str:
    return json.dumps([{"messages": RUN, **more}])


REFUSALS = [
    ("", "the file", "a run or more", "nothing", PASS_THE_FILE),
    (" \n\n", "the file", "a run or more", "nothing", PASS_THE_FILE),
    ("[]", "the file", "a run or more", "an empty list", PASS_THE_FILE),
    (SECRET, "the file", DOCUMENT, "a text that goes wrong at character 0", REPAIR),
    (f'[{{"role": "{SECRET}"', "the file", DOCUMENT, "a text that goes wrong at character 26", REPAIR),
    (f'{{"a; it {SECRET}": 1, "a; it {SECRET}": 2}}', "the file", DOCUMENT, "something else", REPAIR),
    ('[{"role": NaN}]', "the file", DOCUMENT, "something else", REPAIR),
    ('[{"role": "\\ud800"}]', "the file", DOCUMENT, "something else", REPAIR),
    ("[" * 100_000, "the file", DOCUMENT, "a text that is nested too deeply", REPAIR),
    (f"{json.dumps(RUN)}\n{SECRET}", "line 2", f"a run as JSON {STRICTLY}", "a text that goes wrong at character 0", REPAIR),
    (f"{json.dumps(RUN)}\n\n3", "line 3", A_RUN, "a number", IN_ONE_LIST),
    (f"{json.dumps(RUN[0])}\n{json.dumps(RUN[1])}", "line 1", A_RUN, "one message", IN_ONE_LIST),
    (f'"{SECRET}"', "the record", A_RUN, "text", IN_ONE_LIST),
    (f'["{SECRET}"]', "record 1", A_RUN, "text", IN_ONE_LIST),
    (json.dumps([RUN, RUN[0]]), "record 2", A_RUN, "one message", IN_ONE_LIST),
    (f'{{"{SECRET}": 1}}', "the record", "the messages under `messages` or `traj`", "neither", "Name the list of messages so"),
    ('[{"messages": []}]', "record 1", "a list of messages under `messages`", "an empty list", NO_EMPTY_RUNS),
    ('{"traj": null}', "the record", "a list of messages under `traj`", "null", NO_EMPTY_RUNS),
    (then(SECRET), "the run, message 2", "an object with `role` and `content`", "text", "Write every message so"),
    (then({"content": SECRET}), "the run, message 2", "a `role` that is text", "nothing", SAY_WHO),
    (then({"role": 3}), "the run, message 2", "a `role` that is text", "a number", SAY_WHO),
    (then({"role": ""}), "the run, message 2", "a `role` that is text", "an empty text", SAY_WHO),
    (
        then(says("user", {SECRET: 1})),
        "the run, message 2",
        "`content` that is text, null or a list of parts",
        "an object",
        "Write it as text",
    ),
    (
        then({"role": "assistant", "tool_calls": {}}),
        "the run, message 2",
        "`tool_calls` that is a list or null",
        "an object",
        "Write the calls as a list",
    ),
    (calling(SECRET), "the run, message 2, call 1", "an object with `id` and `function`", "text", "Write every call so"),
    (
        calling({"id": SECRET}),
        "the run, message 2, call 1",
        "an object under `function`",
        "null",
        "Name the tool and its arguments there",
    ),
    (
        calling({"function": {"name": "a"}}, {"function": {"arguments": SECRET}}),
        "the run, message 2, call 2",
        "`function.name` that is text",
        "nothing",
        "Name the tool that was called",
    ),
    (graded(reward=SECRET), "record 1", "`reward` that is a number or null", "text", AS_NUMBER),
    (graded(reward=True), "record 1", "`reward` that is a number or null", "a boolean", AS_NUMBER),
    (graded(actions={SECRET: 1}), "record 1", "gold actions as a list", "an object", AS_LIST),
    (
        graded(actions=[{"name": "a"}, SECRET]),
        "record 1, gold action 2",
        "an object with `name` and `kwargs`",
        "text",
        "Write every gold action so",
    ),
    (
        f'{{"messages": [{{"role": "user", "x": {NESTED}}}]}}',
        "the record",
        "JSON of at most 128 levels, of whole characters",
        "something else",
        "Flatten what is nested so deeply",
    ),
]


@pytest.mark.parametrize(("text", "where", "expected", "found", "what_to_do"), REFUSALS)
def test_a_refusal_says_where_what_and_what_to_do_in_one_line_and_quotes_nothing(
    text: str, where: str, expected: str, found: str, what_to_do: str
) -> None:
    with pytest.raises(ImportRefused) as refused:
        list(parse(text))
    assert str(refused.value) == f"{where}: expected {expected}; found {found}. {what_to_do}."
    assert SECRET not in str(refused.value)


def test_a_record_made_in_python_is_refused_likewise() -> None:
    with pytest.raises(ImportRefused, match="^the run: expected JSON of at most 128 levels, of whole characters; found something else"):
        the_run([says("user", "half \ud800")])
    with pytest.raises(ImportRefused, match="^the run, message 1: expected a `role` that is text; found nothing"):
        the_run([{"content": "x"}])


def test_bytes_that_are_no_utf_8_are_refused() -> None:
    with pytest.raises(ImportRefused, match="a text that goes wrong at byte 0"):
        list(parse(json.dumps(RUN).encode("utf-16")))


def test_a_path_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(ImportRefused, match="^expected a trace file that can be read; the system says: .*\\. Check the path\\.$"):
            list(read_runs(path))


def test_a_text_past_the_bound_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_chat, "MAX_TEXT", 100)
    long = json.dumps([says("user", "x" * 100)])
    message = "{}: expected at most 100 bytes; found more. Write a run a line (JSONL), and split the file."
    for text, where in ((long, "line 1"), ("[]\n" + long, "line 2"), (json.dumps(RUN, indent=1), "the file")):
        with pytest.raises(ImportRefused) as refused:
            list(parse(text))
        assert str(refused.value) == message.format(where)
