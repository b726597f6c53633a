"""docs/backtrack.md in plain Python: no SQL, no index, no cleverness. Read it beside the page, whose headings it follows.

    found = backtrack([recorded(row, log_id) for row in rows], answer_id)
    found.rows, found.coverage

No store mints a ref twice; where a log says so all the same, the first mint counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from refledger_schema.envelope import Recorded
from refledger_schema.events import (
    MAX_SPOKEN,
    AnswerGiven,
    AnswerJudged,
    ArtifactGone,
    ArtifactMinted,
    ArtifactPresented,
    ArtifactRead,
    CallEnded,
    CallStarted,
    ContextComposed,
    DispatchRefused,
    DispatchResolved,
    Event,
    ImportNoted,
    JudgedArgument,
    LogGap,
    Match,
    MessageNoted,
    ResolvedArgument,
)
from refledger_schema.refs import is_ref

GRADES = (
    "delivered",
    "delivered-unverified",
    "declared",
    "cited",
    "described",
    "in-window",
    "offered",
    "spoken",
    "inferred",
    "preceded",
)
"""Strongest first."""

EFFECTS = ("followed", "ignored", "elsewhere", "dropped", "abandoned", "unknown")

COVERAGE = (
    "gaps",
    "imported",
    "inferred edges",
    "missing artifacts",
    "payloads erased",
    "payloads gone",
    "texts erased",
    "unfinished calls",
    "uninstrumented calls",
)

E = TypeVar("E", bound=Event)


class BacktrackRow(NamedTuple):
    depth: int | None
    position: int | None
    node_kind: str
    node_id: str
    via_id: str | None
    argument: str | None
    grade: str | None
    note: str | None


@dataclass(frozen=True, order=True)
class CoverageRow:
    what: str
    count: int
    note: str | None


class Backtrack(NamedTuple):
    rows: list[BacktrackRow]
    coverage: list[CoverageRow]


@dataclass(frozen=True)
class Call:
    kind = "call"
    run_id: str
    call_id: str

    @property
    def id(self) -> str:
        return f"{self.run_id}/{self.call_id}"


@dataclass(frozen=True)
class Artifact:
    kind = "artifact"
    ref: str

    @property
    def id(self) -> str:
        return self.ref


@dataclass(frozen=True)
class Message:
    kind = "message"
    run_id: str
    index: str
    """As it is written: a match may name a message that nobody could have noted."""

    @property
    def id(self) -> str:
        return f"{self.run_id}#{self.index}"


Node = Call | Artifact | Message


class Edge(NamedTuple):
    """Where a node leads, and how well that is known."""

    target: Node
    grade: str
    argument: str | None = None


class Reached(NamedTuple):
    """A way to a node."""

    target: Node
    depth: int
    grade: str
    via_id: str
    argument: str | None


class AttachedRefusal(NamedTuple):
    """A refusal that cone calls met or followed, and the call that it hangs on."""

    refusal: Recorded
    depth: int
    via_id: str


def backtrack(log: Iterable[Recorded], answer_id: str) -> Backtrack:
    """What shaped the answer, by the events of `log`."""
    in_order = sorted(log, key=lambda event: event.position)
    answers = [pair for pair in _of(AnswerGiven, in_order) if pair[1].answer_id == answer_id]
    return _Walk(in_order, *answers[0]).backtrack() if answers else Backtrack([], [])


class _Walk:
    """One backtrack: what may be read for it, and the steps of the page over that."""

    def __init__(self, log: Sequence[Recorded], answer: Recorded, given: AnswerGiven) -> None:
        self.answer, self.given = answer, given
        self.scope = [event for event in log if event.scope == answer.scope]
        """All events of the answer's scope: only for verdicts, what is gone, and what followed a refusal."""
        self.past = [event for event in self.scope if event.position <= answer.position]
        """What else is read."""
        self.run = [event for event in self.past if event.run_id is not None and event.run_id == answer.run_id]
        """Of that, the answer's run."""

    def backtrack(self) -> Backtrack:
        cone = self.cone()
        refusals = self.attached_refusals(cone)
        rows = [
            self.answer_row(),
            *(self.node_row(reached) for reached in cone.values()),
            *(row for attached in refusals for row in self.refusal_rows(attached)),
            *(self.node_row(reached) for reached in self.offered_and_spoken(refusals, cone).values()),
            *(self.earlier_call_row(call) for call in self.calls_of_the_run() if call not in cone),
        ]
        return Backtrack(sorted(rows, key=_nulls_last), self.coverage(cone, refusals))

    # --- Rows ------------------------------------------------------------------------------------------------------------

    def answer_row(self) -> BacktrackRow:
        verdicts = [judged.verdict for _, judged in _of(AnswerJudged, self.scope) if judged.answer_id == self.given.answer_id]
        note = verdicts[-1] if verdicts else "unjudged"
        return BacktrackRow(0, self.answer.position, "answer", self.given.answer_id, None, None, None, note)

    def node_row(self, reached: Reached) -> BacktrackRow:
        node = reached.target
        return BacktrackRow(
            reached.depth, self.position_of(node), node.kind, node.id, reached.via_id, reached.argument, reached.grade, self.note_of(node)
        )

    def earlier_call_row(self, call: Call) -> BacktrackRow:
        return BacktrackRow(None, self.position_of(call), call.kind, call.id, None, None, "preceded", self.note_of(call))

    def position_of(self, node: Node) -> int | None:
        match node:
            case Call():
                of_call = self.events_of(node)
                starts = [event for event, _ in _of(CallStarted, of_call)]
                return _first_position([*starts, *of_call])
            case Artifact():
                mint = self.mint_of(node)
                return None if mint is None else mint[0].position
            case Message():
                return _first_position([event for event, _ in self.notings(node)])

    def note_of(self, node: Node) -> str:
        match node:
            case Call():
                tools = [started.tool for _, started in _of(CallStarted, self.events_of(node))]
                statuses = [ended.status for _, ended in _of(CallEnded, self.events_of(node))]
                return f"{tools[0] if tools else '?'} {statuses[-1] if statuses else 'unfinished'}"
            case Artifact():
                mint = self.mint_of(node)
                return "never minted here" if mint is None else f"{mint[1].kind} {mint[1].digest} {self.state_of(node)}"
            case Message():
                roles = [noted.role for _, noted in self.notings(node)]
                return roles[0] if roles else "not recorded"

    def state_of(self, artifact: Artifact) -> str:
        causes = [gone.cause for _, gone in _of(ArtifactGone, self.scope) if gone.ref == artifact.ref]
        return causes[0] if causes else "live"

    def mint_of(self, artifact: Artifact) -> tuple[Recorded, ArtifactMinted] | None:
        return next((pair for pair in _of(ArtifactMinted, self.past) if pair[1].ref == artifact.ref), None)

    def notings(self, message: Message) -> list[tuple[Recorded, MessageNoted]]:
        return [
            (event, noted)
            for event, noted in _of(MessageNoted, self.past)
            if event.run_id == message.run_id and str(noted.index) == message.index
        ]

    def events_of(self, call: Call) -> list[Recorded]:
        return [event for event in self.past if _call_of(event) == call]

    def calls_of_the_run(self) -> list[Call]:
        """The calls of the answer's run with an event at or before the answer."""
        calls = [_call_of(event) for event in self.run]
        return list(dict.fromkeys(call for call in calls if call is not None))

    def artifacts_of_the_scope(self) -> list[Artifact]:
        return list(dict.fromkeys(Artifact(minted.ref) for _, minted in _of(ArtifactMinted, self.past)))

    # --- Seeds -----------------------------------------------------------------------------------------------------------

    def seeds(self) -> list[Edge]:
        return [*self.cited(), *self.in_window(), *self.inferred()] or self.preceded()

    def cited(self) -> Iterator[Edge]:
        itself = _call_of(self.answer)
        if itself is not None:
            yield Edge(itself, "cited")
        for ref in [*(self.given.cited or ()), *(self.given.found or ())]:
            yield Edge(Artifact(ref), "cited")

    def in_window(self) -> Iterator[Edge]:
        windows = _of(ContextComposed, self.run)
        run_id = self.answer.run_id
        if windows and run_id is not None:
            _, newest = windows[-1]
            yield from (Edge(Artifact(ref), "in-window") for ref in newest.refs or ())
            yield from (Edge(Call(run_id, call_id), "in-window") for call_id in newest.calls or ())
            yield from (Edge(Message(run_id, str(index)), "in-window") for index in newest.messages or ())

    def inferred(self) -> Iterator[Edge]:
        yield from _matched(self.answer, self.given.matches)
        if self.given.content is not None and self.given.size > 0:
            for call in self.calls_of_the_run():
                results = [ended.result for _, ended in _of(CallEnded, self.events_of(call))]
                if results and results[-1] == self.given.content:
                    yield Edge(call, "inferred")
            for artifact in self.artifacts_of_the_scope():
                mint = self.mint_of(artifact)
                if mint is not None and mint[1].digest == self.given.content:
                    yield Edge(artifact, "inferred")

    def preceded(self) -> list[Edge]:
        ended = [_call_of(event) for event, _ in _of(CallEnded, self.run)]
        return [Edge(call, "preceded") for call in ended[-1:] if call is not None]

    # --- The cone --------------------------------------------------------------------------------------------------------

    def cone(self) -> dict[Node, Reached]:
        """Breadth first, so that the first depth at which a node is met is its least. Every round but the last adds a node."""
        cone: dict[Node, Reached] = {}
        depth = 1
        nearest = _best(Reached(edge.target, depth, edge.grade, self.given.answer_id, edge.argument) for edge in self.seeds())
        while nearest:
            cone |= nearest
            depth += 1
            nearest = _best(
                Reached(edge.target, depth, edge.grade, node.id, edge.argument)
                for node in nearest
                for edge in self.leads_to(node)
                if edge.target not in cone
            )
        return cone

    def leads_to(self, node: Node) -> Iterator[Edge]:
        match node:
            case Call():
                return self.call_leads_to(node)
            case Artifact():
                return self.artifact_leads_to(node)
            case Message():
                return iter(())

    def artifact_leads_to(self, artifact: Artifact) -> Iterator[Edge]:
        mint = self.mint_of(artifact)
        if mint is not None:
            event, minted = mint
            minting = _call_of(event)
            if minting is not None:
                yield Edge(minting, "declared")
            yield from (Edge(Artifact(parent.ref), "declared") for parent in minted.parents or ())

    def call_leads_to(self, call: Call) -> Iterator[Edge]:
        for event in self.events_of(call):
            match event.event:
                case DispatchResolved(arguments=arguments):
                    for argument in arguments:
                        yield Edge(Artifact(argument.ref), _delivered(argument.verified), argument.argument)
                case ArtifactRead(ref=ref, via=via, verified=verified):
                    yield Edge(Artifact(ref), "described" if via == "head" else _delivered(verified))
                case ArtifactPresented(ref=ref):
                    yield Edge(Artifact(ref), "described")
                case CallStarted(matches=matches):
                    yield from _matched(event, matches)

    # --- Attached, outside the cone ----------------------------------------------------------------------------------------

    def attached_refusals(self, cone: dict[Node, Reached]) -> list[AttachedRefusal]:
        attached = []
        for refusal, _ in _of(DispatchRefused, self.past):
            following = self.next_dispatch(refusal)
            calls = [_call_of(refusal)] + ([_call_of(following)] if following is not None else [])
            ways = [(cone[call].depth + 1, call.id) for call in calls if call is not None and call in cone]
            if ways:
                attached.append(AttachedRefusal(refusal, *min(ways)))
        return attached

    def refusal_rows(self, attached: AttachedRefusal) -> Iterator[BacktrackRow]:
        refusal = attached.refusal
        for judged in _refused_arguments(refusal):
            yield BacktrackRow(
                attached.depth,
                refusal.position,
                "refusal",
                refusal.event_id,
                attached.via_id,
                judged.argument,
                None,
                f"{judged.reason} ({judged.cause}): {self.what_followed(refusal, judged)}",
            )

    def offered_and_spoken(self, refusals: list[AttachedRefusal], cone: dict[Node, Reached]) -> dict[Node, Reached]:
        ways = [
            Reached(edge.target, attached.depth + 1, edge.grade, attached.refusal.event_id, edge.argument)
            for attached in refusals
            for edge in [*_offered(attached.refusal), *_spoken(attached.refusal)]
            if edge.target not in cone
        ]
        return _best(ways)

    # --- What followed a refusal -------------------------------------------------------------------------------------------

    def what_followed(self, refusal: Recorded, judged: JudgedArgument) -> str:
        """The effect, and the next dispatch's own outcome where there is one."""
        following = self.next_dispatch(refusal)
        if following is None:
            parallel = self.turn_of(refusal) is None and self.later_dispatches(refusal)
            return "unknown" if parallel else "abandoned"
        then = _argument_of(following, judged.argument)
        offered = {ref for kind, ref in _offers_of(refusal) if kind == judged.wanted}
        match then:
            case None:
                return "dropped, then absent"
            case ResolvedArgument():
                return f"{_effect(then.ref, offered)}, then resolved"
            case JudgedArgument(outcome="absent"):
                return "dropped, then absent"
            case JudgedArgument():
                effect = "unknown" if _is_lost(following, then) else _effect(_spoke(following, then), offered)
                return f"{effect}, then {then.outcome}"

    def next_dispatch(self, refusal: Recorded) -> Recorded | None:
        turn = self.turn_of(refusal)
        for later in self.later_dispatches(refusal):
            if turn is not None:
                later_turn = self.turn_of(later)
                if later_turn is not None and later_turn > turn:
                    return later
            else:
                end = self.end_of(refusal)
                start = self.start_of(later)
                if end is not None and start is not None and start[0].position > end.position:
                    return later
        return None

    def later_dispatches(self, refusal: Recorded) -> list[Recorded]:
        return [
            event
            for event in self.scope
            if isinstance(event.event, DispatchResolved | DispatchRefused)
            and event.position > refusal.position
            and event.run_id == refusal.run_id
            and _tool_of(event) == _tool_of(refusal)
            and (event.call_id, event.dispatch) != (refusal.call_id, refusal.dispatch)
        ]

    def start_of(self, dispatch: Recorded) -> tuple[Recorded, CallStarted] | None:
        return next((pair for pair in _of(CallStarted, self.scope) if _dispatch_of(pair[0]) == _dispatch_of(dispatch)), None)

    def turn_of(self, dispatch: Recorded) -> int | None:
        start = self.start_of(dispatch)
        return None if start is None else start[1].turn

    def end_of(self, dispatch: Recorded) -> Recorded | None:
        ends = [event for event, _ in _of(CallEnded, self.scope) if _dispatch_of(event) == _dispatch_of(dispatch)]
        return ends[-1] if ends else None

    # --- Coverage ----------------------------------------------------------------------------------------------------------

    def coverage(self, cone: dict[Node, Reached], refusals: list[AttachedRefusal]) -> list[CoverageRow]:
        calls = [node for node in cone if isinstance(node, Call)]
        artifacts = [node for node in cone if isinstance(node, Artifact)]
        mints = [mint for mint in map(self.mint_of, artifacts) if mint is not None]
        states = [self.state_of(Artifact(minted.ref)) for _, minted in mints]
        formats = [imported.format for _, imported in _of(ImportNoted, self.run)]
        gaps = [gap for _, gap in _of(LogGap, self.past)]
        looked_at = [
            *(event for call in calls for event in self.events_of(call)),
            *(event for event, _ in mints),
            *(attached.refusal for attached in refusals),
            self.answer,
        ]
        return [
            CoverageRow("gaps", len(gaps), _lost_observations(gaps)),
            CoverageRow("imported", 1 if formats else 0, formats[0] if formats else None),
            CoverageRow("inferred edges", sum(reached.grade == "inferred" for reached in cone.values()), None),
            CoverageRow("missing artifacts", len(artifacts) - len(mints), None),
            CoverageRow("payloads erased", sum(state == "erased" for state in states), None),
            CoverageRow("payloads gone", sum(state not in ("live", "erased") for state in states), None),
            CoverageRow("texts erased", len({event.position for event in looked_at if event.erased}), None),
            CoverageRow("unfinished calls", sum(not _of(CallEnded, self.events_of(call)) for call in self.calls_of_the_run()), None),
            CoverageRow("uninstrumented calls", sum(not list(self.call_leads_to(call)) for call in calls), None),
        ]


