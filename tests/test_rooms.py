"""The house as a whole: every module is reached, listed and cited rightly; names are unique."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "headgate"
ENTRIES = ("", "__main__", "api", "cli", "service", "demo.__main__", "pipeline.daemon")
"""Where users and Spark come in: the API, the commands, and what Spark loads by its name."""
NO_ENTRY = {"cli.bench"}
"""A command for developers: what only it reaches, no user reaches."""
NOT_REACHED_YET = {
    "relays (issue: sites on NATS)": (
        "cover",  # covering, merging and the routing table: one table per neighbour
        "tables.clients",  # join clients that hold semijoins
    ),
}
"""What a later issue wires in, by its subject. The list is empty when the relays are done."""
POSITIONAL_MAX = 8


@cache
def modules() -> dict[str, Path]:
    paths = sorted(SOURCE.rglob("*.py"))
    return {_module(path): path for path in paths}


def _module(path: Path) -> str:
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    return name.removesuffix("__init__").rstrip(".")


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


def imported(module: str) -> set[str]:
    """The modules that a module imports, late imports and names in texts included."""
    found: set[str] = set()
    room = module if modules()[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headgate"):
            base = (node.module or "").removeprefix("headgate").lstrip(".")
            found |= {base, *(f"{base}.{each.name}".lstrip(".") for each in node.names)}
        elif isinstance(node, ast.Import):
            found |= {each.name.removeprefix("headgate.") for each in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if re.fullmatch(r"headgate\.[\w.]+(:\w+)?", text):
                found.add(text.removeprefix("headgate.").partition(":")[0])
            elif re.fullmatch(r"\w+\.py", text):
                found.add(f"{room}.{text.removesuffix('.py')}")
    return found & modules().keys()


def reached() -> set[str]:
    todo = [
        name
        for name in modules()
        if name not in NO_ENTRY
        and any(name == entry or (entry and name.startswith(f"{entry}.")) for entry in ENTRIES)
    ]
    seen: set[str] = set()
    while todo:
        module = todo.pop()
        if module in seen or module in NO_ENTRY:
            continue
        seen.add(module)
        todo += imported(module)
        if module:
            todo.append(module.rpartition(".")[0])
    return seen


def is_exception(module: str) -> bool:
    names = [name for group in NOT_REACHED_YET.values() for name in group]
    return any(module == name or module.startswith(f"{name}.") for name in names)


def is_page(module: str) -> bool:
    return modules()[module].name == "__init__.py"


def is_found_by_folder(module: str) -> bool:
    """Migrations are found by Alembic in their folder, operators by users' statements."""
    return ".migrations." in module or module.startswith("operators.examples")


def test_every_module_is_reached_by_a_user():
    lost = sorted(
        module
        for module in modules().keys() - reached() - NO_ENTRY
        if not (is_page(module) or is_exception(module) or is_found_by_folder(module))
    )
    assert not lost, "what only benchmarks use belongs in bench/, what only tests use in tests/"


def test_exceptions_are_not_reached():
    """A module that is reached by now leaves the list."""
    lost = modules().keys() - reached()
    names = [name for group in NOT_REACHED_YET.values() for name in group if name in modules()]
    for name in names:
        below = {module for module in lost if module == name or module.startswith(f"{name}.")}
        assert below, f"'{name}' is reached now: take it from NOT_REACHED_YET"


def test_a_public_class_name_occurs_once():
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert not twice, "one concept has one name, and a class name occurs once"


def test_signatures_are_not_wide():
    wide = [
        f"{module}.{node.name} ({len(node.args.args)})"
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, ast.FunctionDef)
        and len(node.args.args) > POSITIONAL_MAX
        and not _is_command(module)
    ]
    assert not wide, "more than six arrays are a NamedTuple, other arguments are keywords"


def _is_command(module: str) -> bool:
    """Typer passes the options of a command by keyword."""
    return module.startswith("cli.")


@pytest.mark.parametrize("room", sorted(name for name in modules() if name and is_page(name)))
def test_the_first_page_of_a_room_names_its_files(room: str):
    page = ast.get_docstring(tree(room)) or ""
    if ".migrations" in room or room.endswith("migrations"):
        return
    folder = modules()[room].parent
    stems = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    stems |= {path.parent.name for path in folder.glob("*/__init__.py")} - {"migrations"}
    missing = sorted(stem for stem in stems if not re.search(rf"\b{stem}\b", page))
    assert not missing, f"src/headgate/{room.replace('.', '/')}/__init__.py does not name them"


PAPERS = ("RoSeS", "MBD", "Operators", "Select-Joins", "Delta")
CITED = re.compile(rf"\[({'|'.join(PAPERS)})\b([^\]]*)\]")
SECTION = re.compile(r"§[0-9]+(?:\.[0-9]+)*|Appendix [A-J]")
NOT_HERE = re.compile(
    r"\b(?:roses|mbd|delta|select-joins|expensive-operators)\.txt\b|\b(?:DESIGN|STYLE|LOG|HOUSE)\.md\b"
)


def texts() -> list[Path]:
    folders = [
        path for top in ("src", "tests", "bench", "docs") for path in (ROOT / top).rglob("*")
    ]
    suffixes = {".py", ".md", ".lark"}
    return [path for path in [*folders, *ROOT.glob("*.md")] if path.suffix in suffixes]


def sections() -> dict[str, set[str]]:
    """The sections of each paper that docs/papers.md lists."""
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    found = {}
    for paper in PAPERS:
        _, _, after = text.partition(f"\n## {paper}\n")
        found[paper] = set(SECTION.findall(after.partition("\n## ")[0]))
    return found


def test_every_citation_leads_somewhere():
    known, wrong = sections(), []
    for path in texts():
        text = path.read_text(encoding="utf-8")
        if path != Path(__file__) and (outside := NOT_HERE.search(text)):
            wrong.append(f"{path.relative_to(ROOT)}: cites {outside[0]}, which is not here")
        for paper, rest in CITED.findall(text):
            wrong += [
                f"{path.relative_to(ROOT)}: [{paper} {section}] is not in docs/papers.md"
                for section in SECTION.findall(rest)
                if section not in known[paper]
            ]
    assert not wrong


PATH = re.compile(r"(?<![\w/.:-])((?:[a-z_]+/)+[a-z_0-9]+\.(?:py|md|lark))(?![\w/])")


def test_files_that_are_named_exist():
    """A path such as plan/why.py is below src/headgate, one such as docs/api.md below the root."""
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    tops = {"docs", "bench", "tests", "examples", "scripts", "src"}
    wrong = []
    for path in texts():
        for name in PATH.findall(path.read_text(encoding="utf-8")):
            top = name.partition("/")[0]
            places = [SOURCE / name, ROOT / name, path.parent / name]
            if top in rooms | tops and not any(each.exists() for each in places):
                wrong.append(f"{path.relative_to(ROOT)}: {name}")
    assert not wrong, "a file that is named has moved"


BARE_NAME = re.compile(r"(?<![\w/.…*<-])([a-z]\w*\.py)\b")


def test_files_that_are_named_without_a_folder_exist():
    """A name such as forest.py stands for a file of the code or of its benchmarks."""
    folders = (SOURCE, ROOT / "bench")
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    known = {path.name for path in paths}
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in paths
        for name in BARE_NAME.findall(path.read_text(encoding="utf-8"))
        if name not in known
    ]
    assert not wrong, "a file that is named has moved"
