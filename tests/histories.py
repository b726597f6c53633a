"""Random histories for properties: any events, in any order, over few ids, so that they collide, cross and come round.

    @given(histories())
    def test_...(history: History) -> None:
        rows = history.rows()

A history is made of episodes that know nothing of each other: a call from start to end, two calls at once, or a single
event anywhere. So any of them can be left out, and a counterexample shrinks to the few that matter. Much of what comes out
no store would have let in; all of it is well typed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import TypeVar, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from hypothesis.vendor.pretty import RepresentationPrinter

from refledger_schema.envelope import Draft, Row
from refledger_schema.events import (
    MAX_SPOKEN,
    AnswerGiven,
    AnswerJudged,
    ArtifactGone,
    ArtifactMinted,
    ArtifactPresented,
    ArtifactRead,
    ArtifactRefused,
    CallEnded,
    CallStarted,
    ContextComposed,
    CoverageDeclared,
    DeclarationRefused,
    DispatchRefused,
    DispatchResolved,
    Event,
    ImportNoted,
    JudgedArgument,
    LogGap,
    LogOpened,
    Match,
    MessageNoted,
    OfferedRef,
    Offers,
    Parent,
    ResolvedArgument,
    RunEnded,
    RunStarted,
    SpokenAs,
    Status,
    Verdict,
    Via,
)
from refledger_schema.reasons import REASON_OF, Cause, GoneCause
from refledger_schema.scopes import Scope
from tests.logmaking import erased, make_log

SCOPES = (Scope("c-1", "acme", "alice"), Scope("c-1", "o'hara / 100%"))
RUNS = ("r1", "r/2")
CALLS = ("c1", "c2", 'c/"𝄞#')
TOOLS = ("sum", 'plot "2"')
ARGUMENTS = ("data", "o'er")
KINDS = ("rows", "a 'map'")
REFS = tuple("art_" + letter * 22 for letter in "ABCDEF")
DIGESTS = tuple("sha-256:" + digit * 64 for digit in "123")
ANSWERS = ("ans-1", "ans-2", "ans-3")
INDEXES = (1, 2, 10)

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """Where an event is said to have happened."""

    scope: Scope | None = None
    run_id: str | None = None
    call_id: str | None = None
    dispatch: int | None = None

    def of(self, event: Event) -> Draft:
        return Draft(event, self.scope, self.run_id, self.call_id, self.dispatch)


Episode = Sequence[Draft]


@dataclass(frozen=True, repr=False)
class History:
    """What happened, and the indexes of the events whose texts were erased since."""

    drafts: tuple[Draft, ...]
    erased: frozenset[int]

    def rows(self, log_id: str = "log-a") -> list[Row]:
        return erase(make_log(self.drafts, log_id=log_id), self.erased)

    def answer_ids(self) -> list[str]:
        return sorted({draft.event.answer_id for draft in self.drafts if isinstance(draft.event, AnswerGiven)})

    def __repr__(self) -> str:
        """An event a line, as a reader of a counterexample wants it."""
        lines = [_line(index + 1, draft, index in self.erased) for index, draft in enumerate(self.drafts)]
        return "\n".join(["History:", *lines])

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        printer.text(repr(self))


def erase(rows: Sequence[Row], indexes: Collection[int]) -> list[Row]:
    """The rows after the texts and salts of some of them were erased; an index past the end says nothing."""
    return [erased(row) if index in indexes else row for index, row in enumerate(rows)]


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A history with one answer at least, and with some life after it."""
    minting = st.lists(st.builds(_single, in_call, minted), max_size=8)
    some = st.lists(episodes, max_size=8)
    # Some lists in a row are as many episodes as one long list seldom gives, and shrink as well.
    before = draw(st.tuples(st.lists(st.builds(_single, in_run, imports), max_size=1), minting, minting, some, some, some))
    answer = draw(answers_given | acts)
    after = draw(st.tuples(st.lists(st.builds(_single, in_scope, gone), max_size=5), st.lists(episodes, max_size=3)))
    drafts = [draft for episode in [*chain(*before), answer, *chain(*after)] for draft in episode]
    marks = draw(st.sets(st.integers(0, 40), max_size=6))
    return History(tuple(drafts), frozenset(mark for mark in marks if mark < len(drafts)))


