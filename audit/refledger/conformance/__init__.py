"""The laws of the claim-check contract, to be run against any `ArtifactStore`, in any test framework or none.

    from refledger.conformance import Subject, run

    for outcome in run(Subject(fresh=MyStore)):
        print(outcome)

A law is a plain function under a name and a sentence. What it needs beyond the five verbs (a clock that can be moved, a way to
damage a payload, streams) is a hook or an optional member; without it the law is not applicable, and the outcome says what is
missing. A law that your store breaks on purpose is declared with a reason: it still runs, and is stale when it passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from refledger.conformance import absence, integrity, listing, payloads, puts, refs, retention, scopes, streaming
from refledger.conformance.law import Broken, Law, told
from refledger.conformance.subject import Need, Subject, lacks
from refledger_schema.errors import InvalidConfiguration

LAWS: tuple[Law, ...] = tuple(
    found
    for module in (payloads, refs, scopes, absence, puts, integrity, listing, retention, streaming)
    for found in vars(module).values()
    if isinstance(found, Law)
)
"""Every law, in the order in which a store is best made right."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a store stands to one law."""

    law: Law
    result: Literal["pass", "not-applicable", "declared", "failed"]
    said: str = ""
    """What is missing, why it was declared, or what was expected and found."""
    stale: bool = False
    """Declared, and it passes: the declaration can go."""

    @property
    def ok(self) -> bool:
        """Whether nothing needs doing."""
        return self.result != "failed" and not self.stale

    def __str__(self) -> str:
        stale = ", and stale: it passes. Take the declaration out" if self.stale else ""
        return f"{self.result}{stale}: {self.law.name}" + (f": {self.said}" if self.said else "")


def run(subject: Subject, declared: Mapping[str, str] | None = None) -> tuple[Outcome, ...]:
    """Judge a store by every law, in order. `declared` gives the reason by the name of each law that it breaks on purpose.

    Raises `InvalidConfiguration` for a declaration of no law, or without a reason.
    """
    reasons = dict(declared or {})
    _check_declared(reasons)
    return tuple(_judged(subject, law, reasons.get(law.name)) for law in LAWS)


def _judged(subject: Subject, law: Law, reason: str | None) -> Outcome:
    broken: str | None = None
    try:
        missing = [what for need in law.needs if (what := lacks(subject, need)) is not None]
        if missing:
            return Outcome(law, "not-applicable", "; ".join(missing))
        law.check(subject)
    except Broken as error:
        broken = str(error)
    except Exception as error:
        broken = f"expected no error; found {told(error)}."
    if reason is not None:
        return Outcome(law, "declared", reason if broken is None else f"{reason} ({broken})", stale=broken is None)
    return Outcome(law, "pass") if broken is None else Outcome(law, "failed", broken)


def _check_declared(reasons: Mapping[str, str]) -> None:
    unknown = reasons.keys() - {law.name for law in LAWS}
    if unknown:
        raise InvalidConfiguration(
            "declared", f"expected the names of laws; found {', '.join(map(repr, sorted(unknown)))}. `LAWS` has the names."
        )
    for name, reason in reasons.items():
        if not isinstance(reason, str) or not reason.strip():
            raise InvalidConfiguration("declared", f"expected a reason for breaking {name!r}; found none. Say why in a sentence.")


__all__ = ["LAWS", "Broken", "Law", "Need", "Outcome", "Subject", "run"]
