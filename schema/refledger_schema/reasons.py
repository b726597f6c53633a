"""Why a ref was not honoured: the reason the caller may know, and the operator's cause beside it."""

from __future__ import annotations

from typing import Literal

Reason = Literal["missing-or-expired", "digest-mismatch", "kind-mismatch", "invalid-input", "unknown-parent"]
"""The closed set of the seed (`wants.d.ts`), with a put's `unknown-parent`."""

Cause = Literal[
    "never_minted",
    "malformed",
    "near_miss",
    "other_scope",
    "expired",
    "deleted",
    "evicted",
    "erased",
    "corrupt",
    "undecodable",
    "wrong_kind",
    "not_a_string",
    "blank",
    "required_missing",
    "unknown_parent",
    "refused_input",
    "over_budget",
]
"""The operator's truth. Nothing that a model reads may depend on it beyond its reason."""

GoneCause = Literal["expired", "max-bytes", "max-count", "deleted", "erased"]
"""How an artifact left."""

REASON_OF: dict[Cause, Reason] = {
    "never_minted": "missing-or-expired",
    "malformed": "missing-or-expired",
    "near_miss": "missing-or-expired",
    "other_scope": "missing-or-expired",
    "expired": "missing-or-expired",
    "deleted": "missing-or-expired",
    "evicted": "missing-or-expired",
    "erased": "missing-or-expired",
    "corrupt": "digest-mismatch",
    "undecodable": "digest-mismatch",
    "wrong_kind": "kind-mismatch",
    "not_a_string": "invalid-input",
    "blank": "invalid-input",
    "required_missing": "invalid-input",
    "unknown_parent": "unknown-parent",
    "refused_input": "invalid-input",
    "over_budget": "invalid-input",
}

CAUSE_OF_GONE: dict[GoneCause, Cause] = {
    "expired": "expired",
    "max-bytes": "evicted",
    "max-count": "evicted",
    "deleted": "deleted",
    "erased": "erased",
}
