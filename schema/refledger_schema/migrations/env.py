"""Alembic's entry: it is handed an open connection and never makes one, nor touches the host's logging."""

from __future__ import annotations

from alembic import context

from refledger_schema.tables import Table

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Table.metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
