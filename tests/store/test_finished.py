"""Only batches that are finished are read, and each with all of its files or with none."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from headgate.store.files import StoredFile
from headgate.store.finished import finished


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
    assert finished(batches).has(group, batch) is expected


def test_only(batches: Path) -> None:
    files = [StoredFile(Path(str(n)), "g", date(2026, 11, 16), n) for n in range(3, 8)]
    assert [each.batch for each in finished(batches).only(files)] == [3, 4]


def test_a_record_that_is_renamed_while_it_is_listed_is_finished(batches: Path) -> None:
    (batches / "g" / "5.done.json").write_text("{}")
    assert finished(batches).has("g", 5)


def test_without_a_run_everything_is_certain(tmp_path: Path) -> None:
    assert finished(tmp_path / "none").has("g", 1)
