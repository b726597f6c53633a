"""Laws of payloads: what is checked in comes out, and what JSON cannot carry does not get in."""

from __future__ import annotations

from datetime import date
from typing import Any

from refledger.conformance.law import expect, expect_live, expect_refused, expect_same, law, payload_of
from refledger.conformance.subject import HOME, KIND, Subject
from refledger_schema.errors import InvalidArtifact

TEXTS = (
    "plain",
    "",
    "7",
    "null",
    "em-dash — here",
    "line\r\nfeed\ttab",
    "e\u0301 and \u00e9",
    "\ufeffmarked",
    "nul\x00nul",
    "𝒳🙂",
    " ends ",
)
BYTES = (b"", bytes(range(256)), b"7", b"\xff\xfe\x00", b"\x00" * 9)
JSON: tuple[Any, ...] = (
    {"rows": [{"month": "July", "sold": 20, "share": 0.25, "open": True, "note": None}]},
    {"text": "em-dash — and 🙂", "nul": "\x00", "quote": '"\\/', "": "no name"},
    [2**80, -(2**63), 2**53 + 1, 0, -1, 1e300, 5e-324, 0.1],
    [[], {}, "", [[[]]], {"a": {"b": {"c": []}}}],
    [True, 1, False, 0, None],
    7,
    True,
    None,
    [],
    {},
)


@law("A text comes back as the same text: nothing is trimmed, normalised, or read as something else.")
def text_comes_back(subject: Subject) -> None:
    _round_trips(subject, TEXTS, "text")


@law("Bytes come back as the same bytes, whether 0, 255, or none at all.")
def bytes_come_back(subject: Subject) -> None:
    _round_trips(subject, BYTES, "bytes")


@law("What JSON carries exactly comes back as the same value: integers of any size, True not as 1, a payload of null not as an absence.")
def json_comes_back(subject: Subject) -> None:
    _round_trips(subject, JSON, "json")


@law("The keys of a JSON object come back in their order.")
def key_order_comes_back(subject: Subject) -> None:
    store = subject.fresh()
    data = {"b": 1, "a": {"z": 1, "10": 2, "9": 3}, "B": 2}
    expect_same(payload_of(store, HOME, store.put(HOME, data, kind=KIND).ref), data, "the payload")


@law("The text '7', the bytes of '7' and the number 7 are three payloads, told apart by their shape.")
def shapes_stay_apart(subject: Subject) -> None:
    store = subject.fresh()
    payloads: tuple[object, ...] = ("7", b"7", 7, "null", None, '"7"', "[]", [])
    refs = [store.put(HOME, data, kind=KIND).ref for data in payloads]
    for ref, data in zip(refs, payloads, strict=True):
        expect_same(payload_of(store, HOME, ref), data, "the payload")


@law("A payload of several mebibytes comes back like a small one.")
def large_payloads_come_back(subject: Subject) -> None:
    store = subject.fresh()
    payloads: tuple[object, ...] = ("—" * 20_000, bytes(range(256)) * 12_289, [{"row": number} for number in range(5_000)])
    for data in payloads:
        found = payload_of(store, HOME, store.put(HOME, data, kind=KIND).ref)
        expect(found == data and type(found) is type(data), f"the {type(data).__name__} that was put", "another value")


@law("A ticket states kind, media type, label and size in bytes; `put`, `head`, `get` and `list` state the same.")
def tickets_say_what_was_put(subject: Subject) -> None:
    store = subject.fresh()
    put = store.put(HOME, "fünf —", kind="report/text; v=1", media_type="text/markdown", label="Q3 — draft")
    stated = (put.kind, put.media_type, put.label, put.shape, put.bytes, put.expires_us, put.parents)
    expect_same(stated, ("report/text; v=1", "text/markdown", "Q3 — draft", "text", 9, None, None), "the ticket")
    got = store.get(HOME, put.ref)
    listed = store.list(HOME).artifacts
    expect_same(expect_live(store, HOME, put.ref, "the artifact"), put, "the ticket from `head`")
    expect_same(None if got is None else got.meta, put, "the ticket from `get`")
    expect_same(listed, (put,), "the listing")
    binary = store.put(HOME, b"\xff" * 5, kind=KIND)
    expect_same((binary.shape, binary.bytes, binary.label), ("bytes", 5, None), "the ticket")
    expect(bool(binary.media_type.strip()), "a media type where none was given", repr(binary.media_type))


@law("What JSON cannot carry exactly (NaN, dates, sets, a cycle, …) is refused on the field `data`, with its path, and never approximated.")
def json_is_exact_or_refused(subject: Subject) -> None:
    store = subject.fresh()
    cycle: dict[str, Any] = {}
    cycle["again"] = cycle
    for what, value, path in (
        ("NaN", float("nan"), "$.rows[1].price"),
        ("an infinity", float("-inf"), "$.rows[1].price"),
        ("a date", date(2026, 3, 1), "$.rows[1].price"),
        ("a set", {1, 2}, "$.rows[1].price"),
        ("bytes inside JSON", b"7", "$.rows[1].price"),
        ("an object", object(), "$.rows[1].price"),
        ("a complex number", 1j, "$.rows[1].price"),
        ("half of a surrogate pair", "\ud800", "$.rows[1].price"),
        ("a cycle", cycle, "$.rows[1].price.again"),
        ("a key that is no text", {7: "seven"}, "$.rows[1].price"),
    ):
        data = {"rows": [{"price": 1}, {"price": value}]}
        refusal = expect_refused(InvalidArtifact, lambda data=data: store.put(HOME, data, kind=KIND), f"a put of {what}")  # type: ignore[misc]
        expect_same(refusal.field, "data", f"the field of the refusal of {what}")
        expect(path in str(refusal), f"the refusal of {what} to name the path {path}", repr(str(refusal)))


def _round_trips(subject: Subject, payloads: tuple[Any, ...], shape: str) -> None:
    store = subject.fresh()
    for data in payloads:
        meta = store.put(HOME, data, kind=KIND)
        expect_same(meta.shape, shape, "the shape on the ticket")
        expect_same(payload_of(store, HOME, meta.ref), data, "the payload")
