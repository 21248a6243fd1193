"""Ranges have each row once, however files are cut, merged and trimmed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.small_log import NOON, SmallLog, news, ticket

from headgate.store.file_ranges import FileRange, current_ranges, ranges_since
from headgate.store.log_index import open_placed


def positions(store: SmallLog, ranges: list[FileRange]) -> list[int]:
    """The positions of all rows of these ranges, by their segments."""
    found: list[int] = []
    for each in ranges:
        runs = open_placed(store.storage, each.file).runs
        first, end = each.rows(runs)
        found += runs.positions(np.arange(first, end)).tolist()
    return found


@settings(max_examples=25)
@given(
    sizes=st.lists(st.tuples(st.booleans(), st.integers(1, 6)), min_size=1, max_size=12),
    bytes_max=st.integers(1, 20_000),
    trimmed=st.integers(0, 10),
)
def test_each_row_is_in_one_piece_before_and_after_a_merge(
    sizes: list[tuple[bool, int]], bytes_max: int, trimmed: int
) -> None:
    with TemporaryDirectory() as path:
        store = SmallLog(Path(path))
        for second, (is_news, size) in enumerate(sizes):
            arrived = NOON + timedelta(seconds=second)
            made = [news("1", "a") if is_news else ticket("1", 1, "a") for _ in range(size)]
            store.put(made, arrived=arrived)
        total = sum(size for _, size in sizes)
        before = [piece for each in ranges_since(store.view(), 0) for piece in each.pieces(5)]
        assert positions(store, before) == list(range(total))
        store.merge()
        store.sequencer.trim(min(trimmed, total))
        kept = list(range(min(trimmed, total), total))
        pieces = [
            piece for each in ranges_since(store.view(), 0) for piece in each.pieces(bytes_max)
        ]
        assert sorted(positions(store, pieces)) == kept
        live = {each.items for each in store.view().files()}
        gone = [each for each in before if each.file.items not in live]
        current = [each for old in gone for each in current_ranges(store.storage, old)]
        current += [each for each in before if each.file.items in live]
        assert [each for each in sorted(positions(store, current)) if each in kept] == kept


def test_a_live_file_that_is_missing_is_lost(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([ticket("1", 1, "Rome")], arrived=NOON)
    (only,) = ranges_since(store.view(), 0)
    with pytest.raises(FileNotFoundError):
        current_ranges(store.storage, only)
