"""No error quotes a payload, a tenant, a principal or a label: not its text, not its attributes, not what it was raised from, not the log.

Every class of errors that can be raised today is forced, with one marker in all those places.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import logging
import os
import shutil
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from refledger import Ledger, Scope
from refledger.importers.openai_chat import read_runs
from refledger.refusals import refuse_unknown_keys
from refledger.run import Run
from refledger.wants import assert_tool_wants
from refledger_schema import errors
from refledger_schema.canonical import canonical_json
from refledger_schema.errors import (
    AppendUnknown,
    ArtifactIntegrity,
    DeclarationRefused,
    IdempotencyConflict,
    ImportRefused,
    InvalidArtifact,
    InvalidConfiguration,
    InvalidDeclaration,
    InvalidScope,
    LedgerClosed,
    LockTimeout,
    LogCorrupt,
    NewerSchema,
    NoLog,
    NotCanonical,
    NotOurSchema,
    OlderSchema,
    OverBudget,
    QueryRefused,
    RefledgerError,
    RunRefused,
    StoreFault,
    StoreFull,
    StoreReadOnly,
    TooLarge,
    UnknownAnswer,
    UnknownParentRef,
)
from refledger_store.retention import Retention
from tests.ledgers import change, database, new_log

MARKER = "".join(("marker", "-", "7f3a"))
"""Not written out, since tracebacks quote source lines."""
SCOPE = Scope(conversation=f"c {MARKER}", tenant=f"t {MARKER}", principal=f"p {MARKER}")
OTHER = Scope(conversation="c-18", tenant=f"another {MARKER}")
UNKNOWN = "art_" + "0" * 22


@dataclass
class Scene:
    """A log that holds the marker wherever a secret may stand."""

    path: Path
    ledger: Ledger
    run: Run
    ref: str
    answer: str

    def put(self, data: object = MARKER, **words: Any) -> object:
        return self.run.put(data, **{"kind": "text", "label": MARKER, **words})

    def ruined(self, statement: str) -> Ledger:
        """The ledger, after somebody changed its file."""
        self.run.flush()
        change(self.path, statement)
        return self.ledger


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = new_log(folder)
    with Ledger.open(path, retention=Retention(max_bytes=2_000_000), durability="process", lock_timeout=0.1) as ledger:
        run = ledger.run(SCOPE, run_id="r1", attributes={"session": MARKER})
        run.message("user", MARKER)
        ref = run.put({"secret": MARKER}, kind="dataset/rows", label=MARKER, key="k1").ref
        answer = run.answer(MARKER).answer_id
        ledger.judge(answer, "wrong", by=MARKER, note=MARKER)
        run.put(MARKER, kind="text")
        yield Scene(path, ledger, run, ref, answer)


def locked(path: Path) -> AbstractContextManager[sqlite3.Connection]:
    """Somebody else writes, and does not end."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return contextlib.closing(other)


def while_locked(scene: Scene) -> None:
    with locked(scene.path):
        scene.put()


def fill_the_disk(scene: Scene) -> None:
    writer = scene.ledger._store._engine._writer
    writer.execute(f"PRAGMA max_page_count = {writer.execute('PRAGMA page_count').fetchone()[0]}").fetchall()
    scene.put(MARKER * 50_000)


def make_read_only(scene: Scene) -> None:
    writer = scene.ledger._store._engine._writer
    writer.execute("PRAGMA query_only = ON").fetchall()
    try:
        scene.put()
    finally:
        writer.execute("PRAGMA query_only = OFF").fetchall()


def fail_in_sql(scene: Scene) -> None:
    with database(scene.path) as connection:
        connection.execute("ALTER TABLE payloads RENAME COLUMN data TO payload")
    scene.put()


def lose_the_folder(scene: Scene) -> None:
    ledger = Ledger.open(new_log(scene.path.parent, "other.db"))
    shutil.rmtree(scene.path.parent)
    try:
        ledger.run(SCOPE)
    finally:
        # There is no folder to close the ledger in.
        ledger._store._closed = True
        for connection in ledger._store._engine._all:
            connection.close()


def schema_of(scene: Scene, version: str) -> None:
    scene.ledger.close()
    change(scene.path, "UPDATE alembic_version SET version_num = ?", version)
    Ledger.open(scene.path)


