"""Change batches and their progress as files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.model.errors import PipelineError
from headgate.tables.change_batches import (
    KEPT,
    ChangeBatch,
    ChangeFile,
    ChangeProgress,
    last_change_batch,
    read_change_batch,
    read_change_progress,
    write_change_batch,
    write_change_progress,
)

MOMENT = datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_written_content_is_read_back(tmp_path: Path) -> None:
    files = (ChangeFile("a.parquet", ("R", "S")), ChangeFile("b.parquet", ("R",)))
    batch = ChangeBatch(
        3, "x.snapshot.json", MOMENT, files, files[1:], ("g",), ("g", "h"), ("i",), "w.feeds"
    )
    write_change_batch(tmp_path, batch)
    assert read_change_batch(tmp_path, 3) == batch
    progress = ChangeProgress(3, MOMENT, ("g", "h"))
    assert read_change_progress(tmp_path) == ChangeProgress()
    write_change_progress(tmp_path, progress)
    assert read_change_progress(tmp_path) == progress


def test_batches_are_numbered_and_old_ones_are_deleted(tmp_path: Path) -> None:
    for number in range(1, KEPT + 5):
        write_change_batch(tmp_path, ChangeBatch(number, "x", MOMENT))
    assert last_change_batch(tmp_path, after=KEPT - 1) == KEPT + 4
    assert last_change_batch(tmp_path, after=KEPT + 4) == KEPT + 4
    assert len(list((tmp_path / "lots").iterdir())) == KEPT


def test_an_error_names_the_damaged_file(tmp_path: Path) -> None:
    write_change_batch(tmp_path, ChangeBatch(1, "x", MOMENT))
    (tmp_path / "lots" / "1.json").write_text("{}")
    with pytest.raises(PipelineError, match=r"1\.json' cannot be read"):
        read_change_batch(tmp_path, 1)
    (tmp_path / "progress.json").write_text('{"number": "x"}')
    with pytest.raises(PipelineError, match="is damaged"):
        read_change_progress(tmp_path)
