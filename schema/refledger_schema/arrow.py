"""The log as Arrow: one fixed schema, whatever the rows came from. pyarrow is loaded by the caller's first use."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_COLUMNS: list[pa.Field[Any]] = [
    pa.field("log_id", pa.string(), nullable=False),
    pa.field("position", pa.int64(), nullable=False),
    pa.field("event_id", pa.string(), nullable=False),
    pa.field("type", pa.string(), nullable=False),
    pa.field("version", pa.int32(), nullable=False),
    pa.field("recorded_us", pa.int64(), nullable=False),
    pa.field("occurred_us", pa.int64()),
    pa.field("scope", pa.string()),
    pa.field("scope_seq", pa.int64()),
    pa.field("run_id", pa.string()),
    pa.field("call_id", pa.string()),
    pa.field("dispatch", pa.int64()),
    pa.field("body", pa.string(), nullable=False),
    pa.field("private", pa.binary(32), nullable=False),
    pa.field("texts", pa.string()),
    pa.field("salt", pa.binary(16)),
    pa.field("leaf_hash", pa.binary(32), nullable=False),
]
LOG_SCHEMA = pa.schema(_COLUMNS)
"""`Row` of `refledger_schema.envelope`, with the log's id in front: (log_id, position) names an event among many logs."""
