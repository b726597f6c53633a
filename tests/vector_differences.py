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
