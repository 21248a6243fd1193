"""What makes a run start early: the class archive, and workers with everything loaded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.language.parse import parse_script
from headgate.language.statements import CreateFeed
from headgate.model.errors import PipelineError
from headgate.pipeline import daemon, java_archive, rehearsal


def java(folder: Path) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_archive_belongs_to_one_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(java_archive.MAKING_VARIABLE, raising=False)
    paths = set()
    for name in ("a", "b"):
        java(tmp_path / name)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / name))
        paths.add(java_archive.archive_path())
        assert java_archive.archive_options() == [], "there is none yet"
    assert len(paths) == 2
    path = java_archive.archive_path()
    assert path is not None
    path.parent.mkdir(parents=True)
    path.touch()
    assert java_archive.archive_options()[0] == f"-XX:SharedArchiveFile={path}"


def test_the_newest_archives_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = java_archive.cache_folder()
    folder.mkdir()
    for age in range(5):
        path = folder / f"spark-{age}.jsa"
        path.touch()
        os.utime(path, (1_000 - age, 1_000 - age))
    java_archive.keep_newest()
    assert sorted(path.name for path in folder.iterdir()) == [f"spark-{n}.jsa" for n in range(3)]


def test_without_java_there_is_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java_archive.archive_path() is None
    assert java_archive.archive_options() == []


def test_the_rehearsal_waits_for_every_feed_that_it_makes() -> None:
    statements = parse_script(rehearsal.SCRIPT)
    feeds = [each.name for each in statements if isinstance(each, CreateFeed)]
    assert tuple(feeds) == rehearsal.FEEDS


def test_a_rehearsal_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal.sys, "executable", "/bin/false")
    with pytest.raises(PipelineError, match="the rehearsal failed: no reason"):
        rehearsal.rehearse()


def test_loading_runs_the_kernels_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    daemon.load()
    assert capfd.readouterr().out == "", "standard output is Spark's way to the daemon"


def test_a_task_that_is_given_up_is_no_page_of_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(daemon, "spark_worker", broken)
    assert daemon.quiet_worker(None, True) == 1
