"""Importers: runs recorded elsewhere, read into events. One module a format, each with a `read_runs` and an `imported_run`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Protocol

from refledger.importers import openai_chat
from refledger.importers.imported import ImportedRun
from refledger_schema.canonical import JsonValue
from refledger_schema.scopes import Scope

__all__ = ["FORMATS", "Format", "ImportedRun"]


class ImportOne(Protocol):
    """Makes events of one record. Pure, but that refs are minted."""

    def __call__(self, record: Mapping[str, JsonValue], *, scope: Scope | None = None, write_tools: Sequence[str] = ()) -> ImportedRun: ...


@dataclass(frozen=True, slots=True)
class Format:
    """How traces of one format are read."""

    read_runs: Callable[[str | PathLike[str]], Iterator[dict[str, JsonValue]]]
    """The runs of a file, one record each."""
    imported_run: ImportOne
    """What one record becomes."""


FORMATS: Mapping[str, Format] = {openai_chat.FORMAT: Format(openai_chat.read_runs, openai_chat.imported_run)}
"""The formats by their names, as the command line takes them and `import.noted` states them."""
