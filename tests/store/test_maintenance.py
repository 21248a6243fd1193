"""Small files become one, and at every moment a reader finds every row once, in order."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.store.test_item_files import NOON, write

from headgate.store import maintenance, whole_files
from headgate.store.item_files import path_of, stored_files
from headgate.store.maintenance import merge_days, remove_before

TOMORROW = date(2026, 11, 17)


def rows(store: Path) -> list[int]:
    found: list[int] = []
    for file in stored_files(store):
        found += pq.read_table(file.path, partitioning=None).column("price").to_pylist()
    return found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for batch in range(20):
        write(path_of(tmp_path, "g", NOON, batch, "0"), count=batch % 3 + 1)
    return tmp_path


def test_days_that_are_over_are_merged(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_files, "ROW_GROUP_ROWS", 10)
    before = rows(store)
    assert merge_days(store, before=date(2026, 11, 16)) == 0, "the day is not over"
    assert merge_days(store, before=TOMORROW) == 20
    assert rows(store) == before
    (merged,) = stored_files(store)
    assert merged.batch == 19
    assert len(list(merged.path.parent.glob("*-0.parquet"))) == 20, "somebody may be reading them"
    assert merge_days(store, before=TOMORROW) == 0
    assert [each.name for each in merged.path.parent.iterdir()] == [merged.path.name]
    assert rows(store) == before


def test_a_file_that_is_large_stays(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = path_of(store, "g", NOON, 7, "0")
    monkeypatch.setattr(maintenance, "SMALL_BYTES", 10_000)
    write(large, count=20_000)
    before = sorted(rows(store))
    assert merge_days(store, before=TOMORROW) == 19
    assert sorted(rows(store)) == before
    assert large in [each.path for each in stored_files(store)]


@pytest.mark.parametrize(
    ("owner", "step"),
    [(maintenance, "_write"), (maintenance, "write_whole"), (whole_files.WholeParquet, "close")],
)
def test_whenever_it_is_cut_off_every_row_is_there_once(
    store: Path, monkeypatch: pytest.MonkeyPatch, owner: object, step: str
) -> None:
    before, original = rows(store), getattr(owner, step)

    def cut_off(*arguments: object) -> None:
        original(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, step, cut_off)
    with pytest.raises(KeyboardInterrupt):
        merge_days(store, before=TOMORROW)
    assert rows(store) == before
    monkeypatch.setattr(owner, step, original)
    merge_days(store, before=TOMORROW)
    merge_days(store, before=TOMORROW)
    assert rows(store) == before
    assert len(stored_files(store)) == 1


def test_what_is_old_goes_with_all_that_belongs_to_it(store: Path) -> None:
    merge_days(store, before=TOMORROW)
    assert remove_before(store, TOMORROW) == 1
    assert stored_files(store) == []
    assert list((store / "g").iterdir()) == []
