"""Ref arguments at dispatch (seed `wants.d.ts`): a tool declares which arguments are refs of which kind, and gets the data.

The plain functions here append nothing: they judge over any `ArtifactStore`. `Call.resolve` is the recorded door; it shares
the judgement and the sentences, and adds what only the lock and the log know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from refledger.contract import ArtifactMeta, ArtifactStore, Page
from refledger.payloads import text_of
from refledger_schema.digests import digest_of
from refledger_schema.errors import ArtifactIntegrity, InvalidDeclaration, TooLarge
from refledger_schema.events import (
    MAX_KIND,
    MAX_NAME,
    MAX_OFFERED,
    MAX_SPOKEN,
    MAX_WANTS,
    DispatchRefused,
    Idempotency,
    JudgedArgument,
    OfferedRef,
    Offers,
    SpokenAs,
)
from refledger_schema.reasons import REASON_OF, Cause, Reason
from refledger_schema.refs import is_ref
from refledger_schema.scopes import Scope
from refledger_schema.wording import LATEST, REFUSED_PREFIX, argument_sentence, dispatch_sentence, harmless, shown

ToolWants = Mapping[str, str]
"""Argument name to the kind that it must resolve to: exact, no wildcards."""
Schema = Mapping[str, Any]
"""A tool's JSON Schema."""


@dataclass(frozen=True, slots=True)
class WantsRefusal:
    """One refused argument of a dispatch."""

    arg_name: str
    kind: str
    """The kind that the declaration wanted."""
    reason: Reason
    ref: str | None
    """What the model spoke, where it was a text of at most 200 characters."""
    detail: str
    """The part of the sentence that speaks of this argument."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Every declared argument that was spoken resolved."""

    args: dict[str, Any]
    """The call's arguments, each resolved one replaced by its data."""
    wanted: dict[str, ArtifactMeta]
    """The tickets behind the resolved arguments."""
    resolved: tuple[tuple[str, ArtifactMeta], ...]
    """The same in the order of the declaration."""
    ok: Literal[True] = True


@dataclass(frozen=True, slots=True)
class Refused:
    """At least one argument did not resolve; the tool must not run."""

    refusals: tuple[WantsRefusal, ...]
    refusal: str
    """The one sentence for the model: every refused argument, and what it can pass instead."""
    ok: Literal[False] = False


WantsResolution = Resolved | Refused


@dataclass(frozen=True, slots=True)
class Judgement:
    """How one declared argument stands. `cause` is set where it is refused; `meta` and `data` where an artifact was found."""

    argument: str
    wanted: str
    spoken: Any
    spoken_as: SpokenAs
    outcome: Literal["resolved", "refused", "absent"]
    cause: Cause | None = None
    meta: ArtifactMeta | None = None
    data: Any = None
    meant: str | None = None
    gone_by: str | None = None


def assert_tool_wants(tool_name: str, wants: ToolWants | None, input_schema: Schema | None = None) -> None:
    """Refuse a declaration that cannot be honoured, when the tool is defined. Raises `InvalidDeclaration`."""
    if wants is None:
        return
    if not isinstance(wants, Mapping) or not wants:
        raise _bad_declaration(
            tool_name, None, "expected at least one argument with its kind; found none. Name them, or leave `wants` out."
        )
    _assert_bounds(tool_name, wants)
    for argument, kind in wants.items():
        _assert_kind(tool_name, argument, kind)
        _assert_in_schema(tool_name, argument, input_schema)


def resolve_tool_wants(
    store: ArtifactStore,
    scope: Scope,
    tool_name: str,
    wants: ToolWants,
    args: Mapping[str, Any],
    input_schema: Schema | None = None,
) -> WantsResolution:
    """Resolve a call's ref arguments over any store. Every argument is judged before it answers; nothing is recorded.

    A fault of the store is raised, never made a refusal. Raises `InvalidDeclaration` for kinds that `assert_tool_wants` refuses.
    """
    judgements = tuple(
        _looked_up(store, scope, judgement) if judgement.outcome == "resolved" else judgement
        for judgement in judged(tool_name, wants, args, input_schema)
    )
    if not any(judgement.outcome == "refused" for judgement in judgements):
        return resolution(args, judgements)
    damaged = damaged_refs(judgements)
    offers = [offers_of(kind, *_live(store, scope, kind, damaged)) for kind in refused_kinds(judgements)]
    return refusal_of(refused_event(tool_name, judgements, offers))


