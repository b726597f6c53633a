"""Runs recorded as OpenAI-style chat messages.

    for record in read_runs("failed_runs.json"):
        run = imported_run(record, write_tools=["cancel_*", "return_*"])

A file holds one run (a list of messages), a list of runs, or a run a line (JSONL). A run is a list of messages, or a record that holds
them under `messages` or `traj`, and beside them, where it was graded, a `reward` and the gold actions (`info.task.actions`, `actions` or
`gold_actions`).

What becomes of it, in the order of the transcript: every message a `message.noted`, but for results; every tool call a `call.started`;
every result an artifact of kind `tool-result/<tool>` and a `call.ended`. A result that begins with `Error:` is a failed call, and no
artifact. A result that answers no call is noted as a message and counted as lost; a call without a result is unfinished.

The answer is the first call that is no gold action (by equal name and arguments, each gold action any number of times) and whose tool
`write_tools` names. Without one it is what the assistant said last; where the run ends in calls and no word, the last of these calls.
A reward of 1 or more judges it right, less wrong.

The trace is read strictly, as two readers could take it for two things otherwise: a key that stands twice, NaN or half a character is
refused. Arguments that are no JSON are kept as the text they are, and counted as lost.
"""

from __future__ import annotations

import io
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from os import PathLike
from typing import BinaryIO, NoReturn

from refledger.importers.imported import ImportedRun, named_after, source_of
from refledger.matching import Matcher
from refledger_schema.canonical import MAX_SAFE_INTEGER, JsonValue, parse_json, payload_json
from refledger_schema.digests import digest_of, digest_of_text
from refledger_schema.envelope import Draft
from refledger_schema.errors import ImportRefused, NotCanonical, TooLarge
from refledger_schema.events import (
    MAX_KIND,
    MAX_LABEL,
    MAX_NAME,
    MAX_PARENTS,
    AnswerGiven,
    AnswerJudged,
    ArtifactMinted,
    CallEnded,
    CallStarted,
    Event,
    Idempotency,
    ImportNoted,
    MessageNoted,
    RunEnded,
    RunStarted,
)
from refledger_schema.refs import mint_ref, refs_in
from refledger_schema.scopes import Scope

FORMAT = "openai-chat"
MAX_TEXT = 256 * 1024 * 1024
"""The longest document, or line of a JSONL file, in bytes."""
MAX_ATTRIBUTES = 32
"""How many of a record's other fields are kept as attributes of the run."""

_MESSAGES = ("messages", "traj")
_BOM = b"\xef\xbb\xbf"
_ERROR = "Error:"
_USABLE_ID = re.compile(r"[!#-\[\]-~]{1,100}")
"""Printable ASCII without quotes and backslashes, so that ids take no more room in an event than they have characters."""


# Reading -------------------------------------------------------------------------------------------------------------------------------


def read_runs(path: str | PathLike[str]) -> Iterator[dict[str, JsonValue]]:
    """The runs of a trace file, one record each, read line by line where it is JSONL.

    Raises `ImportRefused` for what is no such file, when it comes to it: of a JSONL file the runs before have been given by then.
    """
    try:
        with open(path, "rb") as file:
            yield from _runs(file)
    except OSError as error:
        raise ImportRefused(f"expected a trace file that can be read; the system says: {error.strerror}. Check the path.") from None


def parse(text: str | bytes) -> Iterator[dict[str, JsonValue]]:
    """The runs of a trace, as `read_runs` gives those of a file."""
    return _runs(io.BytesIO(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text))


