"""The schema is stated once, and the migrations lead to it, on both engines, from wherever the package is installed.

REFLEDGER_SNAPSHOTS=write writes the stored DDL anew; its diff is then what a migration has to do.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from sqlite3 import SQLITE_CREATE_TABLE, SQLITE_DENY, SQLITE_OK

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from refledger import Ledger
from refledger_schema.errors import StoreFault
from refledger_schema.migrate import HEAD_REVISION, KNOWN_REVISIONS, upgrade
from refledger_schema.tables import PROJECTIONS, Table
from refledger_store.sqlite import connect
from tests.ledgers import ask, run_python, squeezed

ROOT = Path(__file__).parent.parent
SNAPSHOTS = Path(__file__).parent / "snapshots"
TABLES = Table.metadata.sorted_tables
DIALECTS: dict[str, sa.Dialect] = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log as `Ledger.open` makes it."""
    path = tmp_path_factory.mktemp("migrated") / "migrated.db"
    Ledger.open(path).close()
    return path


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, as the tables declare it."""
    path = tmp_path_factory.mktemp("declared") / "declared.db"
    with engine(path).begin() as connection:
        Table.metadata.create_all(connection)
    return path


def engine(path: Path) -> sa.Engine:
    return sa.create_engine(f"sqlite:///{path}", poolclass=sa.NullPool)


@contextmanager
def migrating(path: Path) -> Iterator[sa.Connection]:
    """A connection whose transactions hold DDL, as the store opens one."""
    made = sa.create_engine("sqlite://", creator=lambda: connect(path, 5.0), poolclass=sa.NullPool)
    sa.event.listen(made, "begin", lambda begun: begun.exec_driver_sql("BEGIN IMMEDIATE"))
    with made.begin() as connection:
        yield connection


def objects(path: Path) -> dict[tuple[str, str], str]:
    """Tables and indexes by kind and name, as statements."""
    rows = ask(path, "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name <> 'alembic_version'")
    return {(kind, name): squeezed(sql) for kind, name, sql in rows}


def ddl(dialect: sa.Dialect) -> str:
    """The declared schema as one dialect writes it."""
    statements = []
    for table in TABLES:
        statements.append(str(CreateTable(table).compile(dialect=dialect)))
        statements += [
            str(CreateIndex(index).compile(dialect=dialect)) for index in sorted(table.indexes, key=lambda index: str(index.name))
        ]
    lines = [line.rstrip() for statement in statements for line in f"{statement.strip()};\n".replace("\t", "    ").splitlines()]
    return "\n".join(lines) + "\n"


def test_the_migrated_schema_is_the_declared_one(migrated: Path, declared: Path) -> None:
    assert objects(migrated) == objects(declared)


def test_alembic_finds_nothing_left_to_migrate(migrated: Path) -> None:
    with engine(migrated).connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Table.metadata) == []


def test_every_column_is_text_integer_or_blob_in_a_strict_table(migrated: Path) -> None:
    columns = ask(migrated, "SELECT m.name, c.name, c.type FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'")
    ours = [(table, name, kind) for table, name, kind in columns if table != "alembic_version"]
    assert {kind for _, _, kind in ours} == {"TEXT", "INTEGER", "BLOB"}
    strict = ask(migrated, "SELECT name FROM pragma_table_list WHERE schema = 'main' AND strict")
    assert {name for (name,) in strict} == {table for table, _, _ in ours} == {table.name for table in TABLES}


def test_a_strict_table_refuses_what_its_column_does_not_say(migrated: Path) -> None:
    with pytest.raises(Exception, match="cannot store TEXT value in INTEGER column log.created_us"):
        ask(migrated, "UPDATE log SET created_us = 'soon'")


def test_every_constraint_and_index_has_a_name_of_its_own() -> None:
    constraints = [constraint.name for table in TABLES for constraint in table.constraints]
    indexes = [index.name for table in TABLES for index in table.indexes]
    named = [str(name) for name in (*constraints, *indexes)]
    assert None not in (*constraints, *indexes)
    assert [name for name in named if not re.fullmatch(r"(pk|ck|uq|ix)_\w+", name)] == []
    assert len(named) == len(set(named))


def test_the_names_reach_the_file(migrated: Path) -> None:
    keyed = [sql for (kind, _), sql in objects(migrated).items() if kind == "table"]
    assert [sql for sql in keyed if "CONSTRAINT pk_" not in sql] == []
    assert ask(migrated, "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NULL AND name NOT LIKE 'sqlite_autoindex%'") == []


def test_head_revision_is_the_newest_file_and_every_revision_is_known() -> None:
    scripts = ScriptDirectory(str(files("refledger_schema").joinpath("migrations")))
    revisions = [script.revision for script in scripts.walk_revisions()][::-1]
    assert (scripts.get_current_head(), tuple(revisions)) == (HEAD_REVISION, KNOWN_REVISIONS)
    names = sorted(path.name for path in Path(scripts.versions).glob("[0-9]*.py"))
    assert [name.partition("_")[0] for name in names] == revisions


def test_the_projections_are_tables_and_the_log_is_not_one_of_them() -> None:
    others = {table.name for table in TABLES} - set(PROJECTIONS)
    assert others == {"log", "events", "payloads", "payload_chunks", "content", "run_holders"}


@pytest.mark.parametrize("name", DIALECTS)
def test_the_ddl_is_the_stored_one(name: str) -> None:
    snapshot = SNAPSHOTS / f"schema.{name}.sql"
    if os.environ.get("REFLEDGER_SNAPSHOTS") == "write":
        snapshot.write_text(ddl(DIALECTS[name]), encoding="utf-8")
    assert ddl(DIALECTS[name]) == snapshot.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", DIALECTS)
def test_the_migrations_write_the_declared_ddl_on_either_engine(name: str) -> None:
    written = io.StringIO()
    context = MigrationContext.configure(
        dialect_name=name, opts={"as_sql": True, "output_buffer": written, "target_metadata": Table.metadata}
    )
    with Operations.context(context):
        for revision in ScriptDirectory(str(files("refledger_schema").joinpath("migrations"))).walk_revisions():
            revision.module.upgrade()
    migrated, declared = (
        {squeezed(statement) for statement in text.split(";")} - {""} for text in (written.getvalue(), ddl(DIALECTS[name]))
    )
    assert migrated == declared


def test_a_migration_that_fails_leaves_no_table_and_opening_again_makes_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.db"
    last = TABLES[-1].name

    def refusing(path: Path, timeout: float) -> sqlite3.Connection:
        connection = connect(path, timeout)
        connection.set_authorizer(lambda action, name, *_: SQLITE_DENY if (action, name) == (SQLITE_CREATE_TABLE, last) else SQLITE_OK)
        return connection

    monkeypatch.setattr("refledger_store.sqlite.connect", refusing)
    with pytest.raises(StoreFault):
        Ledger.open(path)
    assert ask(path, "SELECT name FROM sqlite_master") == []
    monkeypatch.undo()
    Ledger.open(path).close()
    assert ask(path, "SELECT position FROM head") == [(0,)]


def test_migrations_run_from_the_built_wheel(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    script = "import refledger_schema.migrate as m; from refledger import Ledger; Ledger.open('agent.db').close(); print(m.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    made = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert made.stdout.strip() == str(tmp_path / "site" / "refledger_schema" / "migrate.py")
    assert ask(tmp_path / "agent.db", "SELECT version_num FROM alembic_version") == [(HEAD_REVISION,)]


def test_neither_importing_nor_running_migrations_touches_the_hosts_logging(tmp_path: Path) -> None:
    script = """
        import logging, sys
        host = logging.getLogger("host.application")
        handler = logging.StreamHandler(sys.stdout)
        logging.getLogger().addHandler(handler)

        def state():
            root = logging.getLogger()
            return root.handlers, root.level, root.disabled, host.handlers, host.level, host.disabled, logging.root.manager.disable

        before = state()
        import importlib
        for name in ("migrate", "tables", "migrations", "migrations.versions.0001_first"):
            importlib.import_module("refledger_schema." + name)
        assert state() == before, "importing"
        from refledger import Ledger
        Ledger.open(sys.argv[1]).close()
        assert state() == before, "migrating"
        host.warning("still heard")
        """
    assert run_python(script, tmp_path / "agent.db") == "still heard\n"


def test_migrating_twice_changes_nothing(migrated: Path) -> None:
    before = objects(migrated)
    with migrating(migrated) as connection:
        upgrade(connection)
    assert objects(migrated) == before


def test_a_table_of_the_host_stays_out_of_our_metadata() -> None:
    sqlmodel = importlib.import_module("sqlmodel")
    assert Table.metadata is not sqlmodel.SQLModel.metadata
    assert not set(sqlmodel.SQLModel.metadata.tables) & {table.name for table in TABLES}


def test_the_file_is_in_wal_mode_and_closes_without_leftovers(migrated: Path) -> None:
    with closing(connect(migrated, 1.0)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    assert sorted(path.name for path in migrated.parent.glob("migrated.db*")) == ["migrated.db", "migrated.db.lock"]
