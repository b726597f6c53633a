"""Redaction before write: one hook sees every text that would be stored, and may replace it or refuse it.

Texts are labels, answers, notes, reasons, spoken values, attributes and content. Payloads are not texts: they are the data
that a tool checks in, and a digest vouches for them. What the model reads of a refusal is rendered from the redacted event.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from refledger_schema.errors import InvalidConfiguration
from refledger_schema.events import MAX_LABEL, Event

Redact = Callable[[str, str], str]
"""(text, where) to the text that may be stored. `where` is the event's type and field, such as `artifact.minted label`, or
`content`. Raising refuses the whole act."""

_DIGEST = re.compile(r"sha-256:[0-9a-f]{64}")
_E = TypeVar("_E", bound=Event)


@dataclass(frozen=True, slots=True)
class Secret:
    """A kind of secret, and how it is recognised. Group 1, where there is one, is what is secret of a match."""

    name: str
    hints: tuple[str, ...]
    """Lower-case words of which one must be there: most texts hold none, and then no pattern is tried."""
    pattern: re.Pattern[str]


SECRETS: tuple[Secret, ...] = tuple(
    Secret(name, hints, re.compile(pattern))
    for name, hints, pattern in (
        (
            "private-key",
            ("private key-----",),
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
        ),
        ("jwt", ("eyj",), r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
        ("aws-access-key", ("akia", "asia"), r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        ("github-token", ("gh", "github_pat_"), r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})"),
        ("gitlab-token", ("glpat-",), r"\bglpat-[A-Za-z0-9_-]{20,}"),
        ("slack-token", ("xox",), r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("google-api-key", ("aiza",), r"\bAIza[A-Za-z0-9_-]{35}"),
        ("stripe-key", ("k_live_", "k_test_"), r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("model-api-key", ("sk-",), r"\bsk-[A-Za-z0-9_-]{20,}"),
        ("bearer-token", ("bearer",), r"(?i)\bbearer\s{1,8}([A-Za-z0-9._~+/=-]{20,})"),
        ("url-password", ("://",), r"://[^\s/:@]{1,200}:([^\s/@]{1,200})@"),
        (
            "password",
            ("passw", "secret", "key", "token"),
            r"(?i)\b(?:password|passwd|secret|api[_-]?key|access[_-]?token)\b[\"']?\s{0,8}[:=]\s{0,8}[\"']?(?!\[redacted )([^\s\"',;}]{6,})",
        ),
    )
)
"""What the default redaction looks for: the well-known forms, in this order. It is a net, not a proof."""


def redact_secrets(text: str, where: str) -> str:
    """Replace common secrets by `[redacted <kind>]`. The default of `Ledger.open(redact=…)`."""
    lower = text.lower()
    for secret in SECRETS:
        if any(hint in lower for hint in secret.hints):
            text = secret.pattern.sub(lambda match, name=secret.name: _replaced(match, name), text)  # type: ignore[misc]
    return text


def redacted(event: _E, redact: Redact | None) -> _E:
    """The event with its texts redacted; digests among them stay, since their texts were redacted before they were made."""
    if redact is None:
        return event
    changed = {
        name: value
        for name in event.private_fields
        if (text := getattr(event, name)) is not None and (value := _walk(text, redact, f"{event.type} {name}")) != text
    }
    return event.model_copy(update=changed) if changed else event


def applied(redact: Redact | None, text: str, where: str) -> str:
    """One text through the hook. Raises `InvalidConfiguration` when the hook gives something else than a text."""
    if redact is None:
        return text
    found = redact(text, where)
    if not isinstance(found, str):
        raise InvalidConfiguration("redact", f"expected the redaction hook to give a text for {where}; it gave {type(found).__name__}.")
    # The bounds of texts were checked before: what replaces a text keeps within them.
    return found if where == "content" else found[: max(len(text), MAX_LABEL)]


def name_of(redact: Redact | None) -> str | None:
    """What `log.opened` says of the hook: its name, never its code."""
    if redact is None:
        return None
    name = f"{getattr(redact, '__module__', '?')}.{getattr(redact, '__qualname__', type(redact).__qualname__)}"
    return name[:200]


def _walk(value: Any, redact: Redact, where: str) -> Any:
    if isinstance(value, str):
        return value if _DIGEST.fullmatch(value) else applied(redact, value, where)
    if isinstance(value, Mapping):
        return {key: _walk(item, redact, where) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_walk(item, redact, where) for item in value)
    if hasattr(value, "model_copy"):
        fields = {name: _walk(getattr(value, name), redact, where) for name in type(value).model_fields}
        return value.model_copy(update=fields)
    return value


def _replaced(match: re.Match[str], name: str) -> str:
    if match.re.groups and match.group(1) is not None:
        start, end = match.start(1) - match.start(), match.end(1) - match.start()
        return f"{match.group()[:start]}[redacted {name}]{match.group()[end:]}"
    return f"[redacted {name}]"
