"""Every vector of wants_resolution.json through both doors: `resolve_tool_wants` over the bare store, and the recorded `Call.resolve`.

What a case leaves is told by one oracle below, in the vectors' terms and by our decisions. Both doors answer as the oracle says; the
oracle says what the vector observed, unless `tests/vector_differences.py` names the case. Our sentences are our own, so of a sentence
only its facts are compared: they are read back from it here.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from refledger import REFUSED_PREFIX, Ledger, RefledgerError, Refused, Resolved, Scope, resolve_tool_wants
from refledger_schema.errors import InvalidArtifact
from refledger_schema.events import DispatchRefused, DispatchResolved
from refledger_schema.wording import dispatch_sentence
from tests.vector_differences import differs, note, stale, verdict_on
from tests.vectors_encoding import UNDEFINED, decode, load

FILE = "wants_resolution"
VECTORS = load(FILE)
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in VECTORS["cases"]}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SHOWN = 10
LONGEST_LABEL, LONGEST_SPOKEN, LONGEST_SHOWN = 200, 200, 80

Facts = dict[str, Any]


# --- the oracle -----------------------------------------------------------------------------------------------------------------------


def oracle(case: dict[str, Any]) -> Facts:
    """What a dispatch comes to, by the seeds and our decisions."""
    rows, args, now = rows_of(case), args_of(case), case["store"]["now"]
    if any(len(row["label"] or "") > LONGEST_LABEL for row in rows):
        return {"put refused": "label"}
    if any(not argument or not kind for argument, kind in case["wants"]):
        return {"raises": "InvalidDeclaration"}
    mine = [row for row in rows if row["scope"] == case["scope"] and not row["gone"] and (row["expires"] or now + 1) > now]
    judged = [judge(argument, kind, args, mine, required(case)) for argument, kind in case["wants"]]
    if all("reason" not in facts for facts in judged):
        found = {facts["argName"]: facts["row"] for facts in judged if "row" in facts}
        data = {**args, **{argument: row["data"] for argument, row in found.items()}}
        return {
            "ok": True,
            "args": exactly(data.items()),
            "wanted_keys": list(found),
            "resolved": [[argument, row["h"]] for argument, row in found.items()],
        }
    damaged = {facts["row"]["ref"] for facts in judged if facts.get("reason") == "digest-mismatch"}
    offered = [row for row in reversed(mine) if row["ref"] not in damaged]
    return {"ok": False, "refusals": [teaching(facts, offered) for facts in judged if "reason" in facts]}


def judge(argument: str, kind: str, args: Facts, mine: list[Facts], needed: set[str]) -> Facts:
    """One declared argument, in the contract's order: absent, not a text, blank, not there, of another kind, damaged, good."""
    facts: Facts = {"argName": argument, "kind": kind}
    if argument not in args:
        return {**facts, "reason": "invalid-input", "spoken_as": "nothing (required)"} if argument in needed else facts
    spoken = args[argument]
    if not isinstance(spoken, str):
        return {**facts, "reason": "invalid-input", "spoken_as": type_of(spoken)}
    if all(char.isspace() or char == "\ufeff" for char in spoken):
        return {**facts, "reason": "invalid-input", "spoken_as": "empty-string"}
    row = next((row for row in mine if row["ref"] == spoken), None)
    storable = "\x00" not in spoken and len(spoken) <= LONGEST_SPOKEN
    facts["ref"] = spoken if storable else None
    facts["shows spoken"] = storable and spoken.isprintable() and len(spoken) <= LONGEST_SHOWN
    if row is None:
        return {**facts, "reason": "missing-or-expired"}
    facts["row"] = row
    if row["kind"] != kind:
        return {**facts, "reason": "kind-mismatch"}
    return {**facts, "reason": "digest-mismatch"} if row["damaged"] else facts


def teaching(facts: Facts, offered: list[Facts]) -> Facts:
    """What the sentence on one refused argument says."""
    names = {
        "invalid-input": ["arg", "wanted-kind"],
        "missing-or-expired": ["arg", "spoken-ref"],
        "kind-mismatch": ["arg", "wanted-kind", "spoken-ref", "actual-kind"],
        "digest-mismatch": ["arg", "spoken-ref"],
    }[facts["reason"]]
    fitting = [row for row in offered if row["kind"] == facts["kind"]]
    shown = fitting[:SHOWN]
    taught = {
        "argName": facts["argName"],
        "kind": facts["kind"],
        "reason": facts["reason"],
        "ref": facts.get("ref"),
        "listing": "listed" if shown else "none",
        "live": [row["h"] for row in shown],
        "names": [name for name in names if name != "spoken-ref" or facts["shows spoken"]],
    }
    if shown:
        labels = [bool(row["label"]) and row["label"].strip() and row["label"].isprintable() for row in shown]
        taught |= {"labels": list(map(bool, labels)), "bytes": [len(row["bytes"]) for row in shown], "total": len(fitting)}
    return taught | ({"spoken_as": facts["spoken_as"]} if "spoken_as" in facts else {})