# --- Of single events ------------------------------------------------------------------------------------------------------


def _of(kind: type[E], events: Sequence[Recorded]) -> list[tuple[Recorded, E]]:
    """The events of one kind, each beside its envelope."""
    return [(event, event.event) for event in events if isinstance(event.event, kind)]


def _call_of(event: Recorded) -> Call | None:
    return None if event.run_id is None or event.call_id is None else Call(event.run_id, event.call_id)


def _dispatch_of(event: Recorded) -> tuple[str | None, str | None, int | None]:
    return (event.run_id, event.call_id, event.dispatch)


def _tool_of(dispatch: Recorded) -> str:
    assert isinstance(dispatch.event, DispatchResolved | DispatchRefused)
    return dispatch.event.tool


def _delivered(verified: bool) -> str:
    return "delivered" if verified else "delivered-unverified"


def _matched(event: Recorded, matches: tuple[Match, ...] | None) -> Iterator[Edge]:
    """The well-formed matches of an event, as edges."""
    for match in matches or ():
        if match.source == "artifact" and is_ref(match.id):
            yield Edge(Artifact(match.id), "inferred", match.argument)
        if match.source == "call" and event.run_id is not None:
            yield Edge(Call(event.run_id, match.id), "inferred", match.argument)
        if match.source == "message" and event.run_id is not None:
            yield Edge(Message(event.run_id, match.id), "inferred", match.argument)


