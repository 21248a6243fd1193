"""Docs fail when wrong: this runs the examples in README.md and docs/.

- ```headgate         is applied, one block of a file after the other, to a new catalog
- ```headgate error   must be refused with one of our errors
- ```console          is run, and must print what it shows; see console.py for `…`
- ```console no-run   is shown only
- ```console serve    is a server: it is started, on another port, for the blocks behind it, which
                      begin when it has printed the line that is shown
- ```python           is run, all blocks of a file one after the other in one namespace
- ```python no-run    is shown only

The console blocks of one file run in order in one empty folder with a copy of examples/.
REWRITE=1 puts what is printed now into the file.
"""

import difflib
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.docs.console import clean, read_commands, update
from tests.docs.markdown import Block, documents, read_blocks, read_links

from headgate.catalog.catalog import Catalog
from headgate.language.parse import parse_script
from headgate.model.errors import HeadgateError, LanguageError
from headgate.plan.explain import explain_all

ROOT = Path(__file__).parents[2]
DOCUMENTS = [str(path.relative_to(ROOT)) for path in documents(ROOT)]
INFOS = {
    "headgate": {(), ("error",)},
    "console": {(), ("no-run",), ("serve",)},
    "python": {(), ("no-run",)},
}
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
every_document = pytest.mark.parametrize("document", DOCUMENTS)


def blocks_of(document: str, language: str) -> Iterator[tuple[Block, tuple[str, ...]]]:
    for block in read_blocks((ROOT / document).read_text(encoding="utf-8")):
        if block.info[:1] == (language,):
            marks = block.info[1:]
            assert marks in INFOS[language], (
                f"{document}:{block.first_line}: unknown mark {' '.join(marks)!r}"
            )
            yield block, marks


@pytest.mark.skipif(not DOCUMENTS, reason="nothing is documented yet")
def test_there_is_a_readme():
    assert "README.md" in DOCUMENTS


@every_document
def test_scripts_can_be_applied(document: str):
    with Catalog.open("sqlite://") as catalog:
        for block, marks in blocks_of(document, "headgate"):
            text = "\n".join(block.lines) + "\n"
            place = f"{document}:{block.first_line + 1}"
            try:
                explain_all_of(catalog, text)
            except HeadgateError as error:
                if marks != ("error",):
                    pytest.fail(f"{place}: this script is refused:\n{error}", pytrace=False)
            else:
                if marks == ("error",):
                    pytest.fail(f"{place}: this script should be refused", pytrace=False)


def explain_all_of(catalog: Catalog, text: str) -> None:
    """Apply the script, and see that everything in the catalog has a plan."""
    try:
        catalog.apply(parse_script(text))
    except LanguageError as error:
        raise error.within(text) from None
    assert explain_all(catalog.definitions()).text()


@every_document
def test_consoles_print_what_they_show(document: str, tmp_path: Path):
    if (ROOT / "examples").exists():
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = ROOT / document
    shown = path.read_text(encoding="utf-8").splitlines()
    runnable: list[Block] = []
    printed: list[list[str]] = []
    blocks = list(blocks_of(document, "console"))
    addresses = free_addresses(block for block, marks in blocks if marks == ("serve",))
    with ExitStack() as opened:
        for block, marks in blocks:
            if marks == ("serve",):
                opened.enter_context(served(block, tmp_path, addresses))
            elif not marks:
                runnable.append(block)
                printed.append(run(block, tmp_path, addresses))
    now = list(shown)
    for block, lines in reversed(list(zip(runnable, printed, strict=True))):
        now[block.first_line : block.end_line] = [(block.indent + x).rstrip() for x in lines]
    if now == [line.rstrip() for line in shown]:
        return
    if os.environ.get("REWRITE") == "1":
        path.write_text("\n".join(now) + "\n", encoding="utf-8")
        return
    diff = "\n".join(difflib.unified_diff(shown, now, document, "now", lineterm=""))
    pytest.fail(f"{diff}\n\nif the new output is right, run with REWRITE=1", pytrace=False)


def free_addresses(servers: Iterable[Block]) -> dict[str, str]:
    """For each address that a server shows, one that it can have here."""
    found: dict[str, str] = {}
    with ExitStack() as taken:
        for block in servers:
            shown = ADDRESS.findall("\n".join(block.lines))
            assert shown, f"a server names its address: {block.lines}"
            for each in shown:
                free = taken.enter_context(socket.create_server(("127.0.0.1", 0)))
                found.setdefault(each, f"127.0.0.1:{free.getsockname()[1]}")
    return found


def replaced(text: str, addresses: Mapping[str, str]) -> str:
    for shown, actual in addresses.items():
        text = text.replace(shown, actual)
    return text


@contextmanager
def served(block: Block, folder: Path, addresses: Mapping[str, str]) -> Iterator[None]:
    """The server of this block, as soon as it has printed what is shown."""
    (command,) = read_commands(block.lines)
    expected = replaced(command.expected[0], addresses)
    server = subprocess.Popen(
        ["bash", "-c", f"exec {replaced(command.shell, addresses)}"],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert server.stdout is not None
    printed: list[str] = []
    # What it prints later is read, too, so that it never waits for a reader.
    reader = threading.Thread(target=server.stdout.read, daemon=True)
    try:
        for line in server.stdout:
            printed.append(line.rstrip())
            if printed[-1] == expected:
                break
        assert expected in printed, f"{command.shell} has printed only {printed}"
        reader.start()
        yield
    finally:
        server.terminate()
        server.wait(120)
        if reader.ident is not None:
            reader.join(120)
        server.stdout.close()


def run(block: Block, folder: Path, addresses: Mapping[str, str] = {}) -> list[str]:
    """The block as it should read now: its commands, each with what it prints."""
    lines: list[str] = []
    for command in read_commands(block.lines):
        done = subprocess.run(
            ["bash", "-c", replaced(command.shell, addresses)],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=600,
            check=False,
        )
        if "Traceback (most recent call last)" in done.stdout:
            pytest.fail(f"{command.shell}\ncrashed:\n{done.stdout}", pytrace=False)
        expected = list(command.expected)
        output = done.stdout
        for shown, actual in addresses.items():
            output = output.replace(actual, shown)
        updated = list(update(expected, clean(output)))
        blank = [""] * (len(expected) - len(clean("\n".join(expected))))
        lines += [*command.typed, *updated, *blank]
    return lines


def environment(home: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HEADGATE_", "XDG_", "PYTEST_"))
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    plain = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    return kept | plain | {"PATH": path, "HOME": str(home)}


@every_document
def test_python_runs(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block, marks in blocks_of(document, "python"):
        if not marks:
            # Blank lines before it give errors the line of the document.
            source = "\n" * block.first_line + "\n".join(block.lines)
            exec(compile(source, document, "exec"), namespace)


@every_document
def test_links_lead_somewhere(document: str):
    path = ROOT / document
    broken = [
        f"{document}:{line}: {target} does not exist"
        for line, target in read_links(path.read_text(encoding="utf-8"))
        if not urlsplit(target).scheme
        and not target.startswith("#")
        and not (path.parent / unquote(urlsplit(target).path)).exists()
    ]
    assert not broken, "\n".join(broken)
