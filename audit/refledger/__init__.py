"""Refledger: the evidence store of AI agent runtimes. Start with `Ledger.open` and `docs/quickstart.md`."""

__version__ = "0.1.0"

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from refledger.async_ledger import AsyncLedger


def __getattr__(name: str) -> object:
    """`AsyncLedger` on first use, since it brings asyncio."""
    if name == "AsyncLedger":
        from refledger import async_ledger

        return async_ledger.AsyncLedger
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "REFUSED_PREFIX",
    "Answer",
    "ArtifactMeta",
    "ArtifactStore",
    "AsyncLedger",
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