@st.composite
def refusals_and_what_followed(draw: st.DrawFn) -> History:
    """One run of hardly more than refusals and further tries, all in the answer's window, with much of what was spoken erased."""
    tried = [draft for episode in draw(st.lists(tries, min_size=1, max_size=4)) for draft in episode]
    if draw(st.sampled_from([True, True, False])):
        # Each call is a dispatch of its own, as in a log that a store wrote; else they get into each other's way.
        tried = [replace(draft, dispatch=index // 3 + 1) for index, draft in enumerate(tried)]
    told = [*tried, Place().of(ContextComposed(calls=CALLS)), *draw(answers_given)]
    drafts = [replace(draft, scope=SCOPES[0], run_id=RUNS[0]) for draft in told]
    marks = draw(st.sets(st.integers(0, len(drafts) - 1), max_size=6))
    return History(tuple(drafts), frozenset(marks))


# --- Small things ----------------------------------------------------------------------------------------------------------


def _maybe(strategy: SearchStrategy[T]) -> SearchStrategy[T | None]:
    return st.none() | strategy


def _some(strategy: SearchStrategy[T], most: int) -> SearchStrategy[tuple[T, ...] | None]:
    """A field that is absent, empty, or holds a few."""
    return _maybe(st.lists(strategy, max_size=most).map(tuple))


def _mostly(common: T, *rare: T) -> SearchStrategy[T]:
    return st.sampled_from([common] * 4 + list(rare))


refs = st.sampled_from(REFS[:1] * 3 + REFS)
runs = st.sampled_from([RUNS[0]] * 7 + [RUNS[1]] * 2 + [None])
calls = st.sampled_from(CALLS)
tools = _mostly(*TOOLS)
kinds = st.sampled_from(KINDS[:1] + KINDS)
digests = st.sampled_from(DIGESTS)
sizes = _mostly(7, 0)
turns = st.sampled_from((None, None, 1, 2, 3))
indexes = st.sampled_from(INDEXES)
scopes = _mostly(*SCOPES)

in_scope = st.builds(Place, scopes)
in_run = st.builds(Place, scopes, runs)
in_call = st.builds(Place, scopes, runs, calls, st.sampled_from([1, 1, 1, 2, None]))
anywhere = in_scope | in_run | in_call

matches = st.one_of(
    st.builds(Match, argument=_maybe(st.sampled_from(ARGUMENTS)), source=st.just("call"), id=calls | st.just("never started")),
    st.builds(Match, argument=_maybe(st.sampled_from(ARGUMENTS)), source=st.just("artifact"), id=refs | st.just("art_short")),
    st.builds(
        Match,
        argument=_maybe(st.sampled_from(ARGUMENTS)),
        source=st.just("message"),
        id=st.sampled_from([*map(str, INDEXES), "first", "01"]),
    ),
)

# --- Events ----------------------------------------------------------------------------------------------------------------

log_opened = st.builds(
    LogOpened, software=st.just("0"), durability=st.just("full"), observations=st.just("buffered"), record_content=st.just(True)
)
gaps = st.builds(LogGap, count=st.sampled_from([None, 0, 3]), why=st.just("crash"))
run_started = st.builds(RunStarted)
run_ended = st.builds(RunEnded, outcome=st.just("closed"))
messages = st.builds(MessageNoted, role=st.sampled_from(["user", "tool"]), index=indexes, content=_maybe(digests), size=sizes)
call_started = st.builds(
    CallStarted,
    tool=tools,
    step=st.just(1),
    turn=turns,
    arguments=_maybe(digests),
    matches=_some(matches, 2).map(lambda some: some or None),
)
call_ended = st.builds(CallEnded, status=st.sampled_from(get_args(Status)), result=_maybe(digests), size=_maybe(sizes))
minted = st.builds(
    ArtifactMinted,
    ref=refs,
    kind=kinds,
    media_type=st.just("application/json"),
    shape=st.just("json"),
    bytes=sizes,
    digest=digests,
    label=_maybe(st.just("Q3")),
    parents=_some(st.builds(Parent, ref=refs, how=st.sampled_from(["declared", "call"])), 3).map(lambda some: some or None),
)
reads = st.builds(
    ArtifactRead, ref=refs, via=st.sampled_from(("head", *get_args(Via))), door=st.just("call"), verified=st.booleans()
) | st.builds(ArtifactPresented, ref=refs, door=st.just("call"))
presented = st.builds(ArtifactPresented, ref=refs, door=st.just("call"))
gone = st.builds(ArtifactGone, ref=refs, cause=st.sampled_from((*get_args(GoneCause), "erased")), why=_maybe(st.just("asked to")))
windows = st.builds(ContextComposed, messages=_some(indexes, 2), calls=_some(calls, 2), refs=_some(refs, 2), dropped=_some(calls, 1))
answers = st.builds(
    AnswerGiven,
    answer_id=st.sampled_from(ANSWERS),
    content=_maybe(digests),
    size=sizes,
    cited=_some(refs, 2),
    found=_some(refs, 1),
    matches=_some(matches, 2),
)
verdicts = st.builds(
    AnswerJudged, answer_id=st.sampled_from(ANSWERS), verdict=st.sampled_from(get_args(Verdict)), note=_maybe(st.just("twice"))
)
# Events of which a backtrack says nothing.
asides = st.one_of(
    st.builds(ArtifactRefused, op=st.just("get"), reason=st.just("digest-mismatch"), cause=st.just("corrupt"), ref=refs),
    st.builds(CoverageDeclared, kind=st.just("absent"), looked_for=st.just("rows")),
    st.builds(DeclarationRefused, helper=st.just("coverage"), key=st.just("chekced")),
)
imports = st.builds(ImportNoted, format=st.sampled_from(["otel", "chat"]), source=digests)


def _by_name(strategy: SearchStrategy[T]) -> SearchStrategy[dict[str, T]]:
    """One for each of some arguments, in the order of a declaration."""
    return st.dictionaries(st.sampled_from(ARGUMENTS), strategy, min_size=1).map(lambda some: dict(sorted(some.items())))


def _resolved(tool: str, arguments: dict[str, tuple[str, str, bool]]) -> DispatchResolved:
    return DispatchResolved(
        tool=tool,
        arguments=tuple(
            ResolvedArgument(argument=name, kind=kind, ref=ref, digest=DIGESTS[0], bytes=7, verified=verified)
            for name, (kind, ref, verified) in arguments.items()
        ),
    )


deliveries = _by_name(st.tuples(kinds, refs, st.booleans()))
resolutions = st.builds(_resolved, tools, st.one_of(deliveries, deliveries, deliveries, st.just({})))


@dataclass(frozen=True)
class Utterance:
    """What a model put where a ref belonged, and what dispatch made of it."""

    spoken_as: SpokenAs = "text"
    length: int | None = None
    text: str | None = None
    found: str | None = None


def _text(text: str) -> Utterance:
    return Utterance("empty-text" if text == "" else "text", len(text), text)


def _found(ref: str) -> Utterance:
    return Utterance("text", len(ref), ref, ref)


NOT_A_TEXT = tuple(Utterance(spoken_as, 4) for spoken_as in ("null", "boolean", "number", "array", "object", "bytes", "other"))
utterances = st.one_of(
    refs.map(_found),
    refs.map(_text),
    st.sampled_from(["the sales", "", "x" * MAX_SPOKEN, f" {REFS[0]}", f"{REFS[0]}!", REFS[0].lower()]).map(_text),
    st.just(Utterance("text", MAX_SPOKEN + 1)),
    st.sampled_from(NOT_A_TEXT),
)

Judgement = tuple[str, Utterance | None, Cause | None]
"""The kind wanted, what was spoken (None: nothing), and why it was refused (None: it was not)."""
judged_refused = st.tuples(kinds, _maybe(utterances), st.sampled_from(get_args(Cause)))
judged_well = st.tuples(kinds, _maybe(refs.map(_found)), st.none())
lines = st.lists(refs, max_size=3, unique=True)


def _refused(tool: str, judgements: dict[str, Judgement], at_least: Judgement, offered: dict[str, list[str]]) -> DispatchRefused:
    """At least one argument is refused, since otherwise nothing was; offers are made for the kinds of those only."""
    if all(cause is None for _, _, cause in judgements.values()):
        judgements = judgements | {ARGUMENTS[0]: at_least}
    wanted = dict.fromkeys(kind for kind, _, cause in judgements.values() if cause is not None)
    return DispatchRefused(
        tool=tool,
        wording=1,
        arguments=tuple(_judged(name, *judgement) for name, judgement in sorted(judgements.items())),
        offers=tuple(
            Offers(kind=kind, refs=tuple(OfferedRef(ref=ref, bytes=7) for ref in offered[kind]), total=len(offered[kind]))
            for kind in wanted
        ),
        sentence=DIGESTS[0],
        spoken={name: spoke.text for name, (_, spoke, _) in sorted(judgements.items()) if spoke is not None and spoke.text is not None}
        or None,
        labels={ref: "Q3" for shown in offered.values() for ref in shown} or None,
    )


def _judged(name: str, wanted: str, spoke: Utterance | None, cause: Cause | None) -> JudgedArgument:
    otherwise = "absent" if spoke is None else "resolved"
    return JudgedArgument.model_validate(
        {
            "argument": name,
            "wanted": wanted,
            "outcome": otherwise if cause is None else "refused",
            "reason": None if cause is None else REASON_OF[cause],
            "cause": cause,
            "ref": None if spoke is None else spoke.found,
            "spoken_as": "absent" if spoke is None else spoke.spoken_as,
            "spoken_length": None if spoke is None else spoke.length,
        }
    )


refusals = st.builds(
    _refused,
    tools,
    _by_name(judged_refused | judged_well),
    judged_refused,
    st.fixed_dictionaries({kind: lines for kind in KINDS}),
)

# --- Episodes --------------------------------------------------------------------------------------------------------------


def _single(place: Place, event: Event) -> Episode:
    return [place.of(event)]


def _whole_call(place: Place, started: CallStarted, within: list[Event], ended: CallEnded | AnswerGiven) -> Episode:
    return [place.of(event) for event in (started, *within, ended)]


def _at_once(one: Episode, other: Episode) -> Episode:
    return [draft for pair in zip_longest(one, other) for draft in pair if draft is not None]


def _tried_again(refused: Episode, again: Episode, turns: Sequence[int | None], manner: str) -> Episode:
    """A refusal, and a call of the same run that may be what followed it."""
    (first, refusal, last) = _in_turn(refused, turns[0])
    assert isinstance(refusal.event, DispatchRefused)
    (start, dispatch, end) = (replace(draft, scope=first.scope, run_id=first.run_id) for draft in _in_turn(again, turns[1]))
    if manner == "obeying":
        dispatch = replace(dispatch, event=_obeying(refusal.event))
    if manner == "same tool":
        dispatch = replace(dispatch, event=dispatch.event.model_copy(update={"tool": refusal.event.tool}))
    return [first, refusal, last, start, dispatch, end]


def _in_turn(call: Episode, turn: int | None) -> Episode:
    return [replace(call[0], event=call[0].event.model_copy(update={"turn": turn})), *call[1:]]


def _obeying(refusal: DispatchRefused) -> Event:
    """What comes of a model that speaks the last ref it was offered, be it of another kind; the refusal again where none was."""
    offered = [line.ref for offers in refusal.offers for line in offers.refs]
    if not offered:
        return refusal
    return _resolved(refusal.tool, {judged.argument: (judged.wanted, offered[-1], True) for judged in refusal.arguments})


within_a_call: SearchStrategy[Event] = st.one_of(resolutions, refusals, reads, reads, presented, minted, asides)
whole_calls = st.builds(_whole_call, in_call, call_started, st.lists(within_a_call, max_size=3), call_ended)
refused_calls = st.builds(_whole_call, in_call, call_started, refusals.map(lambda refusal: [refusal]), call_ended)
dispatched_calls = st.builds(_whole_call, in_call, call_started, (resolutions | refusals).map(lambda dispatched: [dispatched]), call_ended)
answers_given = st.builds(_single, in_run | in_run | in_call, answers)
two_turns = st.sampled_from([(None, None), (None, None), (1, 2), (1, 2), (2, 1), (1, None), (None, 2)])
tries = st.builds(_tried_again, refused_calls, dispatched_calls, two_turns, st.sampled_from(["same tool", "obeying", "as drawn"]))
# A call that is the answer.
acts = st.builds(_whole_call, in_call, call_started, st.lists(within_a_call, max_size=8), answers)
episodes: SearchStrategy[Episode] = st.one_of(
    whole_calls,
    whole_calls,
    whole_calls,
    tries,
    tries,
    st.builds(_at_once, dispatched_calls, dispatched_calls),
    st.builds(_single, in_call, st.one_of(call_started, call_ended, within_a_call)),
    st.builds(_single, anywhere, minted),
    st.builds(_single, anywhere, gone),
    st.builds(_single, in_run, windows),
    st.builds(_single, in_run, st.one_of(messages, imports, run_started, run_ended)),
    st.builds(_single, anywhere, st.one_of(asides, reads, presented, verdicts)),
    st.builds(_single, anywhere, gaps),
    st.builds(_single, st.just(Place()), log_opened | gaps),
    answers_given,
)


def _line(position: int, draft: Draft, is_erased: bool) -> str:
    where = "/".join("-" if part is None else str(part) for part in (_letter(draft.scope), draft.run_id, draft.call_id, draft.dispatch))
    said = draft.event.model_dump(exclude_none=True, exclude={"type", "version", "step", "sentence", "wording", "media_type", "shape"})
    return f"  {position:3} {where:14} {draft.event.type}{' ERASED' if is_erased else ''} {said}"


def _letter(scope: Scope | None) -> str | None:
    return None if scope is None else "AB"[SCOPES.index(scope)]
