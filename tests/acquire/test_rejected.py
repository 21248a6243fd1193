"""What is rejected is kept within limits, counted once, and shown."""

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


def test_of_many_a_thousand_are_kept_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejected_counts, "LOOK_S", 0.0)
    counts = RejectedCounts(tmp_path)
    assert counts.by_source() == {}
    reject(tmp_path / "files-1", "1", "Tickets", KEPT_MAX + 7)
    reject(tmp_path / "files-1", "2", "Trains", 2)
    reject(tmp_path / "kafka-1", "1", "Tickets", 1)
    assert counts.by_source() == {"Tickets": KEPT_MAX + 8, "Trains": 2}
    found = list(read_rejected(tmp_path.glob("*")))
    assert len(found) == KEPT_MAX + 1 + 2 + 1
    assert max(len(each.text) for each in found) == TEXT_MAX
    # The same part is read again, and now only one is wrong, then nothing.
    reject(tmp_path / "files-1", "1", "Tickets", 1)
    assert counts.by_source() == {"Tickets": 2, "Trains": 2}
    reject(tmp_path / "files-1", "1", "Tickets", 0)
    assert counts.by_source() == {"Tickets": 1, "Trains": 2}


def test_what_is_old_is_forgotten(tmp_path: Path) -> None:
    reject(tmp_path / "files-1", "1", "Old", 1)
    reject(tmp_path / "files-1", "2", "New", 1)
    os.utime(tmp_path / "files-1" / "rejected" / "1.jsonl", (1_000.0, 1_000.0))
    remove_rejected(tmp_path.glob("*"), before_s=2_000.0)
    assert [each.source for each in read_rejected(tmp_path.glob("*"))] == ["New"]
