"""What makes a run start early: the class archive, and workers with everything loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.pipeline import daemon, java_archive


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
    assert java_archive.make_archive() == path, "what is there is not made again"


def test_without_java_there_is_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java_archive.archive_path() is None
    assert java_archive.make_archive() is None
    assert java_archive.archive_options() == []


def test_loading_runs_the_kernels_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    daemon.load()
    assert capfd.readouterr().out == "", "standard output is Spark's way to the daemon"


def test_a_task_that_is_given_up_is_no_page_of_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(daemon, "spark_worker", broken)
    assert daemon.quiet_worker(None, True) == 1