def open_file(scene: Scene, content: bytes) -> None:
    path = scene.path.parent / "foreign.db"
    path.write_bytes(content)
    Ledger.open(path)


def foreign_database(scene: Scene) -> None:
    path = scene.path.parent / "foreign.db"
    with database(path) as connection:
        connection.execute(f"CREATE TABLE people (name TEXT DEFAULT '{MARKER}')")
    Ledger.open(path)


def scribble(scene: Scene) -> None:
    """Ruin the middle of the file, but not the first pages."""
    scene.ledger.close()
    size = scene.path.stat().st_size
    with scene.path.open("r+b") as file:
        file.seek(8_192)
        file.write(MARKER.encode() * ((size - 8_192) // len(MARKER)))
    with Ledger.open(scene.path) as ledger:
        list(ledger.events())


def import_text(scene: Scene, text: str) -> None:
    path = scene.path.parent / "trace.json"
    path.write_text(text, encoding="utf-8")
    list(read_runs(path))


def run_again(scene: Scene) -> None:
    scene.run.end()
    scene.ledger.run(SCOPE, run_id="r1")


def put_when_closed(scene: Scene) -> None:
    scene.ledger.close()
    scene.put()


Force = Callable[[Scene], object]
FORCED: list[tuple[type[RefledgerError], str, Force]] = [
    (InvalidArtifact, "a blank kind", lambda scene: scene.put(kind="")),
    (InvalidArtifact, "a long label", lambda scene: scene.put(label=MARKER * 100)),
    (InvalidArtifact, "a label that is no text", lambda scene: scene.put(label=[MARKER])),
    (InvalidArtifact, "a label with NUL", lambda scene: scene.put(label=f"{MARKER}\x00")),
    (InvalidArtifact, "a label with a surrogate", lambda scene: scene.put(label=f"{MARKER}\ud800")),
    (InvalidArtifact, "a payload with a surrogate", lambda scene: scene.put(f"{MARKER}\ud800")),
    (InvalidArtifact, "a payload with a date", lambda scene: scene.put([MARKER, datetime(2026, 3, 1)])),
    (InvalidArtifact, "a payload that JSON has not", lambda scene: scene.put({"rows": [{MARKER}]})),
    (InvalidArtifact, "parents that are one text", lambda scene: scene.put(parents=MARKER)),
    (InvalidArtifact, "a cursor", lambda scene: scene.run.list(cursor=MARKER)),
    (InvalidArtifact, "a note too long", lambda scene: scene.ledger.judge(scene.answer, "right", note=MARKER * 1_000)),
    (InvalidArtifact, "a reason too long", lambda scene: scene.run.delete(scene.ref, why=MARKER * 500)),
    (InvalidArtifact, "attributes", lambda scene: scene.ledger.run(SCOPE, attributes={"session": [MARKER]})),  # type: ignore[dict-item]
    (InvalidArtifact, "an answer without text", lambda scene: scene.run.answer({MARKER})),
    (InvalidArtifact, "cites", lambda scene: scene.run.answer("x", cites=[MARKER])),
    (InvalidArtifact, "a window's parameters", lambda scene: scene.run.context(parameters={"stop": [MARKER]})),  # type: ignore[dict-item]
    (UnknownParentRef, "a parent", lambda scene: scene.put(parents=[UNKNOWN])),
    (UnknownParentRef, "another scope's parent", lambda scene: scene.ledger.store.put(OTHER, MARKER, kind="text", parents=[scene.ref])),
    (OverBudget, "a payload", lambda scene: scene.put(MARKER * 200_000)),
    (InvalidScope, "no text", lambda scene: Scope(conversation="c", tenant=[MARKER])),  # type: ignore[arg-type]
    (InvalidScope, "NUL", lambda scene: Scope(conversation="c", tenant=f"{MARKER}\x00")),
    (InvalidScope, "no scope", lambda scene: scene.ledger.run(MARKER)),  # type: ignore[arg-type]
    (TooLarge, "a tenant", lambda scene: Scope(tenant=MARKER * 100)),
    (TooLarge, "a leaf", lambda scene: scene.run.context(calls=[MARKER * 15] * 500)),
    (InvalidDeclaration, "a kind", lambda scene: assert_tool_wants("tool", {"data": ""})),
    (InvalidDeclaration, "the schema", lambda scene: assert_tool_wants("tool", {"data": "text"}, {"properties": {MARKER: {}}})),
    (DeclarationRefused, "a key", lambda scene: refuse_unknown_keys({"chekced": MARKER}, ["checked"])),
    (NotCanonical, "a date", lambda scene: canonical_json({"tenant": MARKER, "at": datetime(2026, 3, 1)})),
    (NotCanonical, "a surrogate", lambda scene: canonical_json({"tenant": f"{MARKER}\ud800"})),
    (
        ArtifactIntegrity,
        "a payload changed",
        lambda scene: scene.ruined(f"UPDATE payloads SET data = CAST('{MARKER}' AS BLOB)") and scene.run.get(scene.ref),
    ),
    (ArtifactIntegrity, "a payload gone", lambda scene: scene.ruined("DELETE FROM payloads") and scene.run.get(scene.ref)),
    (RunRefused, "another scope's", lambda scene: scene.ledger.run(OTHER, run_id="r1")),
    (RunRefused, "ended", run_again),
    (InvalidArtifact, "an answer's id", lambda scene: scene.run.answer(MARKER, answer_id=scene.answer)),
    (UnknownAnswer, "judged", lambda scene: scene.ledger.judge("ans_unknown", "wrong", note=MARKER)),
    (UnknownAnswer, "walked back from", lambda scene: scene.ledger.backtrack("ans_unknown")),
    (IdempotencyConflict, "a put", lambda scene: scene.put(key="k1")),
    (InvalidConfiguration, "a choice", lambda scene: Ledger.open(scene.path, durability="never")),  # type: ignore[arg-type]
    (InvalidConfiguration, "a URL", lambda scene: Ledger.open(f"postgresql://{MARKER}@localhost/log")),
    (InvalidConfiguration, "a limit", lambda scene: Retention(max_count=0)),
    (StoreFault, "SQLite", fail_in_sql),
    (LockTimeout, "another writer", while_locked),
    (StoreFull, "the disk", fill_the_disk),
    (StoreReadOnly, "the file", make_read_only),
    (NoLog, "its folder", lose_the_folder),
    (NoLog, "not there", lambda scene: Ledger.open(scene.path.parent / "absent.db", create=False)),
    (LedgerClosed, "a put", put_when_closed),
    (NotOurSchema, "no database", lambda scene: open_file(scene, MARKER.encode() * 1_000)),
    (NotOurSchema, "another's database", foreign_database),
    (NewerSchema, "a revision", lambda scene: schema_of(scene, "9999")),
    (LogCorrupt, "a body", lambda scene: list(scene.ruined(f"""UPDATE events SET body = '{{"{MARKER}":1}}'""").events())),
    (LogCorrupt, "texts", lambda scene: list(scene.ruined(f"UPDATE events SET texts = '{MARKER}'").events())),
    (LogCorrupt, "a version", lambda scene: list(scene.ruined("UPDATE events SET version = 7").events())),
    (LogCorrupt, "a scope", lambda scene: list(scene.ruined(f"UPDATE events SET scope = '{MARKER}'").events())),
    (LogCorrupt, "the head", lambda scene: scene.ruined("DELETE FROM head") and scene.put()),
    (LogCorrupt, "the file", scribble),
    (LogCorrupt, "a rebuild", lambda scene: scene.ruined(f"UPDATE events SET body = '{MARKER}'").rebuild()),
    (QueryRefused, "no SELECT", lambda scene: scene.ledger.sql("DELETE FROM events")),
    (QueryRefused, "a cast", lambda scene: scene.ledger.sql("SELECT CAST(scope AS INTEGER) FROM log_events WHERE scope IS NOT NULL")),
    (QueryRefused, "an error of its own", lambda scene: scene.ledger.sql("SELECT error(texts) FROM log_events WHERE texts IS NOT NULL")),
    (QueryRefused, "a parameter", lambda scene: scene.ledger.sql("SELECT $a::INTEGER", {"a": MARKER})),
    (ImportRefused, "no JSON", lambda scene: import_text(scene, MARKER)),
    (ImportRefused, "no messages", lambda scene: import_text(scene, json.dumps([{"messages": [MARKER]}]))),
    (ImportRefused, "an odd role", lambda scene: import_text(scene, json.dumps([{"role": {MARKER: 1}, "content": MARKER}]))),
]
NEVER_RAISED_TODAY: set[type[RefledgerError]] = {RefledgerError, AppendUnknown, OlderSchema}
"""The base; what needs a server whose connection can break in a commit; what needs a second revision."""


def test_every_class_of_errors_is_forced() -> None:
    classes = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, RefledgerError)}
    assert {kind for kind, _, _ in FORCED} == classes - NEVER_RAISED_TODAY


