"""Concurrent and killed processes: nothing is lost or half done."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tests.catalog import writer_process

from headgate.catalog.catalog import Catalog
from headgate.language.parse import parse_script
from headgate.model.errors import CatalogUnavailable

pytestmark = pytest.mark.integration

SCRIPTS = 50


@contextmanager
def writer(url: str, name: str, *arguments: int) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, writer_process.__file__, url, name, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def start(process: "subprocess.Popen[str]") -> None:
    process.stdin.write("go\n")
    process.stdin.flush()


def assert_whole(catalog: Catalog, names: set[str]) -> int:
    """Every script is there with all of its parts, and the version counts them. How many."""
    found = set(catalog.definitions())
    subscribed = {each.feed for each in catalog.list_subscriptions(limit=10_000)}
    scripts = {name[:-1] for name in found}
    assert found == {script + part for script in scripts for part in "ab"}
    assert subscribed == {script + "b" for script in scripts}
    assert names <= scripts
    assert catalog.version() == len(scripts)
    return len(scripts)


def test_two_processes_that_write_at_once_lose_nothing(catalog_url: str):
    with (
        Catalog.open(catalog_url) as catalog,
        writer(catalog_url, "A", SCRIPTS) as one,
        writer(catalog_url, "B", SCRIPTS) as two,
    ):
        for process in (one, two):
            start(process)
        for process in (one, two):
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0
            assert len(output.splitlines()) == SCRIPTS
        expected = {f"{name}{number}" for name in "AB" for number in range(SCRIPTS)}
        assert assert_whole(catalog, expected) == 2 * SCRIPTS
        ids = [each.id for each in catalog.list_subscriptions(limit=1000)]
        assert ids == list(range(1, 2 * SCRIPTS + 1))


@pytest.mark.parametrize("acknowledged", [1, 4, 11])
def test_acknowledged_commits_survive_kill_9(catalog_url: str, acknowledged: int):
    with writer(catalog_url, "A", 1_000) as process:
        start(process)
        lines = [process.stdout.readline() for _ in range(acknowledged)]
        process.kill()
        process.wait()
        lines += process.stdout.read().splitlines()
    numbers = [int(line.split()[0]) for line in lines if " " in line.strip()]
    with Catalog.open(catalog_url) as catalog:
        assert_whole(catalog, {f"A{number}" for number in numbers})
        ticket = lines[0].split()[1]
        catalog.apply(parse_script(f"renew '{ticket}' for 2 days;"))


def test_a_script_that_is_killed_leaves_nothing(catalog_url: str):
    with writer(catalog_url, "A", 1, 2) as process:
        start(process)
        assert process.stdout.readline() == "blocked\n"
        # A reader does not wait for the writer, and sees nothing of it.
        with Catalog.open(catalog_url) as reader:
            assert (reader.version(), list(reader.definitions())) == (0, [])
        process.kill()
        process.wait()
    with Catalog.open(catalog_url) as catalog:
        assert (catalog.version(), list(catalog.definitions())) == (0, [])
        catalog.apply(parse_script(writer_process.script("A", 0)))
        assert_whole(catalog, {"A0"})


def test_a_writer_waits_for_the_other_and_says_so_when_it_waits_too_long(catalog_url: str):
    with writer(catalog_url, "A", 1, 2) as process:
        start(process)
        assert process.stdout.readline() == "blocked\n"
        with Catalog.open(catalog_url, lock_timeout_s=0.05) as catalog:
            with pytest.raises(CatalogUnavailable, match="locked by another process for too long"):
                catalog.apply(parse_script(writer_process.script("B", 0)))
            start(process)
            assert process.stdout.readline().startswith("0 ")
            process.wait()
            catalog.apply(parse_script(writer_process.script("B", 0)))
            assert_whole(catalog, {"A0", "B0"})


def test_writers_in_threads_come_one_after_the_other(catalog_url: str):
    with Catalog.open(catalog_url) as catalog, ThreadPoolExecutor(4) as threads:
        scripts = [parse_script(writer_process.script("T", number)) for number in range(20)]
        list(threads.map(catalog.apply, scripts))
        assert assert_whole(catalog, {f"T{number}" for number in range(20)}) == 20
