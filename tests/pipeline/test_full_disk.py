"""A disk that is full, and then not: the run waits and goes on; nothing is lost or twice.

The run's folder is a small file system of its own in memory, which needs the right to mount one.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
from bench.running.logged import logged_rows
from bench.running.processes import below, end
from tests.pipeline.sources.streams import wait_for

from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_status import count_deliveries
from headgate.store.data_folder import DataFolder

SCRIPT = """
register stream Tickets from json '*.json' (id text, price int);
create feed Cheap from Tickets where price < 50;
subscribe to Cheap output file 'cheap.json' for 30 days;
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    command = [shutil.which("mount") or "mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs"]
    try:
        done = subprocess.run([*command, str(path)], capture_output=True, check=False)
    except OSError as error:
        pytest.skip(f"a file system of its own cannot be mounted: {error}")
    if done.returncode:
        pytest.skip(f"a file system of its own cannot be mounted: {done.stderr.decode().strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.mark.integration
def test_a_full_disk_loses_nothing(tmp_path: Path, disk: Path) -> None:
    (tmp_path / "tickets").mkdir()
    (tmp_path / "script.feeds").write_text(SCRIPT)
    with running(tmp_path, disk) as process:
        for number in range(5):
            write_tickets(tmp_path, number)
        wait_for(lambda: len(stored(disk)) == 500)
        fill(disk)
        for number in range(5, 20):
            write_tickets(tmp_path, number)
        wait_for(lambda: "disk is full" in (tmp_path / "output").read_text())
        assert process.poll() is None
        (disk / "filler").unlink()
        wait_for(lambda: len(stored(disk)) == 2_000)
        wait_for(lambda: delivered(disk) >= 1_000)
    assert Counter(stored(disk)) == Counter(str(n) for n in range(2_000))
    assert delivered(disk) == 1_000
    shown = [each["id"] for each in json.loads((disk / "feeds/cheap.json").read_bytes())["items"]]
    assert len(shown) == len(set(shown)) == 100
    lines = (tmp_path / "output").read_text().splitlines()
    assert sum("disk is full" in line for line in lines) < 20, "an error is not repeated for ever"


@contextmanager
def running(home: Path, disk: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "headgate", "run", "script.feeds", "--catalog", "catalog.db"]
    command += ["--data", "tickets", "--metrics", "off"]
    command += ["--folder", str(disk / "data"), "--output", str(disk / "feeds")]
    with (home / "output").open("wb") as output:
        process = subprocess.Popen(command, cwd=home, stdout=output, stderr=output)
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        process.wait(120)
    finally:
        for pid in below(process.pid)[::-1]:
            end(pid, signal.SIGKILL)
        process.wait()


def write_tickets(home: Path, number: int) -> None:
    lines = [json.dumps({"id": str(100 * number + n), "price": n}) + "\n" for n in range(100)]
    fresh = home / f"{number}.json"
    fresh.write_text("".join(lines))
    fresh.rename(home / "tickets" / fresh.name)


def fill(disk: Path) -> None:
    def write(file: BinaryIO) -> None:
        while True:
            file.write(b"x" * 4_096)

    with (disk / "filler").open("wb", 0) as filler, pytest.raises(OSError, match="No space left"):
        write(filler)


def stored(disk: Path) -> list[str]:
    if not (disk / "data" / "log").exists():
        return []
    return [str(row.columns["id"]) for row in logged_rows(disk / "data")]


def delivered(disk: Path) -> int:
    folder = DataFolder(disk / "data")
    if not folder.has_deliveries:
        return 0
    with DeliveryDatabase(folder.delivery_database) as database:
        return count_deliveries(database).total