@pytest.mark.parametrize(
    ("kind", "force"), [(kind, force) for kind, _, force in FORCED], ids=[f"{kind.__name__}, {name}" for kind, name, _ in FORCED]
)
def test_an_error_says_what_to_do_and_quotes_nothing(
    scene: Scene, caplog: pytest.LogCaptureFixture, kind: type[RefledgerError], force: Force
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(RefledgerError) as raised:
        force(scene)
    error = raised.value
    assert type(error) is kind
    assert_quotes_nothing(error, caplog.text)
    assert str(error).strip().endswith((".", ")", "`")) and len(str(error)) > 30


def assert_quotes_nothing(error: BaseException, logged: str) -> None:
    assert MARKER not in str(error)
    assert MARKER not in repr(error)
    assert MARKER not in repr(vars(error))
    assert MARKER not in "".join(traceback.format_exception(error)), "a cause is quoted"
    assert MARKER not in logged
    while (below := error.__cause__ or (None if error.__suppress_context__ else error.__context__)) is not None:
        assert MARKER not in f"{below} {below!r} {vars(below)!r}", type(below)
        error = below


def test_what_a_bare_store_is_asked_is_not_quoted_either(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(UnknownParentRef) as raised:
        scene.ledger.store.put(SCOPE, MARKER, kind="text", label=MARKER, parents=[UNKNOWN])
    assert raised.value.unresolved == (UNKNOWN,)
    assert_quotes_nothing(raised.value, caplog.text)


def test_the_path_of_a_log_is_not_quoted(scene: Scene) -> None:
    """A path may hold a tenant's name."""
    folder = scene.path.parent / MARKER
    folder.mkdir()
    (folder / "not-a-log.db").write_text("x" * 5_000)
    for path in (folder, folder / "absent.db", folder / "not-a-log.db", folder / "no" / "folder.db"):
        with pytest.raises(RefledgerError) as raised:
            Ledger.open(path, create=path.parent.name == "no")
        assert MARKER not in str(raised.value)


def test_verify_and_its_problems_quote_nothing(scene: Scene) -> None:
    for statement in (
        f"UPDATE events SET texts = '{MARKER}'",
        f"""UPDATE events SET body = '{{"{MARKER}":1}}'""",
        f"UPDATE payloads SET data = CAST('{MARKER}' AS BLOB)",
        f"UPDATE content SET data = CAST('{MARKER}' AS BLOB)",
        f"UPDATE artifacts SET label = '{MARKER} too', scope = '{MARKER}'",
        f"UPDATE events SET scope = '{MARKER}'",
    ):
        report = scene.ruined(statement).verify()
        assert not report.ok
        assert MARKER not in "".join(problem for verdict in report.verdicts for problem in verdict.problems)


def test_opening_a_log_for_the_first_time_quotes_nothing_when_it_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "agent.db"
    with database(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    with locked(path), pytest.raises(LockTimeout) as raised:
        Ledger.open(path, lock_timeout=0.1)
    assert "INSERT" not in "".join(traceback.format_exception(raised.value)) + caplog.text


def test_an_error_text_stands_in_no_environment(scene: Scene) -> None:
    """Errors say the same whoever is asking: neither user, nor host, nor working folder is in them."""
    with pytest.raises(NoLog) as raised:
        Ledger.open(scene.path.parent / "absent.db", create=False)
    assert os.getcwd() not in str(raised.value) and str(scene.path.parent) not in str(raised.value)