def _runs(file: BinaryIO) -> Iterator[dict[str, JsonValue]]:
    lines = _lines(file)
    number, first = next(lines, (0, b""))
    if not number:
        _refuse("the file", "a run or more", "nothing", "Pass the file that holds the trace")
    try:
        value = parse_json(first)
    except NotCanonical:
        yield from _document(first + file.read(MAX_TEXT + 1 - len(first)))
        return
    second = next(lines, None)
    if second is None:
        yield from _records(value)
        return
    yield _record(value, f"line {number}")
    yield _record_of_line(*second)
    for line in lines:
        yield _record_of_line(*line)


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that hold anything, numbered from 1."""
    number = 0
    while line := file.readline(MAX_TEXT + 1):
        number += 1
        _check_length(line, f"line {number}")
        if number == 1:
            line = line.removeprefix(_BOM)
        if line.strip():
            yield number, line


def _check_length(text: bytes, where: str) -> None:
    if len(text) > MAX_TEXT:
        _refuse(where, f"at most {MAX_TEXT:,} bytes", "more", "Write a run a line (JSONL), and split the file")


def _document(text: bytes) -> Iterator[dict[str, JsonValue]]:
    _check_length(text, "the file")
    return _records(_parsed(text, "the file", "JSON, or a JSON value a line"))


def _parsed(text: bytes, where: str, expected: str) -> JsonValue:
    try:
        return parse_json(text)
    except NotCanonical as error:
        # A reason that quotes a key of the trace has it in quotation marks.
        _, _, place = error.reason.removesuffix(".").partition("; it ")
        found = f"a text that {place}" if place and '"' not in error.reason else "something else"
    _refuse(where, f"{expected} (UTF-8, no key twice in an object, no NaN, no half characters)", found, "Repair it, or write it anew")


def _record_of_line(number: int, line: bytes) -> dict[str, JsonValue]:
    where = f"line {number}"
    return _record(_parsed(line, where, "a run as JSON"), where)


def _records(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    """The runs of a document that is one JSON value."""
    if not isinstance(value, list):
        yield _record(value, "the record")
    elif not value:
        _refuse("the file", "a run or more", "an empty list", "Pass the file that holds the trace")
    elif _is_message(value[0]):
        yield _record(value, "the run")
    else:
        for number, item in enumerate(value, start=1):
            yield _record(item, f"record {number}")


def _is_message(value: JsonValue) -> bool:
    return isinstance(value, dict) and "role" in value


def _record(value: JsonValue, where: str) -> dict[str, JsonValue]:
    """`value` as a record, its shape checked. A bare list of messages is a record that holds nothing else."""
    record: JsonValue = {"messages": value} if isinstance(value, list) else value
    if not isinstance(record, dict) or _is_message(record):
        found = "one message" if _is_message(record) else _type(record)
        _refuse(where, "a run: a list of messages, or a record with `messages` or `traj`", found, "Put the messages of a run in one list")
    _trace(record, where)
    return record


# Understanding -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Call:
    call_id: str
    spoken_id: str | None
    """As the trace has it."""
    tool: str
    name: str
    """The tool's name as the trace has it."""
    arguments: str
    args: JsonValue
    """The arguments parsed; the text itself where it is no JSON."""
    message: int


@dataclass(frozen=True, slots=True)
class _Message:
    index: int
    role: str
    text: str
    calls: tuple[_Call, ...] = ()
    result_of: _Call | None = None


@dataclass(frozen=True, slots=True)
class _Trace:
    """A record, understood and checked."""

    source: str
    messages: tuple[_Message, ...]
    gold: frozenset[tuple[str, str]] | None
    reward: float | None
    lost: tuple[str, ...]


@dataclass(slots=True)
class _Reading:
    """What has been met of a run so far: the ids taken, the calls that wait for a result, and what no event will hold."""

    taken: Counter[str] = field(default_factory=Counter)
    waiting: dict[tuple[str, str | None], deque[_Call]] = field(default_factory=dict)
    """The calls by each key that a result may name them by. One that was answered under another key waits on, and is passed over."""
    answered: set[str] = field(default_factory=set)
    lost: Counter[str] = field(default_factory=Counter)

    def wait(self, call: _Call) -> None:
        for key in (("id", call.spoken_id), ("tool", call.name), ("any", None)):
            self.waiting.setdefault(key, deque()).append(call)

    def take(self, key: tuple[str, str | None]) -> _Call | None:
        """The first call that waits under `key`."""
        queue = self.waiting.get(key, deque())
        while queue:
            call = queue.popleft()
            if call.call_id not in self.answered:
                self.answered.add(call.call_id)
                return call
        return None