def _refused_arguments(refusal: Recorded) -> list[JudgedArgument]:
    assert isinstance(refusal.event, DispatchRefused)
    return [judged for judged in refusal.event.arguments if judged.outcome == "refused"]


def _offers_of(refusal: Recorded) -> list[tuple[str, str]]:
    """(kind, ref) of every line that the refusal offered."""
    assert isinstance(refusal.event, DispatchRefused)
    return [(offers.kind, offered.ref) for offers in refusal.event.offers for offered in offers.refs]


def _offered(refusal: Recorded) -> Iterator[Edge]:
    yield from (Edge(Artifact(ref), "offered") for _, ref in _offers_of(refusal))


def _spoken(refusal: Recorded) -> Iterator[Edge]:
    for judged in _refused_arguments(refusal):
        spoke = _spoke(refusal, judged)
        if spoke is not None and is_ref(spoke):
            yield Edge(Artifact(spoke), "spoken", judged.argument)


def _argument_of(dispatch: Recorded, name: str) -> ResolvedArgument | JudgedArgument | None:
    assert isinstance(dispatch.event, DispatchResolved | DispatchRefused)
    return next((argument for argument in dispatch.event.arguments if argument.argument == name), None)


def _spoke(refusal: Recorded, judged: JudgedArgument) -> str | None:
    """What the model named for the argument: the ref that was found by it, else its text; None where neither is there."""
    assert isinstance(refusal.event, DispatchRefused)
    return judged.ref if judged.ref is not None else (refusal.event.spoken or {}).get(judged.argument)


