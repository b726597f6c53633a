"""The thing shipped: its floors, its files, its lock and its version."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# From the ground up: a package imports only from those before it.
FLOORS = {
    "refledger_schema": ROOT / "schema/refledger_schema",
    "refledger_store": ROOT / "store/refledger_store",
    "refledger_queries": ROOT / "queries/refledger_queries",
    "refledger": ROOT / "audit/refledger",
}

# Names of registry hosts, and folders that exist on one person's machine only.
PLACES = re.compile(
    r"\b(pypi|pythonhosted|npmjs|debian)\.(org|com)\b"  # registries
    r"|(?<![\w.~-])/(work|opt|root|home|Users)/\w"  # folders
)


def imported_packages(module: Path) -> Iterator[tuple[int, str]]:
    """Each absolute import of a module, wherever in it it stands: its line and the top-level package."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.partition(".")[0]


def shipped_files(folder: Path) -> set[str]:
    """The files of a package as a wheel names them."""
    return {path.relative_to(folder.parent).as_posix() for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def resource_names(folder: Traversable, prefix: str = "") -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from resource_names(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name


def files_to_commit() -> list[Path]:
    """What git tracks, and what it would track after `git add .`."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout")
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [path for path in (ROOT / name for name in names if name) if path.is_file()]


@pytest.mark.parametrize("package", FLOORS)
def test_a_floor_imports_only_from_the_floors_below_it(package: str) -> None:
    names = list(FLOORS)
    out_of_reach = {*names[names.index(package) + 1 :], "tests"}
    climbing = [
        f"{module.relative_to(ROOT)}:{line} imports {imported}"
        for module in sorted(FLOORS[package].rglob("*.py"))
        for line, imported in imported_packages(module)
        if imported in out_of_reach
    ]
    assert climbing == []


def test_no_committed_file_names_a_registry_host_or_a_folder_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in files_to_commit()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if (match := PLACES.search(line))
    ]
    assert found == []


def test_the_wheel_holds_every_file_of_the_four_packages(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert shipped == set().union(*(shipped_files(folder) for folder in FLOORS.values()))


@pytest.mark.parametrize("package", FLOORS)
def test_each_package_says_that_it_is_typed(package: str) -> None:
    assert files(package).joinpath("py.typed").is_file()


@pytest.mark.parametrize("package", ["refledger_store", "refledger_queries"])
def test_the_sql_files_are_found_through_the_installed_package(package: str) -> None:
    in_tree = {path.relative_to(FLOORS[package]).as_posix() for path in FLOORS[package].rglob("*.sql")}
    found = {name for name in resource_names(files(package)) if name.endswith(".sql")}
    assert found == in_tree != set()


def test_the_migrations_are_found_through_the_installed_package() -> None:
    migrations = set(resource_names(files("refledger_schema").joinpath("migrations")))
    assert "env.py" in migrations
    assert any(re.fullmatch(r"versions/\w+\.py", name) for name in migrations)


def test_the_version_it_speaks_is_the_one_it_was_built_with() -> None:
    spoken = subprocess.run([sys.executable, "-m", "refledger", "--version"], check=True, capture_output=True, text=True).stdout
    assert spoken.split()[-1] == metadata.version("refledger")


def test_the_lock_pins_by_hash_what_pyproject_asks_for() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins: dict[str, str] = dict(re.findall(r"^([\w.-]+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}", lock, re.MULTILINE))
    asked = [Requirement(line) for line in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"]]
    unmet = [str(wanted) for wanted in asked if not wanted.specifier.contains(pins.get(wanted.name, "0"))]
    assert unmet == [], "run `make lock`"