def _trace(record: Mapping[str, JsonValue], where: str) -> _Trace:
    name = next((name for name in _MESSAGES if name in record), None)
    if name is None:
        _refuse(where, "the messages under `messages` or `traj`", "neither", "Name the list of messages so")
    messages = record[name]
    if not isinstance(messages, list) or not messages:
        found = "an empty list" if messages == [] else _type(messages)
        _refuse(where, f"a list of messages under `{name}`", found, "Leave out runs without messages")
    source = _source(record, where)  # judges the values, so that nothing below meets one that is no JSON
    reading = _Reading()
    indexes = _indexes(messages)
    read = tuple(
        _message(message, index, reading, f"{where}, message {number}")
        for number, (index, message) in enumerate(zip(indexes, messages, strict=True), start=1)
    )
    lost = tuple(f"{what}: {count:,}" for what, count in sorted(reading.lost.items()))
    return _Trace(source, read, _gold(record, where), _reward(record, where), lost)


def _source(record: Mapping[str, JsonValue], where: str) -> str:
    try:
        return source_of(record)
    except (NotCanonical, TooLarge):
        _refuse(where, "JSON of at most 128 levels, of whole characters", "something else", "Flatten what is nested so deeply")


def _indexes(messages: Sequence[JsonValue]) -> Sequence[int]:
    """The place of each message: as the trace counts where it counts upwards from 1 or more, else from 1 on."""
    given = [message.get("index") if isinstance(message, dict) else None for message in messages]
    indexes = [index for index in given if isinstance(index, int) and not isinstance(index, bool) and 0 < index <= MAX_SAFE_INTEGER]
    if len(indexes) == len(messages) and all(a < b for a, b in zip(indexes, indexes[1:], strict=False)):
        return indexes
    return range(1, len(messages) + 1)


def _message(message: JsonValue, index: int, reading: _Reading, where: str) -> _Message:
    if not isinstance(message, dict):
        _refuse(where, "an object with `role` and `content`", _type(message), "Write every message so")
    role = message.get("role")
    if not isinstance(role, str) or not _clean(role, MAX_NAME):
        _refuse(where, "a `role` that is text", _found(message, "role"), "Say who speaks: system, user, assistant or tool")
    text = _text(message, reading, where)
    if role in ("tool", "function"):
        return _Message(index, role, text, result_of=_answered(message, reading))
    calls = tuple(_call(spoken, index, reading, f"{where}, call {n}") for n, spoken in enumerate(_spoken_calls(message, where), start=1))
    for call in calls:
        reading.wait(call)
    return _Message(index, _clean(role, MAX_NAME), text, calls)


def _text(message: Mapping[str, JsonValue], reading: _Reading, where: str) -> str:
    """The text of a message; its text parts, a line each; a refusal where there is nothing else."""
    content = message.get("content")
    if content is None:
        refusal = message.get("refusal")
        return refusal if isinstance(refusal, str) else ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        _refuse(where, "`content` that is text, null or a list of parts", _type(content), "Write it as text")
    texts = [part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None for part in content]
    kept = [text for text in texts if isinstance(text, str)]
    if len(kept) < len(texts):
        reading.lost["message parts that are no text"] += len(texts) - len(kept)
    return "\n".join(kept)


def _spoken_calls(message: Mapping[str, JsonValue], where: str) -> list[JsonValue]:
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        _refuse(where, "`tool_calls` that is a list or null", _type(calls), "Write the calls as a list")
    legacy = message.get("function_call")
    return [*(calls or ()), *([{"function": legacy}] if legacy is not None else ())]


