"""Copies of objects: bounded, shared by processes, never half written."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from headgate.store.object_cache import PLANS_KEPT_S, ObjectCache, cache_folder


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    cache = ObjectCache("s3://b/hg", root=tmp_path, bytes_max=1_000)
    for number in range(9):
        path = cache.add(f"data/g/{number}", bytes(100))
        os.utime(path, (number, number))
    assert cache.use("data/g/0") is not None, "it is the newest now"
    other = ObjectCache("s3://b/other", root=tmp_path, bytes_max=1_000)
    other.add("data/g/9", bytes(200))
    kept = {int(path.name) for path in tmp_path.rglob("*") if path.is_file()}
    assert {0, 9} <= kept
    assert kept - {0, 9} == {4, 5, 6, 7, 8}, "the oldest are gone, of all URLs"
    assert cache.use("data/g/1") is None


def test_two_urls_do_not_share_names(tmp_path: Path) -> None:
    first, second = (ObjectCache(f"s3://b/{n}", root=tmp_path) for n in "12")
    first.add("data/1", b"first")
    assert second.use("data/1") is None
    second.add("data/1", b"second")
    assert first.path("data/1").read_bytes() == b"first"


def test_plans_go_by_age_and_not_by_size(tmp_path: Path) -> None:
    cache = ObjectCache("s3://b/hg", root=tmp_path, bytes_max=100)
    old, new = cache.add("plans/old", bytes(1_000)), cache.add("plans/new", bytes(1_000))
    long_ago = time.time() - PLANS_KEPT_S - 60
    os.utime(old, (long_ago, long_ago))
    cache.add("data/g/1", bytes(200))
    assert (old.exists(), new.exists()) == (False, True)


def test_threads_add_and_use_the_same_objects(tmp_path: Path) -> None:
    """Whatever is found is whole."""
    contents = {f"data/g/{n}": bytes([n]) * 5_000 for n in range(20)}
    found: list[bool] = []

    def work(seed: int) -> None:
        cache = ObjectCache("s3://b/hg", root=tmp_path, bytes_max=40_000)
        for step in range(100):
            name = f"data/g/{(seed * 7 + step * 3) % 20}"
            path = cache.use(name) or cache.add(name, contents[name])
            try:
                found.append(path.read_bytes() == contents[name])
            except FileNotFoundError:
                continue  # another one has swept

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found
    assert all(found)
    assert not list(tmp_path.rglob(".*")), "no temporary file is left"


def test_the_folder_is_that_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "given"))
    assert cache_folder() == tmp_path / "given"
    monkeypatch.delenv("HEADGATE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "headgate" / "objects"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "headgate" / "objects"
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache_folder() == tmp_path / f"headgate-{os.getuid()}" / "objects"
