"""An event says what happened in frozen words; its leaf is RFC 8785 over every column, and survives the erasure of its texts."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
import rfc8785
from annotated_types import Ge, Le, MaxLen, MinLen
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from refledger_schema.envelope import MAX_LEAF, Draft, Recorded, Row, leaf_bytes, placed, prepare, recorded
from refledger_schema.errors import LogCorrupt, NotCanonical, TooLarge
from refledger_schema.events import KINDS, AnswerJudged, ArtifactMinted, ContextComposed, Event, LogOpened, Parent, Private, RunStarted
from refledger_schema.merkle import leaf_hash
from refledger_schema.scopes import Scope, scope_of
from tests.ledgers import NOON, SCOPE, property_settings

LOG_ID = "01a22c0c-0000-7000-8000-000000000000"
EVENT_ID = "01a22c0c-89d8-7641-aebb-5f1460e99626"
MARKER = "marker-7f3a"
EVENTS = list(KINDS.values())
by_type = pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
REF = "art_" + "x" * 22


def models_of(kind: type[BaseModel]) -> set[type[BaseModel]]:
    """A model and those that it holds."""
    inner = {part for field in kind.model_fields.values() for part in parts_of(field.annotation)}
    return {kind}.union(*(models_of(part) for part in inner))


def parts_of(annotation: Any) -> set[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return {annotation}
    return set().union(*(parts_of(part) for part in get_args(annotation) if get_origin(annotation) is not Literal))


# --- any event there can be, from the models' own words ------------------------------------------------------------------------

TEXTS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
MOST = 3
"""How many members a drawn list has at most: what a bound allows is tried apart."""


def events_of(kind: type[BaseModel]) -> st.SearchStrategy[Any]:
    """Instances of a model, drawn from what its fields say they take."""
    fields = {name: values_of(field.annotation, field.metadata) for name, field in kind.model_fields.items()}
    return st.fixed_dictionaries(fields).map(lambda drawn: kind(**drawn))


def values_of(annotation: Any, metadata: list[Any]) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return values_of(arguments[0], [*_constraints(arguments[1:]), *metadata])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, UnionType):
        return st.one_of(*(values_of(part, metadata) for part in arguments))
    if origin is tuple:
        return st.lists(values_of(arguments[0], []), max_size=MOST).map(tuple)
    if origin in (dict, Mapping):
        return st.dictionaries(values_of(arguments[0], []), values_of(arguments[1], []), max_size=MOST)
    if annotation is int:
        least = next((mark.ge for mark in metadata if isinstance(mark, Ge)), None)
        most = next((mark.le for mark in metadata if isinstance(mark, Le)), None)
        return st.integers(least, most)  # type: ignore[arg-type]
    if annotation is str:
        pattern = next((mark.pattern for mark in metadata if getattr(mark, "pattern", None)), None)
        if pattern is not None:
            return st.from_regex(pattern.replace("$", r"\Z"), fullmatch=True)
        least = next((mark.min_length for mark in metadata if isinstance(mark, MinLen)), 0)
        most = next((mark.max_length for mark in metadata if isinstance(mark, MaxLen)), 12)
        return st.text(TEXTS, min_size=least, max_size=min(most, 12)) | st.text('ä𝄞\\"', min_size=most, max_size=most)
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return events_of(annotation)
    if annotation is bool:
        return st.booleans()
    assert annotation in (None, NoneType), annotation
    return st.none()


def _constraints(marks: tuple[Any, ...]) -> list[Any]:
    return [mark for given_ in marks for mark in (given_.metadata if isinstance(given_, FieldInfo) else [given_])]


names = st.text(TEXTS, max_size=5)
ids = st.none() | st.text(TEXTS, min_size=1, max_size=8)
micros = st.integers(-(2**53) + 1, 2**53 - 1)


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    """Any event, anywhere."""
    event = draw(events_of(draw(st.sampled_from(EVENTS))))
    scope = draw(st.none() | st.builds(Scope, names, names, names))
    return Draft(event, scope, draw(ids), draw(ids), draw(st.none() | st.integers(1, 2**53 - 1)), draw(st.none() | micros))


def row_of(draft: Draft, position: int = 7, recorded_us: int = NOON) -> Row:
    scope = draft.scope
    return placed(
        prepare(draft, EVENT_ID),
        log_id=LOG_ID,
        position=position,
        recorded_us=recorded_us,
        scope_key=None if scope is None else scope.key,
        scope_seq=None if scope is None else 3,
    )


# --- what every event is -----------------------------------------------------------------------------------------------------


@by_type
def test_a_released_event_is_told_by_a_literal_type_and_version(kind: type[Event]) -> None:
    assert get_origin(kind.model_fields["type"].annotation) is Literal
    assert get_origin(kind.model_fields["version"].annotation) is Literal
    assert KINDS[kind.model_fields["type"].default, kind.model_fields["version"].default] is kind


def test_every_event_class_is_released() -> None:
    assert set(Event.__subclasses__()) == set(EVENTS)


@by_type
def test_an_event_has_a_docstring_and_a_sentence_for_each_field(kind: type[Event]) -> None:
    unsaid = [
        f"{model.__name__}.{name}"
        for model in models_of(kind)
        for name, field in model.model_fields.items()
        if name not in ("type", "version") and not (field.description or "").endswith((".", "…"))
    ]
    assert unsaid == []
    assert [model for model in models_of(kind) if not model.__doc__] == []


@by_type
@property_settings(3, 50)
@given(data=st.data())
def test_an_event_is_frozen_and_takes_no_field_it_does_not_know(kind: type[Event], data: st.DataObject) -> None:
    event = data.draw(events_of(kind))
    for name in kind.model_fields:
        with pytest.raises(ValidationError):
            setattr(event, name, getattr(event, name))
    with pytest.raises(ValidationError):
        kind.model_validate({**event.model_dump(), "surprise": 1})


@by_type
def test_every_text_may_be_absent_since_it_may_be_erased(kind: type[Event]) -> None:
    texts = {name: field for name, field in kind.model_fields.items() if Private in field.metadata}
    assert set(texts) == kind.private_fields
    assert [name for name, field in texts.items() if field.is_required() or field.default is not None] == []


TEXTS_OF = {
    "run.started": {"attributes"},
    "message.noted": {"content"},
    "call.started": {"arguments"},
    "call.ended": {"result"},
    "artifact.minted": {"label"},
    "artifact.presented": {"shown_as", "snapshot"},
    "artifact.gone": {"by", "why"},
    "artifact.refused": {"labels", "spoken", "spoken_digest"},
    "dispatch.refused": {"labels", "spoken", "spoken_digests"},
    "coverage.declared": {"checked", "not_checked", "cannot_cover", "looked_for"},
    "declaration.refused": {"key"},
    "context.composed": {"parameters", "system"},
    "answer.given": {"content"},
    "answer.judged": {"by", "note"},
}


def test_the_texts_are_those_that_the_design_marks() -> None:
    """Whatever else an event says is hashed for ever. Moving a field from one side to the other is a new version of the event."""
    assert {kind: set(cls.private_fields) for (kind, _), cls in KINDS.items() if cls.private_fields} == TEXTS_OF


@by_type
@property_settings(5, 300)
@given(data=st.data())
def test_body_and_texts_share_out_what_an_event_says(kind: type[Event], data: st.DataObject) -> None:
    event = data.draw(events_of(kind))
    body, texts = event.split()
    said = event.model_dump(exclude_none=True, exclude={"type", "version"})
    assert (event.body(), event.texts()) == (body, texts)
    assert {**body, **texts} == said
    assert set(texts) == set(said) & kind.private_fields


def test_the_bounds_of_the_design_are_those_of_the_fields() -> None:
    bounds = {
        f"{model.__name__}.{name}": most
        for kind in EVENTS
        for model in models_of(kind)
        for name, field in model.model_fields.items()
        if (
            most := next((mark.max_length for mark in _constraints((field, *get_args(field.annotation))) if isinstance(mark, MaxLen)), None)
        )
    }
    stated = {"ArtifactMinted.label": 200, "ArtifactMinted.parents": 1_000, "ArtifactMinted.kind": 100, "DispatchRefused.arguments": 32}
    assert {name: bounds[name] for name in stated} == stated


# --- the leaf ------------------------------------------------------------------------------------------------------------------


def leaf_by_the_design(draft: Draft, row: Row) -> dict[str, Any]:
    """{body, call_id, dispatch, event_id, log_id, occurred_us, position, private, recorded_us, run_id, scope_seq, type, version}."""
    said = json.loads(draft.event.model_dump_json(exclude_none=True))
    body = {name: value for name, value in said.items() if name not in draft.event.private_fields | {"type", "version"}}
    texts = {name: value for name, value in said.items() if name in draft.event.private_fields}
    names = {} if draft.scope is None else {name: getattr(draft.scope, name) for name in ("conversation", "principal", "tenant")}
    private = {**{name: value for name, value in names.items() if value}, **({"texts": texts} if texts else {})}
    assert row.salt is not None and len(row.salt) == 16
    leaf = {
        "body": body,
        "call_id": draft.call_id,
        "dispatch": draft.dispatch,
        "event_id": EVENT_ID,
        "log_id": LOG_ID,
        "occurred_us": draft.occurred_us,
        "position": row.position,
        "private": hashlib.sha256(row.salt + rfc8785.dumps(private)).hexdigest(),
        "recorded_us": row.recorded_us,
        "run_id": draft.run_id,
        "scope_seq": row.scope_seq,
        "type": draft.event.type,
        "version": draft.event.version,
    }
    return {name: value for name, value in leaf.items() if value is not None}


@property_settings(80, 5_000)
@given(drafts(), st.integers(1, 2**53 - 1), micros)
def test_the_leaf_is_rfc_8785_of_the_designs_object_and_begins_with_the_stored_body(draft: Draft, position: int, recorded_us: int) -> None:
    row = row_of(draft, position, recorded_us)
    leaf = leaf_bytes(row, LOG_ID)
    assert leaf == rfc8785.dumps(leaf_by_the_design(draft, row))
    assert leaf.startswith(b'{"body":' + row.body.encode())
    assert row.leaf_hash == leaf_hash(leaf)


@property_settings(80, 5_000)
@given(drafts())
def test_an_event_is_read_back_as_it_was_recorded(draft: Draft) -> None:
    assert recorded(row_of(draft), LOG_ID) == Recorded(
        log_id=LOG_ID,
        position=7,
        event_id=EVENT_ID,
        recorded_us=NOON,
        occurred_us=draft.occurred_us,
        scope=draft.scope,
        scope_seq=None if draft.scope is None else 3,
        run_id=draft.run_id,
        call_id=draft.call_id,
        dispatch=draft.dispatch,
        event=draft.event,
        erased=False,
    )


@property_settings(40, 2_000)
@given(drafts())
def test_erasing_texts_and_salt_leaves_the_leaf_as_it_was(draft: Draft) -> None:
    row = row_of(draft)
    erased = replace(row, texts=None, salt=None)
    assert leaf_bytes(erased, LOG_ID) == leaf_bytes(row, LOG_ID)
    read = recorded(erased, LOG_ID)
    assert (read.erased, read.event.body(), read.event.texts()) == (True, draft.event.body(), {})


def test_the_salt_hides_equal_texts_from_each_other() -> None:
    draft = Draft(AnswerJudged(answer_id="a", verdict="wrong", note="no"), SCOPE)
    assert row_of(draft).private != row_of(draft).private


@property_settings(40, 2_000)
@given(st.builds(Scope, names, names, names))
def test_a_scope_key_names_one_scope_and_a_scope_has_one_key(scope: Scope) -> None:
    assert scope_of(scope.key) == scope


# --- bounds --------------------------------------------------------------------------------------------------------------------


def context_of(calls: int, longest: int = 0) -> Draft:
    """An event whose body is as long as one likes: `calls` names of 200 characters, and one of another length."""
    last = ("y" * longest,) if longest else ()
    return Draft(ContextComposed(calls=(*("x" * 200 for _ in range(calls)), *last)))


def first_refused() -> int:
    """The first length of the one name, beside 321 others, that is refused."""
    return next(length for length in range(1, 201) if fails(context_of(321, length)))


def fails(draft: Draft) -> bool:
    try:
        prepare(draft, EVENT_ID)
    except TooLarge:
        return True
    return False


def test_a_leaf_above_65_535_bytes_is_too_large_before_any_lock_is_taken() -> None:
    with pytest.raises(TooLarge) as refused:
        prepare(context_of(400), EVENT_ID)
    assert (refused.value.what, refused.value.limit) == ("the leaf of context.composed, in bytes", 65_535)
    assert refused.value.found > 65_535


def test_what_is_prepared_fits_wherever_it_will_stand() -> None:
    length = first_refused() - 1
    row = placed(
        prepare(context_of(321, length), EVENT_ID),
        log_id=LOG_ID,
        position=2**53 - 1,
        recorded_us=-(2**53) + 1,
        scope_key=None,
        scope_seq=2**53 - 1,
    )
    assert len(leaf_bytes(row, LOG_ID)) == MAX_LEAF


def test_a_placed_leaf_is_bounded_as_well() -> None:
    small = prepare(context_of(1), EVENT_ID)
    with pytest.raises(TooLarge):
        placed(replace(small, body=small.body + " " * MAX_LEAF), log_id=LOG_ID, position=1, recorded_us=1, scope_key=None, scope_seq=None)


def test_the_most_that_a_put_may_say_fits_into_a_leaf() -> None:
    event = ArtifactMinted(
        ref=REF,
        kind="ä" * 100,
        media_type="𝄞" * 200,
        shape="json",
        bytes=2**53 - 1,
        digest="sha-256:" + "0" * 64,
        label="𝄞" * 200,
        expires_us=2**53 - 1,
        parents=tuple(Parent(ref=REF, how="declared") for _ in range(1_000)),
        tool="𝄞" * 200,
    )
    row = row_of(Draft(event, SCOPE, "r" * 200, "c" * 200, 1, NOON))
    assert len(leaf_bytes(row, LOG_ID)) < MAX_LEAF


@pytest.mark.parametrize("text", ["nul \x00", "\ud800"], ids=["NUL", "lone surrogate"])
def test_a_text_that_no_database_holds_is_refused_with_its_path(text: str) -> None:
    with pytest.raises((NotCanonical, ValidationError)) as refused:
        prepare(Draft(RunStarted(attributes={"id": text})), EVENT_ID)
    assert "attributes" in str(refused.value) and text not in str(refused.value)


# --- what cannot be read ---------------------------------------------------------------------------------------------------------

READABLE = row_of(Draft(AnswerJudged(answer_id=MARKER, verdict="wrong", note=MARKER), SCOPE))


@pytest.mark.parametrize("changes", [{"type": "answer.praised"}, {"version": 2}], ids=["an unknown type", "a newer version"])
def test_an_event_of_a_newer_refledger_is_named(changes: dict[str, Any]) -> None:
    row = replace(READABLE, **changes)
    with pytest.raises(LogCorrupt, match=rf"^position 7: .*found {row.type} version {row.version}\. Install") as refused:
        recorded(row, LOG_ID)
    assert refused.value.position == 7


DAMAGED: dict[str, dict[str, str]] = {
    "not JSON": {"body": '{"answer_id":"' + MARKER},
    "not an object": {"body": f'["{MARKER}"]'},
    "a field too many": {"body": f'{{"answer_id":"a","verdict":"wrong","{MARKER}":"{MARKER}"}}'},
    "a field too few": {"body": f'{{"answer_id":"{MARKER}"}}'},
    "a wrong value": {"body": f'{{"answer_id":"{MARKER}","verdict":"{MARKER}"}}'},
    "a key twice": {"body": f'{{"answer_id":"a","answer_id":"{MARKER}","verdict":"wrong"}}'},
    "something behind it": {"body": f'{{"answer_id":"a","verdict":"wrong"}},"call_id":"{MARKER}"'},
    "nested too deeply": {"body": "[" * 100_000},
    "another event's": {"body": f'{{"type":"answer.given","answer_id":"{MARKER}","verdict":"wrong"}}'},
    "texts that are not JSON": {"texts": MARKER},
    "texts that are not an object": {"texts": f'"{MARKER}"'},
    "an empty body": {"body": ""},
}


@pytest.mark.parametrize("changes", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_body_is_reported_by_its_position_and_never_quoted(changes: dict[str, str]) -> None:
    with pytest.raises(LogCorrupt) as refused:
        recorded(replace(READABLE, **changes), LOG_ID)  # type: ignore[arg-type]
    assert str(refused.value).startswith("position 7: expected a readable answer.judged event; its stored body or texts are damaged.")
    assert MARKER not in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__suppress_context__


@pytest.mark.parametrize("key", ["//c", "a/b", "a/b/c/d", "%5f/_/c", "a%5Fb/_/c", "_/_/c\x00", "a/b/" + "c" * 1_025])
def test_a_damaged_scope_key_is_damage_of_the_log(key: str) -> None:
    with pytest.raises(LogCorrupt, match="^position 7: expected a readable scope key"):
        recorded(replace(READABLE, scope=key), LOG_ID)


def test_an_event_of_the_log_itself_has_no_scope() -> None:
    event = LogOpened(software="1", durability="full", observations="buffered", record_content=True)
    assert recorded(row_of(Draft(event)), LOG_ID).scope is None