def _call(spoken: JsonValue, message: int, reading: _Reading, where: str) -> _Call:
    if not isinstance(spoken, dict):
        _refuse(where, "an object with `id` and `function`", _type(spoken), "Write every call so")
    function = spoken.get("custom" if spoken.get("type") == "custom" else "function")
    if not isinstance(function, dict):
        _refuse(where, "an object under `function`", _type(function), "Name the tool and its arguments there")
    name = function.get("name")
    if not isinstance(name, str) or not _clean(name, MAX_NAME):
        _refuse(where, "`function.name` that is text", _found(function, "name"), "Name the tool that was called")
    arguments = function.get("arguments", function.get("input"))
    text = arguments if isinstance(arguments, str) else "" if arguments is None else payload_json(arguments)
    given = spoken.get("id")
    spoken_id = given if isinstance(given, str) else None
    return _Call(_call_id(spoken_id, message, reading), spoken_id, _clean(name, MAX_NAME), name, text, _args(text, reading), message)


def _args(text: str, reading: _Reading) -> JsonValue:
    if not text.strip():
        return {}
    try:
        return parse_json(text)
    except NotCanonical:
        reading.lost["arguments that are no JSON, kept as text"] += 1
        return text


def _call_id(spoken: str | None, message: int, reading: _Reading) -> str:
    """The trace's id where it can stand and is new in the run; otherwise one that tells the place, the same at every reading."""
    stem = spoken if spoken is not None and _USABLE_ID.fullmatch(spoken) else f"call-{message}"
    call_id = stem
    while call_id in reading.taken:
        reading.taken[stem] += 1
        call_id = f"{stem}~{reading.taken[stem]}"
    if call_id != spoken:
        reading.lost["ids of calls that were missing, repeated or unusable"] += 1
    reading.taken[call_id] = 1
    return call_id


def _answered(message: Mapping[str, JsonValue], reading: _Reading) -> _Call | None:
    """The call that a result answers: the first that waits under its id; without an id, under its tool's name, or at all."""
    spoken_id, name = message.get("tool_call_id"), message.get("name")
    if isinstance(spoken_id, str):
        call = reading.take(("id", spoken_id))
    else:
        call = reading.take(("tool", name) if isinstance(name, str) else ("any", None))
    if call is None:
        reading.lost["results without a call, kept as messages"] += 1
    return call


def _gold(record: Mapping[str, JsonValue], where: str) -> frozenset[tuple[str, str]] | None:
    """The gold actions by name and canonical arguments; None where the record has none."""
    info = record.get("info")
    task = info.get("task") if isinstance(info, dict) else None
    places = ((task, "actions"), (record, "actions"), (record, "gold_actions"))
    actions = next((place[name] for place, name in places if isinstance(place, Mapping) and place.get(name) is not None), None)
    if actions is None:
        return None
    if not isinstance(actions, list):
        _refuse(where, "gold actions as a list", _type(actions), "Write them as a list of {name, kwargs}, or leave them out")
    return frozenset(_gold_action(action, f"{where}, gold action {number}") for number, action in enumerate(actions, start=1))


def _gold_action(action: JsonValue, where: str) -> tuple[str, str]:
    name = action.get("name") if isinstance(action, dict) else None
    if not isinstance(action, dict) or not isinstance(name, str):
        _refuse(where, "an object with `name` and `kwargs`", _type(action), "Write every gold action so")
    args: JsonValue = next((action[key] for key in ("kwargs", "arguments") if action.get(key) is not None), {})
    return name, _comparable(_args(args, _Reading()) if isinstance(args, str) else args, where)


def _reward(record: Mapping[str, JsonValue], where: str) -> float | None:
    reward = record.get("reward")
    if reward is None or (isinstance(reward, int | float) and not isinstance(reward, bool)):
        return reward
    _refuse(where, "`reward` that is a number or null", _type(reward), "Write 1 for right and 0 for wrong")


def _comparable(value: JsonValue, where: str) -> str:
    """Equal for equal JSON: whatever the order of keys, and true is not 1."""
    try:
        return source_of({"value": value})
    except (NotCanonical, TooLarge):
        _refuse(where, "JSON of at most 128 levels", "something else", "Flatten it")


# Drafting ------------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the answer is, a call or the text of a message, and the message that it was complete with."""

    message: _Message
    call: _Call | None
    given_with: _Message


