"""Files that change places: whole for every reader, and never another's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.deliver import replace_files
from headgate.deliver.replace_files import STAGING, FileReplacer


@pytest.fixture
def replacer(tmp_path: Path) -> Iterator[FileReplacer]:
    found = FileReplacer(tmp_path, "w")
    yield found
    found.close()


def write(replacer: FileReplacer, content: bytes, *, key: int = 1, path: str = "a.json") -> None:
    replacer.stage(key, path, (content[:3], content[3:]), compare=False)
    results = replacer.commit()
    assert (results.written, results.failed) == ([key], {})


def test_a_document_has_two_files_that_change_places(tmp_path: Path, replacer: FileReplacer):
    inodes = []
    for content in (b"first", b"the second", b"3", b"the fourth one", b"5", b"6"):
        write(replacer, content)
        assert (tmp_path / "a.json").read_bytes() == content
        inodes.append((tmp_path / "a.json").stat().st_ino)
    assert len(set(inodes)) == 2
    assert inodes[0::2] == inodes[:1] * 3


def test_a_reader_reads_the_old_document_to_its_end(tmp_path: Path, replacer: FileReplacer):
    write(replacer, b"first")
    with open(tmp_path / "a.json", "rb") as reader:
        for number in range(4):
            write(replacer, b"document %d" % number)
        assert reader.read() == b"first"
    assert (tmp_path / "a.json").read_bytes() == b"document 3"


def test_a_link_to_the_old_document_keeps_it(tmp_path: Path, replacer: FileReplacer):
    write(replacer, b"first")
    os.link(tmp_path / "a.json", tmp_path / "backup.json")
    for number in range(4):
        write(replacer, b"document %d" % number)
    assert (tmp_path / "backup.json").read_bytes() == b"first"


def test_a_changed_mode_is_not_kept(tmp_path: Path, replacer: FileReplacer):
    write(replacer, b"first")
    mode = (tmp_path / "a.json").stat().st_mode
    (tmp_path / "a.json").chmod(0o600)
    for number in range(4):
        write(replacer, b"document %d" % number)
        assert (tmp_path / "a.json").stat().st_mode == mode


def test_without_leases_files_are_made_anew(
    tmp_path: Path, replacer: FileReplacer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delattr(replace_files.fcntl, "F_SETLEASE")
    for number in range(4):
        write(replacer, b"document %d" % number)
        assert (tmp_path / "a.json").read_bytes() == b"document %d" % number


def test_what_is_staged_last_is_written(tmp_path: Path, replacer: FileReplacer):
    for number in range(3):
        write(replacer, b"document %d" % number)
        replacer.stage(1, "a.json", (b"one",), compare=False)
        replacer.stage(1, "a.json", (b"two",), compare=False)
        assert replacer.commit().written == [1]
        assert (tmp_path / "a.json").read_bytes() == b"two"


def test_what_is_abandoned_is_not_written(tmp_path: Path, replacer: FileReplacer):
    for _ in range(3):
        write(replacer, b"written")
        replacer.stage(1, "a.json", (b"abandoned",), compare=False)
        replacer.abandon()
        assert replacer.commit().written == []
        assert (tmp_path / "a.json").read_bytes() == b"written"


def test_few_old_documents_are_kept(
    tmp_path: Path, replacer: FileReplacer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(replace_files, "SPARE_BYTES_MAX", 25)
    for _ in range(3):
        for key in range(5):
            write(replacer, b"0123456789", key=key, path=f"{key}.json")
    staging = tmp_path / STAGING / "w"
    replacer._threads.shutdown()
    assert len(list(staging.iterdir())) == 2
    replacer._threads = replace_files.ThreadPoolExecutor(1)
    monkeypatch.setattr(replace_files, "SPARE_S", -1.0)
    for key in range(5):
        write(replacer, b"x", key=key, path=f"{key}.json")
        assert (tmp_path / f"{key}.json").read_bytes() == b"x"


def test_a_folder_is_not_replaced(tmp_path: Path, replacer: FileReplacer):
    (tmp_path / "a.json").mkdir()
    replacer.stage(1, "a.json", (b"x",), compare=False)
    assert list(replacer.commit().failed) == [1]
    assert (tmp_path / "a.json").is_dir()
