"""Under a name there is the old content or the new one, and nothing is left lying about."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.store import whole_files
from headgate.store.whole_files import write_whole


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.json"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert [each.name for each in path.parent.iterdir()] == ["a.json"]


@pytest.mark.parametrize("step", ["write_synced", "rename_whole"])
def test_after_a_failure_the_old_content_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "a.json"
    write_whole(path, b"one")

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(whole_files, step, full)
    with pytest.raises(OSError, match="full"):
        write_whole(path, b"two")
    assert path.read_bytes() == b"one"
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]