def imported_run(record: Mapping[str, JsonValue], *, scope: Scope | None = None, write_tools: Sequence[str] = ()) -> ImportedRun:
    """The events of one run, for one append, in the scope given or in a conversation of its own.

    `write_tools` are names or patterns (`cancel_*`) of the tools that act. The result is a function of the arguments, but for the refs,
    which are minted. Its idempotency key depends on the record alone: a run is imported once, whatever its scope and `write_tools`.

    Raises `ImportRefused` for a record that `read_runs` would refuse.
    """
    trace = _trace(record, "the run")
    run_id, answer_id = named_after("run_", trace.source), named_after("ans_", trace.source)
    answer = _answer(trace, write_tools)
    drafting = _Drafting(run_id, Scope(conversation=run_id) if scope is None else scope)
    for message in trace.messages:
        if message.result_of is not None:
            drafting.result(message, message.result_of)
        else:
            drafting.noted(message)
            if answer is not None and answer.call is None and answer.message is message:
                drafting.answered(answer, answer_id)
            drafting.called(message)
        if answer is not None and answer.call is not None and answer.given_with is message:
            drafting.answered(answer, answer_id)
    drafting.note(RunEnded(outcome="closed"))
    if answer is not None and trace.reward is not None:
        drafting.note(AnswerJudged(answer_id=answer_id, verdict="right" if trace.reward >= 1 else "wrong", by="reward"))
    opening = (_import_noted(trace, answer, drafting.matcher.cut), _run_started(record))
    return ImportedRun(
        run_id=run_id,
        source=trace.source,
        scope=drafting.scope,
        drafts=(*(drafting.draft(event) for event in opening), *drafting.drafts),
        payloads=drafting.payloads,
        content=drafting.content,
        steps=len(trace.messages),
    )


def _answer(trace: _Trace, write_tools: Sequence[str]) -> _Answer | None:
    result = {message.result_of.call_id: message for message in trace.messages if message.result_of is not None}
    if trace.gold is not None:
        for message, call in _calls(trace):
            if _writes(call, write_tools) and (call.name, _comparable(call.args, "the run")) not in trace.gold:
                return _Answer(message, call, result.get(call.call_id, message))
    for message in reversed(trace.messages):
        if message.role == "assistant" and message.text.strip():
            return _Answer(message, None, message)
        if message.calls:
            call = message.calls[-1]
            return _Answer(message, call, result.get(call.call_id, message))
    return None


def _calls(trace: _Trace) -> Iterator[tuple[_Message, _Call]]:
    return ((message, call) for message in trace.messages for call in message.calls)


def _writes(call: _Call, write_tools: Sequence[str]) -> bool:
    return any(fnmatchcase(call.name, pattern) for pattern in write_tools)


def _import_noted(trace: _Trace, answer: _Answer | None, cut: int) -> ImportNoted:
    called = any(message.calls for message in trace.messages)
    inferred = {
        "how calls ended": called,
        "turns": called,
        "where values came from": called or answer is not None,
        "which act is the answer": answer is not None,
    }
    lost = {
        "times": True,
        "what the model's window held": True,
        "the verdict, as there is no answer": answer is None and trace.reward is not None,
        f"where values of long texts came from: {cut:,}": cut > 0,
    }
    return ImportNoted(
        format=FORMAT,
        source=trace.source,
        inferred=tuple(what for what, so in inferred.items() if so) or None,
        lost=(*(what for what, so in lost.items() if so), *trace.lost),
        idempotency=Idempotency(key=digest_of_text(FORMAT + trace.source), request=trace.source),
    )


def _run_started(record: Mapping[str, JsonValue]) -> RunStarted:
    """The record's model; and as attributes its other plain fields, such as the task's id."""
    model = record.get("model")
    plain = [
        (_clean(name, MAX_NAME), _clean(value if isinstance(value, str) else payload_json(value), MAX_NAME))
        for name, value in record.items()
        if isinstance(value, str | int | float) and name not in ("model", "reward")
    ]
    return RunStarted(
        model=_clean(model, MAX_NAME) or None if isinstance(model, str) else None,
        attributes=dict(plain[:MAX_ATTRIBUTES]) or None,
    )


