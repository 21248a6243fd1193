"""Questions are answered by all sound files, whatever is merged, removed or damaged meanwhile."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.store.small_log import NOON, SmallLog, news, ticket

from headgate.model.errors import StateError
from headgate.store.data_folder import DataFolder
from headgate.store.log import prune_entries
from headgate.store.log_view import MISSING, LogView


@pytest.fixture
def store(tmp_path: Path) -> SmallLog:
    made = SmallLog(tmp_path)
    for day in range(5):
        arrived = NOON + timedelta(days=day)
        made.put([ticket(f"{day}-{n}", n, "Rome") for n in range(3)], arrived=arrived)
        made.put([news(f"{day}", "rock")], arrived=arrived)
    return made


def ids(view: LogView) -> list[str]:
    return view.ask(lambda: [row.id for row in view.read(view.index.since("Tickets", 0))])


ALL = [f"{day}-{n}" for day in range(5) for n in range(3)]


@pytest.mark.parametrize("what", ["items", "segment"])
@pytest.mark.parametrize("rubbish", [b"", b"PAR1 no Parquet at all PAR1", b"ARROW1" * 100])
def test_damaged_files_are_named_and_the_others_answer(
    store: SmallLog, what: str, rubbish: bytes
) -> None:
    bad = store.put([ticket("x", 1, "Rome")], arrived=NOON + timedelta(days=6))
    also = store.put([ticket("y", 1, "Rome")], arrived=NOON + timedelta(days=6))
    store.damage(getattr(bad, what), rubbish)
    content = (store.folder.path / getattr(also, what)).read_bytes()
    store.damage(getattr(also, what), content[:-9])
    view = store.view()
    assert ids(view) == ALL
    assert set(view.damaged) == {bad.items, also.items}
    assert all(view.damaged.values())
    assert ids(view) == ALL


def test_a_page_that_is_damaged_is_found_only_by_reading_it(store: SmallLog) -> None:
    file = store.put([ticket(f"long id {n}", n, "Rome") for n in range(500)], arrived=NOON)
    path = store.folder.path / file.items
    column = pq.read_metadata(path).row_group(0).column(1)
    content = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    content[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(bytes(content))  # the footer is whole
    view = store.view()
    assert ids(view) == ALL
    assert set(view.damaged) == {file.items}


def test_files_that_were_merged_and_removed_are_found_again(store: SmallLog) -> None:
    view, mapped = store.view(), store.view()
    places = mapped.index.since("Tickets", 0)  # its segments are mapped, its items are not
    store.merge()
    assert all(not (store.folder.path / place.file.items).exists() for place in places[:4])
    assert ids(view) == ids(mapped) == ALL
    assert not view.damaged
    assert not mapped.damaged


def test_a_view_that_is_far_behind_takes_a_checkpoint(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([ticket("1", 1, "Rome")], arrived=NOON)
    view = store.view()
    for second in range(1, 300):
        store.put([ticket("1", 1, "Rome")], arrived=NOON + timedelta(seconds=second))
    store.merge()
    assert prune_entries(store.storage, before_us=store.sequencer.state.arrived_us) > 256
    assert len(ids(view)) == 300


def test_a_file_that_is_live_and_missing_is_damaged(store: SmallLog) -> None:
    file = store.put([ticket("x", 1, "Rome")], arrived=NOON)
    view = store.view()
    store.storage.remove(file.segment)
    assert ids(view) == ALL
    assert view.damaged == {file.items: MISSING}


def test_places_of_positions(store: SmallLog) -> None:
    for _ in range(2):
        view = store.view()
        asked = [3, 0, 19, 7, 4, 4]
        rows = view.ask(lambda view=view, asked=asked: view.read(view.places([*asked, 20, 99])))
        assert [row.position for row in rows] == sorted(set(asked))
        everything = {row.position: row.id for row in view.read(view.places(range(20)))}
        assert [row.id for row in rows] == [everything[position] for position in sorted(set(asked))]
        assert [everything[position] for position in range(5)] == ["0-0", "0-1", "0-2", "0", "1-0"]
        store.merge()
    store.sequencer.trim(5)
    assert [place.position for place in store.view().places([4, 5, 6])] == [5, 6]


def test_files_since_an_instant(store: SmallLog) -> None:
    view = store.view()
    for day in range(6):
        since_us = int((NOON + timedelta(days=day)).timestamp() * 1e6)
        groups = [each.group for each in view.files(since_us=since_us)]
        assert len(groups) == min(10, 2 * (5 - day) + 1)
        later = [
            file.first + view.first_row(file, since_us=since_us)
            for file in view.files(since_us=since_us)
            if view.first_row(file, since_us=since_us) < file.rows
        ]
        assert later == [file.first for file in view.files() if file.arrived_us >= since_us]


def test_folders_of_earlier_versions_are_refused(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "old")
    LogView(folder)
    (folder.path / "store" / "files-1f" / "day=2026-11-16").mkdir(parents=True)
    with pytest.raises(StateError, match=r"earlier version.* start with a new folder"):
        LogView(folder)
    (folder.path / "log").mkdir()
    LogView(folder)


def test_an_empty_log(tmp_path: Path) -> None:
    view = SmallLog(tmp_path).view()
    assert view.files() == []
    assert ids(view) == []
