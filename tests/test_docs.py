"""The pages: every snippet runs and prints what the page shows, every command and option is documented, every link leads somewhere.

In a page, a `text` block after a `python` block is what that prints, and what stands under a `$ ` line is what that prints. `…` stands
for anything in a line, and alone on a line for any lines. Runs of spaces are one.
"""

from __future__ import annotations

import difflib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from refledger.cli import app, main

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "docs/examples"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    fences = re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(fence[1], fence[2], text[: fence.start(2)].count("\n")) for fence in fences]


def spoken_in(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block, with the lines under it."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield command, shown


def assert_prints(where: str, shown: list[str], printed: str) -> None:
    shown = [" ".join(line.split()) for line in shown]
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    pattern = "".join("(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*?") + "\n" for line in shown)
    if not re.fullmatch(pattern, "".join(line + "\n" for line in lines)):
        pytest.fail(f"{where}: the page shows (-) what is not printed (+)\n" + "\n".join(difflib.ndiff(shown, lines)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_snippets_of_a_page_run_and_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    names: dict[str, Any] = {"__name__": "__main__"}
    blocks = blocks_of(page)
    for block, after in zip(blocks, [*blocks, None][1:], strict=True):
        where = f"{page.name}:{block.line}"
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, str(page), "exec", dont_inherit=True), names)
            printed = capsys.readouterr().out
            if after is not None and after.language == "text":
                assert_prints(where, after.text.splitlines(), printed)
        elif block.language == "console":
            for command, shown in spoken_in(block):
                run_command(where, command, shown, monkeypatch, capsys)
        else:
            assert block.language in ("text", "sql"), f"{where}: a block of {block.language or 'nothing'}, which no test runs"


def run_command(where: str, command: str, shown: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    program, *arguments = shlex.split(command)
    if program == "make":
        assert set(arguments) <= TARGETS, f"{where}: {command}: the Makefile has no such target"
    elif program == "export":
        monkeypatch.setenv(*arguments[0].split("=", 1))
    elif program == "refledger":
        code = main(arguments)
        printed = capsys.readouterr()
        assert code == 0, f"{where}: {command}: {printed.err}"
        if shown:
            assert_prints(f"{where}: {command}", shown, printed.out)
    else:
        pytest.fail(f"{where}: no test knows how to run {program}")


def test_the_readme_promises_the_two_commands_of_a_fresh_clone() -> None:
    promised = [command for block in blocks_of(ROOT / "README.md") if block.language == "console" for command, _ in spoken_in(block)]
    assert promised[:2] == ["make demo", "make test"]


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs(example: str, tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-W", "error", EXAMPLES / example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout


def test_the_example_of_who_else_names_the_answers_that_rest_on_the_bad_data(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, EXAMPLES / "who_else.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["first-answer unjudged", "second-answer unjudged"]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_is_documented_with_an_example_and_its_options(command: str) -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {command}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    assert f"$ refledger {command}" in found[1]
    options = {spelling for parameter in COMMANDS[command].params for spelling in parameter.opts if spelling.startswith("--")}
    assert {option for option in options if not re.search(rf"{option}\b", page)} == {"--help"} & options


def test_the_command_line_page_documents_no_command_that_is_not_there() -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (.*)$", page, re.MULTILINE)) == set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md" and f"({page.name})" not in index] == []