class _Drafting:
    """Writes a run down, message by message."""

    def __init__(self, run_id: str, scope: Scope) -> None:
        self.run_id = run_id
        self.scope = scope
        self.drafts: list[Draft] = []
        self.payloads: dict[str, bytes] = {}
        self.content: dict[str, bytes] = {}
        self.matcher = Matcher()
        self._step = 0

    def draft(self, event: Event, call: _Call | None = None) -> Draft:
        if call is None:
            return Draft(event, scope=self.scope, run_id=self.run_id)
        return Draft(event, scope=self.scope, run_id=self.run_id, call_id=call.call_id, dispatch=1)

    def note(self, event: Event, call: _Call | None = None) -> None:
        self.drafts.append(self.draft(event, call))

    def noted(self, message: _Message) -> None:
        content, size = self._kept(message.text) if message.text else (None, 0)
        self.note(MessageNoted(role=message.role, index=message.index, content=content, size=size))

    def called(self, message: _Message) -> None:
        """Start the calls of a message. Only then is the message seen: what is written in one breath does not come from itself."""
        for call in message.calls:
            self._step += 1
            arguments, size = self._kept(call.arguments)
            started = CallStarted(
                tool=call.tool,
                step=self._step,
                turn=message.index,
                message=message.index,
                arguments=arguments,
                size=size,
                matches=self.matcher.match_arguments(call.args) or None,
            )
            self.note(started, call)
        for call in message.calls:
            self.matcher.observe("call", call.call_id, call.args)
        self.matcher.observe("message", str(message.index), message.text)

    def result(self, message: _Message, call: _Call) -> None:
        digest, size = self._kept(message.text)
        failed = message.text.lstrip().startswith(_ERROR)
        if failed:
            self.matcher.observe("call", call.call_id, message.text)
        else:
            self._mint(message.text, digest, size, call)
        self.note(CallEnded(status="error" if failed else "ok", message=message.index, result=digest, size=size), call)

    def _mint(self, text: str, digest: str, size: int, call: _Call) -> None:
        minted = ArtifactMinted(
            ref=mint_ref(),
            kind=f"tool-result/{call.tool}"[:MAX_KIND],
            media_type="application/json" if _is_container(text) else "text/plain",
            shape="text",
            bytes=size,
            digest=digest,
            label=f"{call.tool} result"[:MAX_LABEL],
            tool=call.tool,
        )
        self.payloads[digest] = text.encode()
        self.matcher.observe("artifact", minted.ref, text)
        self.note(minted, call)

    def answered(self, answer: _Answer, answer_id: str) -> None:
        if answer.call is not None:
            self.note(AnswerGiven(answer_id=answer_id, size=0, message=answer.message.index), answer.call)
            return
        text = answer.message.text
        content, size = self._kept(text)
        given = AnswerGiven(
            answer_id=answer_id,
            content=content,
            size=size,
            message=answer.message.index,
            found=refs_in(text)[:MAX_PARENTS] or None,
            matches=self.matcher.match_text(text) or None,
        )
        self.note(given)

    def _kept(self, text: str) -> tuple[str, int]:
        """Keep a text as content: its digest and its length in bytes."""
        data = text.encode()
        digest = digest_of(data)
        self.content[digest] = data
        return digest, len(data)


def _is_container(text: str) -> bool:
    try:
        return isinstance(parse_json(text), dict | list)
    except NotCanonical:
        return False


def _clean(text: str, limit: int) -> str:
    """A name as an event can carry it: bounded, and without characters that cannot be shown."""
    return "".join(char if char.isprintable() else "_" for char in text[:limit])


def _found(holder: Mapping[str, JsonValue], name: str) -> str:
    return _type(holder[name]) if name in holder else "nothing"


def _type(value: JsonValue) -> str:
    """What a value is, in the words of JSON. Never what it holds."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "text" if value else "an empty text"
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, dict) else "a number"


def _refuse(where: str, expected: str, found: str, then: str) -> NoReturn:
    raise ImportRefused(f"{where}: expected {expected}; found {found}. {then}.")
