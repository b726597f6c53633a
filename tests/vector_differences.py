"""Where we answer a vector otherwise than the first implementation did: each case by name, with what decided it.

A case is here if and only if it differs: the tests of each file fail for a case that differs unlisted, and for one that is listed and
agrees. What we answer instead is compared in full, to what an oracle in that test file says.

What decides: a decision of the design by its number or by the name of its chapter, a weakness of the first implementation that we beat
(W1 to W34), an oddity that `tests/vectors/SURPRISES.md` numbers, or the host language, where a case has no counterpart in Python.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Literal

HOST = "host language"
Verdict = Literal["agree", "decided", "better", "host language", "another store"]
_VERDICTS: tuple[Verdict, ...] = ("agree", "decided", "better", "host language", "another store")


def _each(file: str, decided_by: str, reason: str, *cases: str) -> dict[tuple[str, str], tuple[str, str]]:
    return {(file, case): (decided_by, reason) for case in cases}


WANTS, DECLARATION, SCOPES = "wants_resolution", "tool_wants_declaration", "scopes"
LISTING, PUTS, RETENTION, FACTS, PAYLOADS = "listing", "put_rules", "retention", "capability_facts", "payloads"

DIFFERENCES: dict[tuple[str, str], tuple[str, str]] = {
    **_each(
        WANTS,
        "decision 3",
        "a digest-mismatch refusal offers alternatives too, without the ref just found damaged",
        "digest-mismatch-text",
        "digest-mismatch-binary",
        "mixed-all-four-reasons",
        "mix-26",
        "mix-69",
    ),
    **_each(
        WANTS,
        "decision 4",
        "the kind is judged from the ticket, before the payload is loaded",
        "digest-mismatch-wins-over-kind",
        "mix-51",
    ),
    **_each(WANTS, "decision 7", "there is always a digest, so other bytes are never delivered", "corrupt-without-digest-is-delivered"),
    **_each(
        WANTS,
        "decision 8",
        "blank is what Python's isspace says, and U+FEFF",
        "blank-char-nel-U+0085",
        "blank-char-fs-U+001c",
        "blank-char-rs-U+001e",
    ),
    **_each(
        WANTS,
        "decision 11",
        "newest is what was put last, not what has the latest time or, where times are equal, the first ref",
        "list-newest-first-shuffled-inserts",
        "scan-bulk-wanted-tied-createdAt",
        "mix-27",
        "mix-29",
        "mix-67",
    ),
    **_each(WANTS, "decision 12", "a label is text or nothing: an empty or blank one is not shown", "label-empty", "label-space"),
    **_each(
        WANTS,
        "never in an event",
        "what a model reads is stripped of control characters, and what shows nothing is told by its length",
        "label-newline",
        "blank-char-zwsp-U+200b",
        "blank-char-word-joiner-U+2060",
        "blank-char-mongolian-vs-U+180e",
        "malformed-leading-newline",
        "malformed-trailing-bom",
    ),
    **_each(WANTS, "leaf bytes", "a label has at most 200 characters; a longer one is refused at put, by name", "label-long"),
    **_each(
        WANTS,
        "leaf bytes",
        "no event holds NUL: a text spoken with it is recorded, and told, by its length",
        "blank-char-nul-U+0000",
        "malformed-nul-suffix",
    ),
    **_each(
        WANTS,
        "leaf bytes",
        "names and kinds in an event have at least one character: an empty one is refused as a declaration",
        "kind-exact-empty-kind",
        "arg-name-awkward",
    ),
    **_each(WANTS, "W1", "every live ref of the kind is found", "scan-250-newer-others-then-three", "scan-198-others-two-of-three-seen"),
    **_each(WANTS, "W19", "the shape stands in the ticket, not beside the bytes", "digest-same-bytes-other-shape-passes"),
    **_each(
        WANTS,
        "reason and cause",
        "bytes that are damaged or cannot be decoded are a digest-mismatch, not a crash",
        "corrupt-json-undecodable-no-digest",
        "corrupt-binary-undecodable-with-digest",
        "corrupt-unknown-shape-with-digest",
    ),
    **_each(WANTS, HOST, "a Python value of bytes is no object", "value-bytes-required-nothing-live"),
    **_each(
        WANTS,
        HOST,
        "a Python mapping has no inherited keys",
        "js-inherited-name-optional-omitted",
        "js-inherited-name-constructor-required",
    ),
    **_each(DECLARATION, "decision 8", "blank is what Python's isspace says, and U+FEFF", "kind-nel", "kind-unit-separator"),
    **_each(
        DECLARATION,
        "leaf bytes",
        "names in an event have at least one character",
        "arg-empty-name-no-schema",
        "arg-empty-name-declared",
    ),
    **_each(
        DECLARATION,
        "surprise 15",
        "a property that no text can pass is refused, however its schema says so",
        "property-anyof-arrays-no-type",
        "property-const-number-no-type",
        "property-false",
    ),
    **_each(
        DECLARATION,
        HOST,
        "a Python list has no named members, a mapping no inherited ones, and an integer of any size is a number",
        "properties-array-index-name",
        "arg-length-of-array-properties",
        "arg-inherited-name",
        "arg-proto-name",
        "kind-bigint",
    ),
    **_each(
        DECLARATION,
        HOST,
        "None is Python's absence; a text or a list is no mapping, hence no declaration",
        "wants-null",
        "wants-string",
        "wants-array",
        "wants-array-with-schema",
    ),
    **_each(
        SCOPES,
        "leaf bytes",
        "no event holds NUL or a lone surrogate, so a scope of such a name is refused",
        "tenant-nul",
        "conversation-nul",
        "tenant-lone-surrogate",
        "tenant-lone-low-surrogate",
        "nul-tail",
        "nul-vs-none",
        "lone-surrogates-differ",
    ),
    **_each(SCOPES, HOST, "a Scope has three fields; another is a TypeError", "extra-fields-ignored", "extra-field"),
    **_each(
        LISTING,
        "decision 11",
        "newest is what was put last, not what has the latest time or, where times are equal, the first ref",
        "ties-by-ref",
        "ties-case-order",
        "ties-across-page-boundary",
        "mixed-ties",
        "order-is-createdAt-not-insertion",
        "insert-oldest-while-paging",
    ),
    **_each(
        LISTING,
        "decision 12",
        "a limit is an integer from 1",
        "limit-null",
        "limit-zero",
        "limit-neg-zero",
        "limit-half",
        "limit-1.5",
        "limit-nan",
        "limit-inf",
        "limit-minus-inf",
        "limit-2pow53",
        "limit-1e300",
        "limit-string-2",
        "limit-string-word",
        "limit-string-empty",
        "limit-true",
        "limit-array",
        "limit-nan-walk",
        "limit-zero-walk",
        "limit-negative-walk",
    ),
    **_each(LISTING, "decision 12", "a page has at most 10,000 rows; a longer one is refused by name, not cut", "limit-1e9"),
    **_each(
        LISTING,
        "W2",
        "a cursor is bound to its listing and a place in it; what no listing handed out is refused, not read as a number or a restart",
        "cursor-space",
        "cursor-word",
        "cursor-two",
        "cursor-fraction",
        "cursor-negative",
        "cursor-hex",
        "cursor-exponent",
        "cursor-nan",
        "cursor-end",
        "cursor-past-end",
        "cursor-huge",
        "cursor-true",
        "cursor-underscore",
        "cursor-from-another-scope",
    ),
    **_each(
        LISTING,
        "W2",
        "inserts, deletes and evictions during a walk neither repeat a row nor skip one",
        "insert-newest-while-paging",
        "insert-three-while-paging",
        "insert-in-seen-part",
        "insert-tie-before-position",
        "insert-between-every-page",
        "delete-two-seen-while-paging",
        "delete-last-seen-while-paging",
        "eviction-between-pages",
    ),
    **_each(
        PUTS,
        "decision 7",
        "there is always a digest, so none can be asked for: `put` has no such argument",
        "one-bad-digest",
        "two-bad-kind-digest",
        "two-bad-mediaType-digest",
        "two-bad-expiresAt-digest",
        "two-bad-digest-parents",
        "two-bad-digest-payload",
        "two-bad-digest-oversized",
        "all-bad-from-kind",
        "all-bad-from-mediaType",
        "all-bad-from-expiresAt",
        "all-bad-from-digest",
        "digest-upper",
        "digest-sha256",
        "digest-empty",
        "digest-sha-512",
        "digest-padded",
    ),
    **_each(
        PUTS,
        "decision 8",
        "blank is what Python's isspace says, and U+FEFF",
        "kind-unit-separator",
        "kind-nel",
        "mediaType-unit-separator",
        "mediaType-nel",
    ),
    **_each(
        PUTS,
        "decision 12",
        "labels are text or nothing; an empty one is none",
        "label-empty",
        "label-null",
        "label-object",
    ),
    **_each(
        PUTS,
        "decision 12",
        "`origin` is ours; a caller's is no part of a ticket",
        "full",
        "origin-empty",
        "origin-extra",
        "origin-null",
        "mutate-input-origin",
    ),
    **_each(PUTS, "leaf bytes", "no event holds NUL, so a label with one is refused at put, by name", "label-nul"),
    **_each(
        PUTS,
        "the append",
        "payloads are read and hashed before the lock; expiry and parents are judged under it, so a payload's fault comes first",
        "two-bad-expiresAt-payload",
        "two-bad-parents-payload",
        "all-bad-from-parents",
    ),
    **_each(PUTS, "decision 5", "a put never evicts the parents it has just proved", "proving-a-parent-does-not-refresh-it"),
    **_each(PUTS, "decision 11", "the order of use is that of positions, which never tie", "recency-tie-by-ref"),
    **_each(PUTS, "the API", "the media type is inferred from the payload, or given", "mediaType-undefined", "mediaType-null"),
    **_each(PUTS, HOST, "None is Python's absence", "expiresAt-null"),
    **_each(
        PUTS,
        HOST,
        "a Python function has the arguments it has: one that is missing, or that nobody knows, is a TypeError",
        "kind-undefined",
        "data-missing",
        "input-empty",
        "caller-ref-ignored",
    ),
    **_each(PUTS, "surprise 21", "a misspelt argument is a TypeError, not dropped in silence", "unknown-keys-ignored"),
    **_each(PUTS, "surprise 21", "parents that are no sequence are refused by name", "parents-null", "parents-set"),
    **_each(PUTS, "the API", "`unresolved` holds texts: what is none is told by its type", "parents-null-element"),
    **_each(
        RETENTION,
        "live at position p",
        "what has expired leaves in the order in which it expired, as the index has it, not in that of rows",
        "expired-order-is-row-order",
        "mix-1",
        "mix-2",
        "mix-24",
    ),
    **_each(
        RETENTION,
        "decision 12",
        "limits are integers from 1",
        "count-zero-unvalidated",
        "count-fraction-2.5",
        "bytes-fraction",
        "maxBytesPerScope-half",
        "maxCountPerScope-half",
    ),
    **_each(
        RETENTION,
        "the append",
        "a put that is refused changes nothing, so its plan tells of nobody who leaves",
        "bytes-oversized-reports-expired",
    ),
    **_each(RETENTION, "leaf bytes", "an expiry fits an event, so a ttl is at most 100 years", "ttl-overflow-precision"),
    **_each(RETENTION, HOST, "None is Python's absence: no limit", "ttlMs-null"),
    **_each(FACTS, "decision 7", "there is always a digest, so other bytes are never delivered", "integrity-no-digest"),
    **_each(
        FACTS,
        "decision 5",
        "a put never evicts the parents it has just proved; where that leaves no room, it is refused",
        "evict-own-parent",
    ),
    **_each(FACTS, "decision 12", "`origin` is ours; a caller's is no part of a ticket", "origin-absent-caller-kept"),
    **_each(
        FACTS,
        "never in an event",
        "a refusal names a ref; of what is none it holds length and digest, or nothing where it is no text",
        "malformed-ref-empty",
        "malformed-ref-newline",
        "malformed-ref-very-long",
        "malformed-ref-null",
        "malformed-ref-number",
        "malformed-ref-object",
    ),
    **_each(FACTS, "W7", "a delete leaves an event", "deleted-then-read"),
    **_each(FACTS, "W8", "what expired is told, whoever looked at it first", "read-expired-then-put-reports-nothing", "expired-then-read"),
    **_each(
        FACTS,
        "closed and best effort",
        "no act on a store goes unrecorded, through whatever door, and the log is the sink",
        "seen-by-raw-store",
        "no-sink",
    ),
    **_each(
        FACTS,
        "closed and best effort",
        "no event, no effect: a put that cannot be recorded stores nothing; an observation that cannot waits, and changes no answer",
        "sink-throws-on-minted",
        "sink-throws-on-refusal",
    ),
    **_each(
        FACTS,
        "reason and cause",
        "`no-store` is a sentence, never an event: without a store there is no ledger, and so no door",
        "unconfigured-all-verbs",
        "unconfigured-bad-input",
        "unconfigured-no-sink",
        "unconfigured-sink-throws",
    ),
    **_each(
        FACTS,
        HOST,
        "a Python function has the arguments it has: one that is missing, or that nobody knows, is a TypeError",
        "caller-cannot-name-scope",
        "put-crash-reports-nothing",
    ),
    **_each(
        PAYLOADS,
        "decision 13",
        "lone surrogates are refused",
        "text-lone-high",
        "text-lone-low",
        "text-reversed-pair",
        "text-two-high",
        "json-lone-surrogate-value",
    ),
    **_each(PAYLOADS, "decision 13", "keys keep their order; JavaScript moves integer-like ones to the front", "json-integer-like-keys"),
    **_each(
        PAYLOADS,
        "W18",
        "what JSON cannot carry exactly is refused with its path, never approximated",
        "json-f64--Infinity",
        "json-nan-nested",
        "reshaped-arraybuffer",
        "reshaped-bytes-nested",
        "reshaped-class-instance",
        "reshaped-date",
        "reshaped-error",
        "reshaped-function-member",
        "reshaped-invalid-date",
        "reshaped-map",
        "reshaped-promise",
        "reshaped-regexp",
        "reshaped-set",
        "reshaped-uint16array",
        "reshaped-uint8clamped",
        "reshaped-undefined-member",
    ),
    **_each(
        PAYLOADS,
        "surprise 6",
        "a payload has at most 128 levels, judged before the lock, whatever the host's stack holds",
        "json-nest-array-1000",
        "json-nest-array-3000",
        "json-nest-object-1000",
    ),
    **_each(
        PAYLOADS,
        HOST,
        "an object of JavaScript's alone; Python's nearest values are tested in test_payload_json.py",
        "reshaped-array-extra-prop",
        "reshaped-boxed-bool",
        "reshaped-boxed-string",
        "reshaped-inherited",
        "reshaped-non-enumerable",
        "reshaped-null-proto",
        "reshaped-sparse",
        "reshaped-symbol-key",
        "reshaped-tojson-object",
    ),
}
"""(file, case id) to (what decided it, why)."""

_verdicts: dict[str, dict[str, Verdict]] = defaultdict(dict)


def differs(file: str, case: str) -> bool:
    """Whether the table names the case."""
    return (file, case) in DIFFERENCES


def note(section: str, case: str, verdict: Verdict) -> None:
    """Count a case of a file, or of one part of it."""
    _verdicts[section][case] = verdict


def verdict_on(file: str, case: str, *, weakness: bool) -> Verdict:
    """What a case counts as that is answered as the table says."""
    if not differs(file, case):
        return "agree"
    if DIFFERENCES[file, case][0] == HOST:
        return HOST  # type: ignore[return-value]
    return "better" if weakness else "decided"


def stale(file: str, cases: Iterable[str]) -> set[str]:
    """The names in the table that no case of the file has."""
    return {case for (of, case) in DIFFERENCES if of == file} - set(cases)


def counts() -> list[str]:
    """A table of what was noted in this run."""
    if not _verdicts:
        return []
    width = max(map(len, _verdicts))
    rows = [(section, Counter(verdicts.values())) for section, verdicts in sorted(_verdicts.items())]
    header = f"{'':{width}}" + "".join(f"{verdict:>15}" for verdict in _VERDICTS)
    return [header, *(f"{section:{width}}" + "".join(f"{counted[verdict]:>15}" for verdict in _VERDICTS) for section, counted in rows)]
