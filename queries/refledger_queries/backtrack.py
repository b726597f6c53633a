"""From an answer back to what shaped it. The rules are in docs/backtrack.md; the SQL that follows them is in the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from refledger_queries.catalogue import reading
from refledger_queries.sources import Scanned, Source, table_of
from refledger_schema.errors import LogCorrupt, UnknownAnswer

NodeKind = Literal["answer", "call", "artifact", "message", "refusal"]
Grade = Literal[
    "delivered",
    "delivered-unverified",
    "declared",
    "cited",
    "described",
    "in-window",
    "offered",
    "spoken",
    "inferred",
    "preceded",
]

_ATTACHED = ("offered", "spoken")


@dataclass(frozen=True, slots=True)
class BacktrackRow:
    """One node that a backtrack came to."""

    depth: int | None
    """Steps from the answer; None for what only came before it."""
    position: int | None
    """Where the log has it; None where it has not."""
    node_kind: NodeKind
    node_id: str
    via_id: str | None
    """The node, one step nearer to the answer, through which it was reached."""
    argument: str | None
    """The argument that carried it, where one did."""
    grade: Grade | None
    """How well the edge to it is known; None for the answer and for refusals."""
    note: str
    """What it is, in a few words."""

    @property
    def in_cone(self) -> bool:
        return self.depth is not None and self.node_kind in ("call", "artifact", "message") and self.grade not in _ATTACHED


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """One thing that a backtrack cannot know, and how often."""

    what: str
    count: int
    note: str | None


@dataclass(frozen=True, slots=True)
class Backtrack:
    """What shaped an answer, and what of that is not known. `str()` is for people, `as_dict()` for programs."""

    log_id: str
    answer_id: str
    rows: tuple[BacktrackRow, ...]
    coverage: tuple[CoverageRow, ...]
    scanned: Scanned

    @property
    def cone(self) -> tuple[BacktrackRow, ...]:
        """What the answer rests on: calls, artifacts and messages."""
        return tuple(row for row in self.rows if row.in_cone)

    @property
    def refusals(self) -> tuple[BacktrackRow, ...]:
        """Refusals of calls in the cone, and those that such calls followed: a row a refused argument."""
        return tuple(row for row in self.rows if row.node_kind == "refusal")

    @property
    def offered(self) -> tuple[BacktrackRow, ...]:
        """Artifacts outside the cone that those refusals showed, or that the model spoke in them."""
        return tuple(row for row in self.rows if row.grade in _ATTACHED)

    @property
    def preceded(self) -> tuple[BacktrackRow, ...]:
        """The run's other calls, of which no more is known than that they came before the answer."""
        return tuple(row for row in self.rows if row.grade == "preceded" and not row.in_cone)

    def as_dict(self) -> dict[str, Any]:
        """Values that JSON can carry, by the names of the columns."""
        return asdict(self)

    def __str__(self) -> str:
        verdict = next(row.note for row in self.rows if row.node_kind == "answer")
        sections = (
            ("what it rests on", [_node(row) for row in self.cone]),
            ("refusals on the way", [_node(row) for row in self.refusals]),
            ("shown or spoken there, and not used", [_node(row) for row in self.offered]),
            ("earlier calls of the run", [_node(row) for row in self.preceded]),
            ("what this cannot know", [_hole(row) for row in self.coverage if row.count]),
        )
        lines = [_plain(f"{self.answer_id}: {verdict}")]
        for title, cells in sections:
            lines += ["", f"{title}: {len(cells) or 'nothing'}", *_aligned(cells)]
        lines += ["", _plain(f"{self.scanned.rows} events read of {', '.join(self.scanned.sources)}")]
        return "\n".join(lines)


def backtrack(source: Source, answer_id: str) -> Backtrack:
    """Walk back from an answer, over the events of its scope. Raises `UnknownAnswer`.

    Costs what the scope holds, whatever else the log holds: refs never cross scopes, so the cone lies within one.
    """
    import duckdb

    scope = source.scope_of_answer(answer_id)
    if scope is None:
        raise UnknownAnswer(answer_id)
    log = table_of(source.events(scope), source.log_id)
    try:
        with reading(log) as connection:
            connection.execute("CREATE TEMPORARY TABLE nodes AS SELECT * FROM backtrack_nodes(?)", [answer_id])
            rows = connection.execute("FROM rows_of('nodes')").fetchall()
            coverage = connection.execute("FROM coverage_of('nodes')").fetchall()
    except (duckdb.InvalidInputException, duckdb.ConversionException):
        # Without a cause: DuckDB's message may quote what stands in the row.
        raise LogCorrupt(
            None,
            "expected readable events in the answer's scope; found a body or texts that are damaged. "
            "Run `refledger verify` for all damage, and restore the log from a backup.",
        ) from None
    if not rows:
        raise UnknownAnswer(answer_id)
    return Backtrack(
        log_id=source.log_id,
        answer_id=answer_id,
        rows=tuple(BacktrackRow(*row) for row in rows),
        coverage=tuple(CoverageRow(*row) for row in coverage),
        scanned=Scanned(log.num_rows, (source.log_id,)),
    )


def _node(row: BacktrackRow) -> tuple[str, ...]:
    return (
        "" if row.depth is None else str(row.depth),
        row.node_kind,
        row.node_id,
        row.grade or "",
        row.note,
        "" if row.argument is None else f"as {row.argument}",
        "" if row.via_id is None else f"via {row.via_id}",
        "not in the log" if row.position is None else f"at {row.position}",
    )


def _hole(row: CoverageRow) -> tuple[str, ...]:
    return (row.what, str(row.count), row.note or "")


def _aligned(lines: Sequence[Iterable[str]]) -> list[str]:
    cells = [[_plain(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True) if width).rstrip() for line in cells]


def _plain(text: str) -> str:
    """Names and notes may come from an agent: no control code reaches a terminal, and no line ends early."""
    return "".join(char if char.isprintable() else "�" for char in text)
