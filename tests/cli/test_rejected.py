"""`headgate rejected`: rejected input as text and JSON, safe for a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.headgate_command import Run

from headgate.acquire.rejected import Rejects
from headgate.store.data_folder import DataFolder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for source, name in (("Tickets", "1"), ("Trains", "2")):
        rejects = Rejects(source, f"{source.lower()}/a.json")
        for line in range(3):
            rejects.add(line + 1, "expected an int, found 'cheap'", '{"price": "\x1b[31mcheap"}')
        rejects.write(tmp_path / "data" / "sources" / "files-1", name)
    DataFolder(tmp_path / "data").record_data_root(tmp_path / "files")
    return tmp_path / "data"


def test_what_is_shown(headgate: Run, folder: Path) -> None:
    code, out, err = headgate("rejected", "Tickets", "--lines", "2", "--folder", str(folder))
    assert (code, err) == (0, "")
    first, second, total = out.splitlines()
    assert first.startswith("Tickets  tickets/a.json:2  expected an int, found 'cheap'  {\"price\"")
    assert second.startswith("Tickets  tickets/a.json:3")
    assert total == "-- 3 rejected of Tickets"
    assert "\x1b" not in out
    assert headgate("rejected", "--folder", str(folder))[1].endswith("-- 6 rejected\n")


def test_as_json(headgate: Run, folder: Path) -> None:
    code, out, _ = headgate("rejected", "--json", "--folder", str(folder))
    assert code == 0
    found = [json.loads(line) for line in out.splitlines()]
    assert [each["line"] for each in found] == [1, 2, 3, 1, 2, 3]
    assert found[0]["source"] == "Tickets"


def test_no_rejected_input(headgate: Run, tmp_path: Path) -> None:
    assert headgate("rejected", "--folder", str(tmp_path))[:2] == (0, "-- 0 rejected\n")


def test_the_text_of_a_file_that_is_not_granted_is_not_shown(
    headgate: Run, folder: Path, tmp_path: Path
) -> None:
    """An earlier run may have been allowed to read other files."""
    DataFolder(folder).record_data_root(None)
    assert 'cheap"' not in headgate("rejected", "--json", "--folder", str(folder))[1]
    (tmp_path / "files" / "tickets").mkdir(parents=True)
    (tmp_path / "files" / "tickets" / "a.json").symlink_to(tmp_path / "token")
    DataFolder(folder).record_data_root(tmp_path / "files")
    out = headgate("rejected", "Tickets", "--json", "--folder", str(folder))[1]
    assert {json.loads(line)["text"] for line in out.splitlines()} == {""}
    assert 'cheap\\"' in headgate("rejected", "Trains", "--json", "--folder", str(folder))[1]
