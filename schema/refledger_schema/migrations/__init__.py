"""Alembic's home: `env.py` and one file a revision under `versions/`. Driven by `refledger_schema.migrate`."""
