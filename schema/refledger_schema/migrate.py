"""Creating and migrating the schema of one log. Alembic is loaded only when there is something to do."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection

HEAD_REVISION = "0001"
"""The revision this software writes; equal to the newest file in `migrations/versions`, which a test checks."""
KNOWN_REVISIONS = ("0001",)
"""Every revision this software knows, oldest first."""

# `alembic.command` keeps the running migration in module globals.
_ONE_AT_A_TIME = threading.Lock()


def upgrade(connection: Connection) -> None:
    """Bring the database on `connection` to `HEAD_REVISION`, inside the transaction that the caller holds."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "refledger_schema:migrations")
    config.attributes["connection"] = connection
    with _ONE_AT_A_TIME:
        command.upgrade(config, HEAD_REVISION)
