"""Refledger: the evidence store of AI agent runtimes. Start with `Ledger.open` and `docs/quickstart.md`."""

__version__ = "0.1.0"

from refledger.call import Call
from refledger.contract import ArtifactMeta, ArtifactStore, Page, StoredArtifact
from refledger.described import described_result
from refledger.ledger import Ledger
from refledger.present import Presented
from refledger.refusals import REFUSED_PREFIX, refusal, refuse_unknown_keys, spelling_meant
from refledger.results import absent, coverage
from refledger.run import Answer, Run
from refledger.wants import (
    Refused,
    Resolved,
    WantsRefusal,
    assert_tool_wants,
    resolve_tool_wants,
    wants_needs_store_refusal,
)
from refledger_schema.errors import RefledgerError
from refledger_schema.scopes import Scope
from refledger_store.retention import Retention

__all__ = [
    "REFUSED_PREFIX",
    "Answer",
    "ArtifactMeta",
    "ArtifactStore",
    "Call",
    "Ledger",
    "Page",
    "Presented",
    "RefledgerError",
    "Refused",
    "Resolved",
    "Retention",
    "Run",
    "Scope",
    "StoredArtifact",
    "WantsRefusal",
    "absent",
    "assert_tool_wants",
    "coverage",
    "described_result",
    "refusal",
    "refuse_unknown_keys",
    "resolve_tool_wants",
    "spelling_meant",
    "wants_needs_store_refusal",
]