def wants_needs_store_refusal(tool_name: str, wants: ToolWants) -> str:
    """What a model reads when a tool that wants refs is dispatched where there is no store: a setting to fix, not its fault."""
    listing = ", ".join(f"{shown(argument)} (kind {shown(kind)})" for argument, kind in wants.items())
    return (
        f"{REFUSED_PREFIX}the tool {shown(tool_name)} did not run. It takes refs ({listing}), and no artifact store is attached here, "
        "so they cannot be resolved. Whoever runs this agent must attach one: open a Ledger and dispatch through `call.resolve`."
    )


# --- the judgement, shared by both doors -----------------------------------------------------------------------------------


def judged(tool: str, wants: ToolWants, args: Mapping[str, Any], input_schema: Schema | None) -> Iterable[Judgement]:
    """Each declared argument as far as the call alone decides. `resolved` means here: a text that is yet to be looked up."""
    required = _required(input_schema)
    _assert_bounds(tool, wants)
    for argument, kind in wants.items():
        _assert_kind(tool, argument, kind)
        spoken = args.get(argument)
        kind_of_value = spoken_as(spoken) if argument in args else "absent"
        judgement = Judgement(argument, kind, spoken, kind_of_value, "resolved")
        if kind_of_value == "absent":
            missing = argument in required
            yield replace(judgement, outcome="refused", cause="required_missing") if missing else replace(judgement, outcome="absent")
        elif kind_of_value == "empty-text":
            yield replace(judgement, outcome="refused", cause="blank")
        elif kind_of_value != "text":
            yield replace(judgement, outcome="refused", cause="not_a_string")
        else:
            yield judgement


def resolution(args: Mapping[str, Any], judgements: Sequence[Judgement]) -> Resolved:
    """The call's arguments with the data in place. The caller's mapping is left as it is."""
    resolved = tuple((judgement.argument, judgement.meta) for judgement in judgements if judgement.meta is not None)
    data = {judgement.argument: judgement.data for judgement in judgements if judgement.meta is not None}
    return Resolved({**args, **data}, dict(resolved), resolved)


def refused_kinds(judgements: Sequence[Judgement]) -> list[str]:
    """The kinds that refused arguments wanted, each once, in the order of the declaration."""
    return list(dict.fromkeys(judgement.wanted for judgement in judgements if judgement.outcome == "refused"))


def damaged_refs(judgements: Iterable[Judgement]) -> frozenset[str]:
    """The artifacts that this dispatch found damaged: they are known to be from now on, so its refusal must not offer them."""
    return frozenset(
        judgement.meta.ref for judgement in judgements if judgement.meta is not None and judgement.cause in ("corrupt", "undecodable")
    )


def offers_of(kind: str, newest: Sequence[ArtifactMeta], total: int) -> tuple[Offers, dict[str, str]]:
    """What a refusal offers of one kind, and the labels as shown."""
    offered = tuple(OfferedRef(ref=meta.ref, bytes=meta.bytes) for meta in newest[:MAX_OFFERED])
    labels = {meta.ref: label for meta in newest[:MAX_OFFERED] if meta.label and (label := harmless(meta.label)).strip(" ")}
    return Offers(kind=kind, refs=offered, total=max(total, len(offered))), labels


def refused_event(
    tool: str,
    judgements: Sequence[Judgement],
    offers: Sequence[tuple[Offers, dict[str, str]]],
    idempotency: Idempotency | None = None,
    clean: Callable[[DispatchRefused], DispatchRefused] = lambda event: event,
) -> DispatchRefused:
    """The event that holds all that the model is told, its sentence's digest included.

    `clean` redacts it first, since the sentence is rendered from what is stored.
    """
    spoken = {judgement.argument: judgement.spoken for judgement in judgements if _is_recordable(judgement.spoken)}
    digests = {
        judgement.argument: digest_of(text.encode(errors="surrogatepass"))
        for judgement in judgements
        if judgement.spoken_as in ("text", "array", "object") and judgement.argument not in spoken and (text := _text(judgement.spoken))
    }
    unsealed = DispatchRefused(
        tool=tool,
        wording=LATEST,
        arguments=tuple(_judged_argument(judgement) for judgement in judgements),
        offers=tuple(offer for offer, _ in offers),
        sentence=digest_of(b""),
        spoken=spoken or None,
        spoken_digests=digests or None,
        labels={ref: label for _, labels in offers for ref, label in labels.items()} or None,
        idempotency=idempotency,
    )
    event = clean(unsealed)
    return event.model_copy(update={"sentence": digest_of(dispatch_sentence(event).encode())})


