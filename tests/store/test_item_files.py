"""Files of the store are whole, replaceable, and found by day and batch."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.match.item_columns import items_to_arrow
from headgate.match.matcher import BatchMatches
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.match_stage import _lists, matched_schema
from headgate.store import whole_files
from headgate.store.item_files import (
    StoredFile,
    finished_batches,
    path_of,
    stored_files,
    with_arrival,
)
from headgate.store.maintenance import remove_batch, remove_before
from headgate.store.whole_files import WholeParquet

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SCHEMA = Schema((Attribute("price", Type.INT),))


def matched(count: int) -> pa.RecordBatch:
    items = [Item(str(n), "T", NOON, {"price": n}) for n in range(count)]
    batch = items_to_arrow(items, SCHEMA)
    feeds = _lists(BatchMatches(np.arange(count + 1), np.arange(count, dtype=np.int32)))
    return pa.RecordBatch.from_arrays(
        [*batch.columns, feeds, feeds], schema=matched_schema(batch.schema)
    )


def write(path: Path, count: int = 3) -> None:
    writer = WholeParquet(path)
    writer.write(with_arrival(matched(count), NOON))
    assert writer.close()


def test_what_is_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_files, "ROW_GROUP_ROWS", 4)
    path = path_of(tmp_path, "g", NOON, 17, "0")
    writer = WholeParquet(path)
    for _ in range(3):
        writer.write(with_arrival(matched(3), NOON))
    assert not path.exists()
    assert writer.close()
    table = pq.read_table(path, partitioning=None)
    assert table.column("price").to_pylist() == [0, 1, 2] * 3
    assert table.column("@feeds").to_pylist() == [[0], [1], [2]] * 3
    assert set(table.column("@arrived").to_pylist()) == {NOON}
    assert pq.read_metadata(path).num_row_groups == 2
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_nothing_makes_no_file(tmp_path: Path) -> None:
    assert not WholeParquet(path_of(tmp_path, "g", NOON, 17, "0")).close()
    assert list(tmp_path.iterdir()) == []


def test_what_is_abandoned_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_files, "ROW_GROUP_ROWS", 1)
    path = path_of(tmp_path, "g", NOON, 17, "0")
    writer = WholeParquet(path)
    writer.write(with_arrival(matched(3), NOON))
    writer.abandon()
    assert list(path.parent.iterdir()) == []


def test_files_by_group_day_and_batch(tmp_path: Path) -> None:
    yesterday = datetime(2026, 11, 15, 12, tzinfo=UTC)
    for group, moment, batch, part in (
        ("g", NOON, 10, "0"),
        ("g", NOON, 9, "1"),
        ("g", yesterday, 8, "0"),
        ("h", NOON, 9, "0"),
        ("materialised.g", NOON, 10, "3"),
    ):
        write(path_of(tmp_path, group, moment, batch, part))
    (tmp_path / "g" / "day=2026-11-16" / ".11-0.parquet.77").write_bytes(b"half a file")
    found = [(each.group, each.batch) for each in stored_files(tmp_path)]
    assert found == [("g", 8), ("g", 9), ("g", 10), ("h", 9), ("materialised.g", 10)]
    since = stored_files(tmp_path, since=date(2026, 11, 16), groups={"g"})
    assert [each.batch for each in since] == [9, 10]
    certain = stored_files(tmp_path, pending={("g", 10)})
    assert [(each.group, each.batch) for each in certain] == [("g", 8), ("g", 9), ("h", 9)]

    remove_batch(tmp_path, "g", NOON, 10)
    assert ("g", 10) not in [(each.group, each.batch) for each in stored_files(tmp_path)]
    assert not any("materialised" in each.group for each in stored_files(tmp_path))
    assert remove_before(tmp_path, date(2026, 11, 16)) == 1
    assert [each.batch for each in stored_files(tmp_path)] == [9, 9]
    assert not (tmp_path / "g" / "day=2026-11-15").exists()


@pytest.fixture
def batches(tmp_path: Path) -> Path:
    for name in ("g/3.done.json", "g/4.done.json", "g/5.json", "g/.6.json.17", "joined/0.json"):
        path = tmp_path / "batches" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    return tmp_path / "batches"


@pytest.mark.parametrize(
    ("group", "batch", "expected"),
    [
        ("g", 1, True),  # its record is so old that it was removed
        ("g", 4, True),
        ("g", 5, False),
        ("g", 6, False),  # it has begun since
        ("materialised.g", 4, True),
        ("materialised.g", 5, False),
        ("joined.0123456789ab", 0, False),
        ("other", 17, True),  # no run knows it
    ],
)
def test_has(batches: Path, group: str, batch: int, expected: bool) -> None:
    assert finished_batches(batches).has(group, batch) is expected


def test_only(batches: Path) -> None:
    files = [StoredFile(Path(str(n)), "g", date(2026, 11, 16), n) for n in range(3, 8)]
    assert [each.batch for each in finished_batches(batches).only(files)] == [3, 4]


def test_a_record_that_is_renamed_while_it_is_listed_is_finished(batches: Path) -> None:
    (batches / "g" / "5.done.json").write_text("{}")
    assert finished_batches(batches).has("g", 5)


def test_without_a_run_everything_is_certain(tmp_path: Path) -> None:
    assert finished_batches(tmp_path / "none").has("g", 1)
