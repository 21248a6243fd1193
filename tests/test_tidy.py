"""Style that a machine can check, over every file that git has or would have."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
VAGUE_NAMES = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py"}
CODE_FROM_DATA = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}

# Written so that this file does not match itself. An XPath such as //home/city is no path.
MACHINE_PATH = re.compile(r"(?:(?<![\w.~*/-])|file://)/(?:work|root|home|Users)/")
REGISTRY = re.compile(r"pypi\.org|files\.pythonhosted|npmjs\.(?:org|com)", re.IGNORECASE)


def listed_files() -> list[Path]:
    """Tracked files and new ones that are not ignored. Without git there is nothing to check."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    paths = {ROOT / name for name in done.stdout.split("\0") if name}
    return sorted(path for path in paths if path.is_file())


FILES = listed_files()
SOURCES = [path for path in FILES if path.suffix == ".py" and path.is_relative_to(ROOT / "src")]

pytestmark = pytest.mark.skipif(not FILES, reason="not a git working copy")


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path)))


def lines_that_match(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in FILES:
        content = path.read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{place(path, number)}: {line.strip()}")
    return found


def refuse(offences: list[str], rule: str) -> None:
    if offences:
        pytest.fail(f"{rule}:\n  " + "\n  ".join(offences), pytrace=False)


def test_every_module_says_what_it_is():
    silent = [
        place(path, 1)
        for path in SOURCES
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    refuse(silent, "a module begins with a docstring")


def test_files_are_short():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    long = [
        f"{place(path, FILE_LINES_MAX + 1)}: {length} lines"
        for path, length in lengths.items()
        if length > FILE_LINES_MAX
    ]
    refuse(long, f"a file has at most {FILE_LINES_MAX} lines")


def test_functions_fit_on_a_screen():
    long = [
        f"{place(path, node.lineno)}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for path in SOURCES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    refuse(long, f"a function has at most {FUNCTION_LINES_MAX} lines")


def test_files_are_named_after_what_they_do():
    vague = [place(path, 1) for path in FILES if path.name in VAGUE_NAMES]
    refuse(vague, "a helper lives with its user or becomes a concept with a name")


def test_data_never_becomes_code():
    found = []
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            if CODE_FROM_DATA & {name.partition(".")[0] for name in names}:
                found.append(f"{place(path, node.lineno)}: imports {', '.join(names)}")
    refuse(found, "no pickle, and nothing like it")


def test_only_the_command_line_prints():
    printing = [
        place(path, node.lineno)
        for path in SOURCES
        if not path.is_relative_to(ROOT / "src" / "headgate" / "cli")
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    refuse(printing, "only cli prints")


def test_no_path_of_one_machine():
    refuse(lines_that_match(MACHINE_PATH), "a path of one machine does not work on another")


def test_no_address_of_a_registry():
    refuse(lines_that_match(REGISTRY), "where packages come from is the machine's affair")


@pytest.mark.parametrize("text", ["cd {}work/main", "{}root/.x", "file://{}home/me", '"{}Users/a"'])
def test_machine_paths_are_recognised(text: str):
    assert MACHINE_PATH.search(text.format("/"))


@pytest.mark.parametrize("text", ["//home/city", "net/work/a", "~/work/a", "https://a.b/home/c"])
def test_other_paths_are_left_alone(text: str):
    assert not MACHINE_PATH.search(text)