def refusal_of(event: DispatchRefused) -> Refused:
    """What the caller is told of a refused dispatch."""
    refusals = tuple(
        WantsRefusal(
            arg_name=argument.argument,
            kind=argument.wanted,
            reason=argument.reason,
            ref=(event.spoken or {}).get(argument.argument) if argument.spoken_as == "text" else None,
            detail=argument_sentence(event, argument),
        )
        for argument in event.arguments
        if argument.reason is not None
    )
    return Refused(refusals, dispatch_sentence(event))


def spoken_as(value: object) -> SpokenAs:
    """What was spoken, as a type of JSON value. Blank is `str.isspace` over the whole text, plus U+FEFF (design, decision 8)."""
    if isinstance(value, str):
        return "text" if value.replace("\ufeff", "") and not value.replace("\ufeff", " ").isspace() else "empty-text"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, (list, tuple)):
        return "array"
    if isinstance(value, Mapping):
        return "object"
    return "bytes" if isinstance(value, (bytes, bytearray, memoryview)) else "other"


def slips(spoken: str) -> list[str]:
    """The refs that trimming or unquoting the spoken text would give."""
    bare = spoken.strip(_AROUND)
    return [bare] if bare != spoken and is_ref(bare) else []


_BLANK = "".join(char for char in map(chr, range(0x3001)) if char.isspace()) + "\ufeff"
_AROUND = _BLANK + "'\"`´“”„‘’‚«»‹›<>()[]{}"


# --- over a bare store -----------------------------------------------------------------------------------------------------


def _looked_up(store: ArtifactStore, scope: Scope, judgement: Judgement) -> Judgement:
    spoken: str = judgement.spoken
    meta = store.head(scope, spoken) if is_ref(spoken) else None
    if meta is None:
        meant = next((ref for ref in slips(spoken) if store.head(scope, ref) is not None), None)
        cause: Cause = "near_miss" if meant else "never_minted" if is_ref(spoken) else "malformed"
        return replace(judgement, outcome="refused", cause=cause, meant=meant)
    if meta.kind != judgement.wanted:
        return replace(judgement, outcome="refused", cause="wrong_kind", meta=meta)
    try:
        stored = store.get(scope, spoken)
    except ArtifactIntegrity:
        return replace(judgement, outcome="refused", cause="corrupt", meta=meta)
    if stored is None:
        return replace(judgement, outcome="refused", cause="expired")
    return replace(judgement, meta=stored.meta, data=stored.data)


def _live(store: ArtifactStore, scope: Scope, kind: str, damaged: frozenset[str]) -> tuple[Sequence[ArtifactMeta], int]:
    """The newest that may be offered, and how many there are: without those found damaged, as far as the store still lists them."""
    page = store.list(scope, kind=kind, limit=MAX_OFFERED + len(damaged))
    sound = [meta for meta in page.artifacts if meta.ref not in damaged]
    listed = _counted(store, scope, kind, page) if page.total is None else page.total
    return sound, listed - (len(page.artifacts) - len(sound))


def _counted(store: ArtifactStore, scope: Scope, kind: str, page: Page) -> int:
    """How many a store lists that does not count them itself: all its pages are walked, so that no sentence says fewer."""
    count = len(page.artifacts)
    while page.cursor is not None:
        page = store.list(scope, kind=kind, limit=_PAGE, cursor=page.cursor)
        count += len(page.artifacts)
    return count


_PAGE = 1_000


# --- pieces ----------------------------------------------------------------------------------------------------------------


def _judged_argument(judgement: Judgement) -> JudgedArgument:
    meta, cause = judgement.meta, judgement.cause
    text = _text(judgement.spoken) if judgement.spoken_as != "absent" else None
    return JudgedArgument(
        argument=judgement.argument,
        wanted=judgement.wanted,
        outcome=judgement.outcome,
        reason=None if cause is None else REASON_OF[cause],
        cause=cause,
        ref=None if meta is None else meta.ref,
        digest=None if meta is None else meta.digest,
        bytes=None if meta is None else meta.bytes,
        actual=meta.kind if meta is not None and cause == "wrong_kind" else None,
        meant=judgement.meant,
        gone_by=judgement.gone_by,
        spoken_as=judgement.spoken_as,
        spoken_length=None if text is None else len(text),
    )


