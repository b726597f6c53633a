"""SQL lives in `.sql` files beside this module; here it is found by name."""

from __future__ import annotations

import functools
import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@functools.cache
def statements(subject: str) -> dict[str, str]:
    """The statements of `sql/<subject>.sql` by their names, without their comments.

    A statement stands under a line `-- name: …`, ends with `;`, and takes its values as named parameters.
    """
    text = files("refledger_store").joinpath("sql", f"{subject}.sql").read_text(encoding="utf-8")
    parts = _NAME.split(text)
    return {name: _bare(body) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _bare(body: str) -> str:
    lines = [line for line in body.splitlines() if not line.startswith("--")]
    return "\n".join(lines).strip().removesuffix(";")