def _is_lost(refusal: Recorded, judged: JudgedArgument) -> bool:
    """Whether it was a text that the refusal held, and the texts are gone."""
    within_the_bound = judged.spoken_length is not None and judged.spoken_length <= MAX_SPOKEN
    return judged.ref is None and judged.spoken_as == "text" and within_the_bound and refusal.erased


def _effect(spoke: str | None, offered: set[str]) -> str:
    if spoke in offered:
        return "followed"
    return "ignored" if offered else "elsewhere"


def _lost_observations(gaps: list[LogGap]) -> str | None:
    counts = [gap.count for gap in gaps]
    known = [count for count in counts if count is not None]
    if not counts:
        return None
    return str(sum(known)) if len(known) == len(counts) else "unknown"


# --- Of ways and rows ------------------------------------------------------------------------------------------------------


def _best(ways: Iterable[Reached]) -> dict[Node, Reached]:
    """For each node the way that is kept: least depth, then strongest grade, then least (via_id, argument)."""
    best: dict[Node, Reached] = {}
    for way in ways:
        if way.target not in best or _rank(way) < _rank(best[way.target]):
            best[way.target] = way
    return best


def _rank(way: Reached) -> tuple[int, int, list[tuple[bool, object]]]:
    return (way.depth, GRADES.index(way.grade), _nulls_last((way.via_id, way.argument)))


def _nulls_last(values: Sequence[object]) -> list[tuple[bool, object]]:
    return [(value is None, value if value is not None else 0) for value in values]


def _first_position(events: Sequence[Recorded]) -> int | None:
    return events[0].position if events else None