def _text(spoken: object) -> str | None:
    return spoken if isinstance(spoken, str) else text_of(spoken)


def _is_recordable(spoken: object) -> bool:
    """Whether a spoken text enters the event's texts as itself."""
    return isinstance(spoken, str) and len(spoken) <= MAX_SPOKEN and _is_storable(spoken)


def _is_storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _required(input_schema: Schema | None) -> frozenset[str]:
    required = input_schema.get("required") if isinstance(input_schema, Mapping) else None
    return frozenset(name for name in required if isinstance(name, str)) if isinstance(required, (list, tuple)) else frozenset()


def _assert_bounds(tool: str, wants: ToolWants) -> None:
    if not isinstance(tool, str) or not 1 <= len(tool) <= MAX_NAME or not _is_storable(tool):
        raise InvalidDeclaration(f"wants: expected the tool's name to be well-formed text of 1 to {MAX_NAME} characters. Name the tool.")
    if len(wants) > MAX_WANTS:
        raise TooLarge(f"the wants of tool {shown(tool)}", MAX_WANTS, len(wants))


def _assert_kind(tool: str, argument: object, kind: object) -> None:
    if not isinstance(argument, str) or not 1 <= len(argument) <= MAX_NAME or not _is_storable(argument):
        raise _bad_declaration(
            tool, None, f"expected argument names to be well-formed text of 1 to {MAX_NAME} characters. Name the argument."
        )
    if not isinstance(kind, str) or spoken_as(kind) != "text" or not _is_storable(kind):
        raise _bad_declaration(
            tool, argument, "expected its kind to be a well-formed, non-blank text, since no other kind is ever minted. Name the kind."
        )
    if len(kind) > MAX_KIND:
        raise TooLarge(f"the kind of argument {shown(argument)}, in characters", MAX_KIND, len(kind))


def _assert_in_schema(tool: str, argument: str, input_schema: Schema | None) -> None:
    properties = input_schema.get("properties") if isinstance(input_schema, Mapping) else None
    if not isinstance(properties, (Mapping, list, tuple)):
        return
    if not isinstance(properties, Mapping) or argument not in properties:
        raise _bad_declaration(
            tool, argument, "expected the argument among the schema's `properties`, or the model can never fill it. Add it there."
        )
    declared = properties[argument]
    if (isinstance(declared, Mapping) and declared.get("type", "string") != "string") or not _admits_text(declared):
        raise _bad_declaration(
            tool, argument, 'expected its schema type to be "string", since the model passes a ref and never the data. Change the type.'
        )


def _admits_text(schema: object, depth: int = 0) -> bool:
    """Whether a text can pass the schema at all, as far as its type, constants and alternatives tell. In doubt it can."""
    if schema is False:
        return False
    if not isinstance(schema, Mapping) or depth > _SCHEMA_DEPTH:
        return True
    types = schema.get("type", "string")
    values = schema.get("enum", [schema["const"]] if "const" in schema else [""])
    every, some, one = ([_admits_text(part, depth + 1) for part in _parts(schema, key)] for key in ("allOf", "anyOf", "oneOf"))
    return (
        (types == "string" or (isinstance(types, (list, tuple)) and "string" in types))
        and (not isinstance(values, (list, tuple)) or any(isinstance(value, str) for value in values))
        and all(every)
        and all(any(alternatives) for alternatives in (some, one) if alternatives)
    )


def _parts(schema: Schema, key: str) -> Sequence[object]:
    parts = schema.get(key)
    return parts if isinstance(parts, (list, tuple)) else ()


_SCHEMA_DEPTH = 8
"""How deep alternatives are followed; a declaration is judged, not a schema."""


def _bad_declaration(tool: str, argument: str | None, message: str) -> InvalidDeclaration:
    where = f"wants of tool {shown(tool)}" if argument is None else f"wants of tool {shown(tool)}, argument {shown(argument)}"
    return InvalidDeclaration(f"{where}: {message}", tool=tool, argument=argument)
