"""Rejected records are kept up to a limit, and counted once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.acquire import rejected as rejected_counts
from headgate.acquire.rejected import (
    KEPT_MAX,
    TEXT_MAX,
    RejectedCounts,
    Rejects,
    read_rejected,
    remove_rejected,
)


def reject(folder: Path, name: str, source: str, count: int) -> None:
    rejects = Rejects(source, "a.json")
    for line in range(count):
        rejects.add(line + 1, "no number", b"\xff\x1b" + b"x" * 10_000)
    rejects.write(folder, name)


def test_a_thousand_rejected_records_are_kept_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejected_counts, "REFRESH_S", 0.0)
    counts = RejectedCounts(tmp_path)
    assert counts.by_source() == {}
    reject(tmp_path / "files-1", "1", "Tickets", KEPT_MAX + 7)
    reject(tmp_path / "files-1", "2", "Trains", 2)
    reject(tmp_path / "kafka-1", "1", "Tickets", 1)
    assert counts.by_source() == {"Tickets": KEPT_MAX + 8, "Trains": 2}
    actual = list(read_rejected(tmp_path.glob("*")))
    assert len(actual) == KEPT_MAX + 1 + 2 + 1
    assert max(len(each.text) for each in actual) == TEXT_MAX
    # The same part is read again, and now only one is wrong, then nothing.
    reject(tmp_path / "files-1", "1", "Tickets", 1)
    assert counts.by_source() == {"Tickets": 2, "Trains": 2}
    reject(tmp_path / "files-1", "1", "Tickets", 0)
    assert counts.by_source() == {"Tickets": 1, "Trains": 2}


def test_old_files_are_removed(tmp_path: Path) -> None:
    reject(tmp_path / "files-1", "1", "Old", 1)
    reject(tmp_path / "files-1", "2", "New", 1)
    os.utime(tmp_path / "files-1" / "rejected" / "1.jsonl", (1_000.0, 1_000.0))
    remove_rejected(tmp_path.glob("*"), before_s=2_000.0)
    assert [each.source for each in read_rejected(tmp_path.glob("*"))] == ["New"]
