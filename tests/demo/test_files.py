"""Tickets and documents conform to their schemas; files are written completely and on time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.demo.demo import SCRIPT, START_S, Clock

from headgate.demo import files
from headgate.demo.files import EARLIER, NEWS, TICKETS, WRITTEN_AT_ONCE, FileWriter
from headgate.demo.rhythm import Rhythm
from headgate.language.parse import parse_script
from headgate.language.statements import RegisterStream
from headgate.model.items import attributes_of_json
from headgate.model.schema import DOCUMENT_SCHEMA, Schema
from headgate.model.text import parse_xml

numbers = st.integers(0, 10**9)


def ticket_schema() -> Schema:
    statements = parse_script(SCRIPT.read_text(encoding="utf-8"))
    (found,) = (each for each in statements if isinstance(each, RegisterStream))
    assert found.name == "Tickets"
    return Schema(found.attributes)


TICKET_SCHEMA = ticket_schema()


@given(numbers, st.integers(0, 100))
def test_a_ticket_is_read_as_it_was_made(number: int, seed: int) -> None:
    made = TICKETS.item(number, Rhythm(seed))
    text = TICKETS.text(made)
    assert text.count("\n") == 1
    assert attributes_of_json(json.loads(text), TICKET_SCHEMA) == made.attributes
    leaves = made.attributes["time"]
    assert made.time < leaves


@given(numbers, st.integers(0, 100))
def test_a_document_is_well_formed_and_has_items(number: int, seed: int) -> None:
    made = NEWS.item(number, Rhythm(seed))
    assert set(made.attributes) == set(DOCUMENT_SCHEMA.names)
    root = parse_xml(NEWS.text(made))
    assert root is not None
    assert 1 <= len(root.findall("item")) <= 3
    assert all(each.findtext("headline") for each in root.findall("item"))


# --- writing ---------------------------------------------------------------------------------

KINDS = {"Tickets": "tickets/*.json", "News": "news/*.xml"}


@pytest.fixture
def slow_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the test writes, by `write_new`."""
    monkeypatch.setattr(files, "TICK_S", 3600.0)


def names(folder: Path) -> dict[str, list[str]]:
    return {kind: sorted(p.name for p in folder.glob(pattern)) for kind, pattern in KINDS.items()}


@pytest.mark.usefixtures("slow_ticks")
def test_files_are_written_as_time_goes(tmp_path: Path) -> None:
    clock = Clock()
    writer = FileWriter(tmp_path, Rhythm(), clock)
    try:
        first = names(tmp_path)
        assert {kind: len(found) for kind, found in first.items()} == dict.fromkeys(KINDS, EARLIER)
        writer.write_new()
        assert names(tmp_path) == first
        clock.now_s += 60
        writer.write_new()
        later = names(tmp_path)
    finally:
        writer.stop()
    assert len(later["Tickets"]) == pytest.approx(EARLIER + 30, abs=1)
    assert len(later["News"]) == pytest.approx(EARLIER + 60 / 3.5, abs=1)
    everything = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(everything) == sum(map(len, later.values()))  # nothing unfinished is left
    for path in everything:
        number = int(path.stem.rpartition("-")[2])
        kind = TICKETS if path.suffix == ".json" else NEWS
        assert path.read_text(encoding="utf-8") == kind.text(kind.item(number, Rhythm()))


@pytest.mark.usefixtures("slow_ticks")
def test_after_a_long_sleep_not_everything_is_written(tmp_path: Path) -> None:
    clock = Clock()
    writer = FileWriter(tmp_path, Rhythm(), clock)
    clock.now_s += 86_400
    writer.write_new()
    writer.stop()
    assert {len(each) for each in names(tmp_path).values()} == {EARLIER + WRITTEN_AT_ONCE}


@pytest.mark.usefixtures("slow_ticks")
def test_the_oldest_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "KEPT", 25)
    other = tmp_path / "tickets" / "mine.json"
    other.parent.mkdir()
    other.write_text("{}", encoding="utf-8")
    clock = Clock()
    writer = FileWriter(tmp_path, Rhythm(), clock)
    first = names(tmp_path)["Tickets"]
    clock.now_s += 60
    writer.write_new()
    writer.stop()
    found = names(tmp_path)["Tickets"]
    assert other.name in found
    assert len(found) == 25 + 1
    assert max(found[1:]) > max(first[1:])
    assert first[1] not in found


def test_a_folder_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "tickets").write_text("in the way", encoding="utf-8")
    with pytest.raises(OSError, match="tickets"):
        FileWriter(tmp_path, Rhythm(), Clock())


def test_a_disk_that_is_full_for_a_while_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread goes on, and what could not be written is written later."""
    clock = Clock()
    write, failures = files.write_whole, 3

    def full(path: Path, text: str) -> None:
        nonlocal failures
        if failures and clock.now_s > START_S:
            failures -= 1
            raise OSError(28, "no space left")
        write(path, text)

    monkeypatch.setattr(files, "TICK_S", 0.001)
    monkeypatch.setattr(files, "write_whole", full)
    writer = FileWriter(tmp_path, Rhythm(), clock)
    clock.now_s += 20
    for _ in range(1_000):
        if len(names(tmp_path)["News"]) > EARLIER:
            break
        writer._done.wait(0.01)
    writer.stop()
    found = [int(each.partition(".")[0].rpartition("-")[2]) for each in names(tmp_path)["Tickets"]]
    assert failures == 0
    assert "no space left" in caplog.text
    assert found == list(range(min(found), min(found) + EARLIER + 10))
