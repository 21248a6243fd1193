"""Lots and their progress as files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.model.errors import PipelineError
from headgate.tables.table_lots import (
    KEPT,
    Lot,
    LotFile,
    LotProgress,
    last_lot,
    read_lot,
    read_lot_progress,
    write_lot,
    write_lot_progress,
)

MOMENT = datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    files = (LotFile("a.parquet", ("R", "S")), LotFile("b.parquet", ("R",)))
    lot = Lot(3, "x.snapshot.json", MOMENT, files, files[1:], ("g",), ("g", "h"), ("i",), "w.feeds")
    write_lot(tmp_path, lot)
    assert read_lot(tmp_path, 3) == lot
    progress = LotProgress(3, MOMENT, ("g", "h"))
    assert read_lot_progress(tmp_path) == LotProgress()
    write_lot_progress(tmp_path, progress)
    assert read_lot_progress(tmp_path) == progress


def test_lots_come_one_by_one_and_old_ones_go(tmp_path: Path) -> None:
    for number in range(1, KEPT + 5):
        write_lot(tmp_path, Lot(number, "x", MOMENT))
    assert last_lot(tmp_path, after=KEPT - 1) == KEPT + 4
    assert last_lot(tmp_path, after=KEPT + 4) == KEPT + 4
    assert len(list((tmp_path / "lots").iterdir())) == KEPT


def test_what_is_damaged_is_told_by_name(tmp_path: Path) -> None:
    write_lot(tmp_path, Lot(1, "x", MOMENT))
    (tmp_path / "lots" / "1.json").write_text("{}")
    with pytest.raises(PipelineError, match=r"1\.json' cannot be read"):
        read_lot(tmp_path, 1)
    (tmp_path / "progress.json").write_text('{"number": "x"}')
    with pytest.raises(PipelineError, match="is damaged"):
        read_lot_progress(tmp_path)
