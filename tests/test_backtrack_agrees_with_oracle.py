"""A backtrack in SQL says what docs/backtrack.md says: on any history, the oracle's rows and coverage, in the same order.

REFLEDGER_NIGHTLY draws 2,000 histories instead of 60; REFLEDGER_CI draws the same ones each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import NamedTuple, get_args

import pytest
from hypothesis import HealthCheck, given, settings

from refledger_queries import catalogue
from refledger_queries.backtrack import Grade, NodeKind, backtrack
from refledger_queries.sources import table_of
from refledger_schema.envelope import Draft, Row, recorded
from refledger_schema.events import (
    AnswerGiven,
    ArtifactMinted,
    ArtifactRead,
    CallEnded,
    CallStarted,
    DispatchRefused,
    DispatchResolved,
    Event,
    JudgedArgument,
    OfferedRef,
    Offers,
    Parent,
    ResolvedArgument,
)
from refledger_schema.reasons import GoneCause
from refledger_schema.scopes import Scope
from tests import oracle
from tests.histories import DIGESTS, REFS, History, histories
from tests.logmaking import event_id_at, make_log

agreement = settings(
    max_examples=2_000 if os.environ.get("REFLEDGER_NIGHTLY") else 60,
    derandomize=bool(os.environ.get("REFLEDGER_CI")),
    database=None,
    deadline=None,
    # A machine that others use as well is slow at times, and the histories are meant to be large.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Found(NamedTuple):
    """A backtrack as plain tuples."""

    rows: list[tuple[object, ...]]
    coverage: list[tuple[object, ...]]


@dataclass(frozen=True)
class RowsSource:
    """A log that is a list of rows."""

    rows: Sequence[Row]
    log_id: str = "log-a"

    def scope_of_answer(self, answer_id: str) -> str | None:
        given = ((row, recorded(row, self.log_id).event) for row in self.rows if row.type == "answer.given")
        return next((row.scope for row, event in given if isinstance(event, AnswerGiven) and event.answer_id == answer_id), None)

    def events(self, scope: str | None) -> Iterable[Row]:
        return [row for row in self.rows if scope is None or row.scope == scope]


def by_the_page(rows: Iterable[Row], answer_id: str) -> Found:
    found = oracle.backtrack([recorded(row, "log-a") for row in rows], answer_id)
    return Found([tuple(row) for row in found.rows], [astuple(row) for row in found.coverage])


def by_the_api(rows: Sequence[Row], answer_id: str) -> Found:
    found = backtrack(RowsSource(rows), answer_id)
    return Found([astuple(row) for row in found.rows], [astuple(row) for row in found.coverage])