def type_of(spoken: object) -> str:
    for name, kinds in (
        ("null", type(None)),
        ("boolean", bool),
        ("number", (int, float)),
        ("array", list),
        ("object", dict),
        ("bytes", bytes),
    ):
        if isinstance(spoken, kinds):
            return name
    raise AssertionError(spoken)


def required(case: dict[str, Any]) -> set[str]:
    schema = decode(case["inputSchema"])
    names = schema.get("required") if isinstance(schema, dict) else None
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def expected(case: dict[str, Any]) -> Facts:
    """What the vector observed, in the same terms. How many there were in all it never says (W6)."""
    observed = case["expected"]
    if observed.get("ok") is True:
        args = [(name, value) for name, value in decode(observed["args"]) if value is not UNDEFINED]
        return {"ok": True, "args": exactly(args), "wanted_keys": observed["wanted_keys"], "resolved": observed["resolved"]}
    if "throws" in observed:
        return {"throws": observed["throws"]["error"]}
    refusals = [{"live": [], **decode(refusal)} for refusal in observed["refusals"]]
    return {"ok": False, "refusals": [{**refusal, "ref": None if refusal["ref"] is UNDEFINED else refusal["ref"]} for refusal in refusals]}


def without_totals(facts: Facts) -> Facts:
    refusals = [{key: value for key, value in refusal.items() if key != "total"} for refusal in facts.get("refusals", [])]
    return {**facts, "refusals": refusals} if refusals else facts


def exactly(pairs: Any) -> list[str]:
    """Values that compare as JSON has them: 1 is not true, and NaN is itself."""
    return [repr((name, value)) for name, value in pairs]


# --- the world of a case ----------------------------------------------------------------------------------------------------------------


def rows_of(case: dict[str, Any]) -> list[Facts]:
    """The artifacts of a case in the order in which they are put: that of their times, as a log sees them, and of the file where times
    are equal. Where the case is about inserts out of order, they are put out of order."""
    rows = [
        {
            "h": row["h"],
            "ref": row["ref"],
            "kind": row["kind"],
            "data": decode(row["data"]),
            "bytes": stored(decode(row["data"])),
            "media type": row.get("mediaType"),
            "label": decode(row["label"]) if "label" in row else None,
            "scope": row.get("scope", "S"),
            "created": row["createdAt"],
            "expires": row.get("expiresAt"),
            "gone": row.get("deleted", False),
            "corrupt": corrupted(row),
            "damaged": corrupted(row) not in (None, stored(decode(row["data"]))),
        }
        for row in case["store"].get("rows", ())
    ]
    for bulk in case["store"].get("bulk", ()):
        rows += [
            {
                "h": f"{bulk['ref_prefix']}#{i}",
                "ref": "art_" + bulk["ref_prefix"] + str(i).zfill(22 - len(bulk["ref_prefix"])),
                "kind": bulk["kind"],
                "data": "x",
                "bytes": b"x",
                "media type": None,
                "label": None,
                "scope": "S",
                "created": bulk["created_start"] + i * bulk["created_step"],
                "expires": bulk.get("expiresAt"),
                "gone": False,
                "corrupt": None,
                "damaged": False,
            }
            for i in range(bulk["count"])
        ]
    return rows if "shuffled" in case["id"] else sorted(rows, key=lambda row: row["created"])


def stored(value: Any) -> bytes:
    """A payload's bytes, as `payloads.json` has them."""
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def corrupted(row: dict[str, Any]) -> bytes | None:
    """What stands in the place of the payload's bytes afterwards."""
    if "corrupt" not in row:
        return None
    return stored(decode(row["corrupt"]["swap"])) if "swap" in row["corrupt"] else row["corrupt"]["raw"].encode()


def args_of(case: dict[str, Any]) -> Facts:
    return {decode(name): value for name, tagged in case["args"] if (value := decode(tagged)) is not UNDEFINED}


def scope_of(name: str) -> Scope:
    names = VECTORS["defaults"]["scope_names"][name]
    return Scope(conversation=names["conversationId"], tenant=names.get("tenant", ""), principal=names.get("principal", ""))


class Clock:
    """A clock that stands where it is set, in milliseconds."""

    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        return self.now_ms * 1_000


@pytest.fixture
def world(empty_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Opens the log of a case, with every artifact put and its clock where the case has it."""

    @contextmanager
    def open_world(case: dict[str, Any]) -> Iterator[Ledger]:
        path, clock, rows = tmp_path / "log.db", Clock(), rows_of(case)
        shutil.copy(empty_log, path)
        refs = iter([row["ref"] for row in rows])
        monkeypatch.setattr("refledger.verbs.mint_ref", lambda: next(refs))
        with Ledger.open(path, durability="process", clock=clock) as ledger:
            digests = {row["ref"]: put(ledger, clock, row) for row in rows}
            clock.now_ms = case["store"]["now"]
            for row in rows:
                if row["gone"]:
                    ledger.store.delete(scope_of(row["scope"]), row["ref"])
            damage(path, {digests[row["ref"]]: row["corrupt"] for row in rows if row["corrupt"] is not None})
            yield ledger

    return open_world


def damage(path: Path, payloads: dict[str, bytes]) -> None:
    """Other bytes where those of a digest stood. No connection of the ledger is in a transaction while this one writes."""
    if payloads:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.executemany("UPDATE payloads SET data = ? WHERE digest = ?", [(data, digest) for digest, data in payloads.items()])


def put(ledger: Ledger, clock: Clock, row: Facts) -> str:
    clock.now_ms = row["created"]
    expires_at = None if row["expires"] is None else EPOCH + timedelta(milliseconds=row["expires"])
    meta = ledger.store.put(
        scope_of(row["scope"]), row["data"], kind=row["kind"], media_type=row["media type"], label=row["label"], expires_at=expires_at
    )
    assert meta.ref == row["ref"]
    return meta.digest


# --- both doors, and what their sentences say ---------------------------------------------------------------------------------------------


def through_the_bare_store(ledger: Ledger, case: dict[str, Any], args: Facts) -> Resolved | Refused:
    return resolve_tool_wants(ledger.store, scope_of(case["scope"]), case["tool"], dict(case["wants"]), args, decode(case["inputSchema"]))


def through_a_recorded_call(ledger: Ledger, case: dict[str, Any], args: Facts) -> Resolved | Refused:
    """The dispatch, and that its event holds what was answered."""
    with ledger.run(scope_of(case["scope"])) as run, run.call(case["tool"], args=args) as call:
        outcome = call.resolve(dict(case["wants"]), input_schema=decode(case["inputSchema"]))
    (event,) = (recorded.event for recorded in ledger.events() if recorded.event.type.startswith("dispatch."))
    if isinstance(event, DispatchRefused):
        assert isinstance(outcome, Refused) and dispatch_sentence(event) == outcome.refusal
    else:
        assert isinstance(event, DispatchResolved) and isinstance(outcome, Resolved)
        assert [(argument.argument, argument.ref) for argument in event.arguments] == [(name, meta.ref) for name, meta in outcome.resolved]
    return outcome


def answered(door: Any, ledger: Ledger, case: dict[str, Any]) -> Facts:
    """What a door makes of a case, in the vectors' terms."""
    args = args_of(case)
    before = repr(args)
    try:
        outcome = door(ledger, case, args)
    except RefledgerError as error:
        return {"raises": type(error).__name__}
    assert repr(args) == before, "the caller's arguments were changed"
    handles = {row["ref"]: row for row in rows_of(case)}
    if isinstance(outcome, Resolved):
        assert outcome.wanted == dict(outcome.resolved)
        return {
            "ok": True,
            "args": exactly(outcome.args.items()),
            "wanted_keys": list(outcome.wanted),
            "resolved": [[name, handles[meta.ref]["h"]] for name, meta in outcome.resolved],
        }
    head = f"{REFUSED_PREFIX}the tool {outcome.refusal.partition(' did not run.')[0].partition('the tool ')[2]} did not run."
    assert outcome.refusal == " ".join([head, *(refusal.detail for refusal in outcome.refusals)])
    return {
        "ok": False,
        "refusals": [
            {
                "argName": refusal.arg_name,
                "kind": refusal.kind,
                "reason": refusal.reason,
                "ref": refusal.ref,
                **read(refusal.detail, {"arg": refusal.arg_name, "wanted-kind": refusal.kind, "spoken-ref": refusal.ref}, handles),
            }
            for refusal in outcome.refusals
        ],
    }


Q = r"'(?:\\.|[^'\\])*'"
SPOKEN = rf"(?P<spoken>{Q}|what was passed \([\d,]+ characters?\))"
COMPLAINT = "|".join(
    (
        rf"Argument (?P<arg>{Q}) is required and was not given; it takes a ref of kind (?P<wanted>{Q})\.",
        rf"Argument (?P<arg_2>{Q}) takes a ref of kind (?P<wanted_2>{Q}) as text, not (?P<as>[a-z ]+)\.",
        rf"Argument (?P<arg_3>{Q}) takes a ref of kind (?P<wanted_3>{Q}), and {SPOKEN} is of kind (?P<actual>{Q})\.",
        rf"Argument (?P<arg_4>{Q}): the data behind {SPOKEN.replace('spoken', 'spoken_4')} is damaged and was not passed on\.",
        rf"Argument (?P<arg_5>{Q}): {SPOKEN.replace('spoken', 'spoken_5')} is missing or expired\.",
    )
)
HINT = r"(?: Without what stands around it, it is the live ref art_[0-9A-Za-z]{22}: pass just that\.)?"
OFFER = rf"(?P<ref>art_[0-9A-Za-z]{{22}}) \((?:(?P<label>{Q}), )?(?P<bytes>[\d,]+) bytes?\)"
OFFERS = re.sub(r"\?P<\w+>", "?:", OFFER)
NONE_LIVE = rf"No ref of kind {Q} is live in this conversation: produce one first\."
LIVE = rf"Live refs of kind {Q}, newest first, (?P<shown>[\d,]+) of (?P<total>[\d,]+): (?P<offers>{OFFERS}(?:, {OFFERS})*)\."
DETAIL = re.compile(rf"(?:{COMPLAINT}){HINT} (?:{NONE_LIVE}|{LIVE})")
SPOKEN_AS = {"an empty text": "empty-string", "a boolean": "boolean", "a number": "number", "an array": "array", "an object": "object"}


def read(detail: str, own: dict[str, str | None], handles: dict[str, Facts]) -> Facts:
    """The facts in one argument's sentence."""
    match = DETAIL.fullmatch(detail)
    assert match is not None, detail
    said = {name.partition("_")[0]: value for name, value in match.groupdict().items() if value is not None}
    offered = [offer.groupdict() for offer in re.finditer(OFFER, said.get("offers", ""))]
    row = handles.get(own["spoken-ref"] or "")
    own = {**own, "actual-kind": None if row is None else row["kind"]}
    facts: Facts = {
        "listing": "listed" if offered else "none",
        "live": [handles[offer["ref"]]["h"] for offer in offered],
        "names": [
            name
            for name, where in (("arg", "arg"), ("wanted-kind", "wanted"), ("spoken-ref", "spoken"), ("actual-kind", "actual"))
            if where in said and own[name] is not None and unquoted(said[where]) == own[name]
        ],
    }
    if offered:
        assert number(said["shown"]) == len(offered)
        facts |= {
            "labels": [offer["label"] is not None and unquoted(offer["label"]) == handles[offer["ref"]]["label"] for offer in offered],
            "bytes": [number(offer["bytes"]) for offer in offered],
            "total": number(said["total"]),
        }
    if "was not given" in detail:
        facts["spoken_as"] = "nothing (required)"
    elif "as" in said:
        facts["spoken_as"] = SPOKEN_AS.get(said["as"], said["as"])
    return facts


def unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def number(text: str) -> int:
    return int(text.replace(",", ""))


# --- the tests ----------------------------------------------------------------------------------------------------------------------------


def test_the_vectors_are_all_there() -> None:
    assert (len(CASES), VECTORS["count"], stale(FILE, CASES)) == (217, 217, set())


@pytest.mark.parametrize("name", CASES)
def test_both_doors_answer_as_observed_or_as_decided(name: str, world: Any) -> None:
    case = CASES[name]
    ours = oracle(case)
    try:
        with world(case) as ledger:
            # In this order: what the bare store notes of a damaged payload waits in memory, and what a call records does not.
            assert answered(through_the_bare_store, ledger, case) == ours
            assert answered(through_a_recorded_call, ledger, case) == ours
    except InvalidArtifact as error:
        assert ours == {"put refused": error.field}
    assert (without_totals(ours) != expected(case)) is differs(FILE, name)
    note(FILE, name, verdict_on(FILE, name, weakness=case.get("known_weakness", False)))
