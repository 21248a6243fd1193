"""`kill -9` of one process or all, again and again, while items come in: what is lost?

JSON files with numbered tickets are put into a folder one after the other. `headgate run` reads
them, matches, stores, and delivers half of them into a file. A killed run is started again. At the
end every item must be once in the log, and every delivery counted once and once in the file.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bench import Row, Say
from bench.running.logged import logged_rows
from bench.running.processes import below, end, is_delivery, is_java, is_worker
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_status import count_deliveries
from headgate.store.data_folder import find_folder

SCRIPT = """
register stream Tickets from json 'tickets/*.json' (id text, price int);
create feed Cheap from Tickets where price < 50;
subscribe to Cheap output file 'cheap.json' for 30 days;
"""
FILES = 100
PATIENCE_S = 120.0
VICTIMS = ("driver", "worker", "JVM", "delivery", "all")
"""`all` are the driver, its JVM and the workers at once."""


def kills_row(*, quick: bool, say: Say) -> Row:
    items, kills = (5_000, 2) if quick else (100_000, 100)
    return judged_row(
        f"kill -9 of {', '.join(VICTIMS)} in turn",
        f"a run of {items:,} items",
        kills,
        lambda folder: _run_and_kill(folder, items, kills, say),
        lambda folder: _judge(folder, items),
    )


def judged_row(
    figure: str,
    workload: str,
    kills: int,
    run: Callable[[Path], int],
    judge: Callable[[Path], tuple[int, int]],
) -> Row:
    """Run and kill in a folder, as often as it was possible; then what is lost, and what twice."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        done = run(folder)
        took_s = time.perf_counter() - began
        lost, twice = judge(folder)
    return Row(
        figure,
        f"{done} kills, {workload} ({took_s:,.0f} s)",
        f"{lost} lost, {twice} twice",
        "0 lost, 0 twice",
        lost == twice == 0 and done == kills,
    )


def _run_and_kill(folder: Path, items: int, kills: int, say: Say) -> int:
    chance = random.Random(1)
    (folder / "files" / "tickets").mkdir(parents=True)
    (folder / "script.feeds").write_text(SCRIPT)
    written, done = 0, 0
    process = start(folder)
    try:
        while done < kills:
            say(f"kill {done + 1} of {kills}")
            share = min(FILES, (done + 1) * FILES // (kills + 1))
            # Each time it must have begun a batch since it was last killed, or nothing is shown.
            since_s = time.time()
            while written < share:
                _write_file(folder, written, items)
                written += 1
            _wait_for_a_batch(folder, process, since_s)
            time.sleep(chance.uniform(0.0, 0.5))
            who = VICTIMS[done % len(VICTIMS)]
            process = kill(folder, process, who)
            done += 1
        while written < FILES:
            _write_file(folder, written, items)
            written += 1
        _wait_for_all(folder, items, say)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    finally:
        for pid in below(process.pid)[::-1]:
            end(pid, signal.SIGKILL)
        process.wait()
    return done


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "headgate", "run", "script.feeds"]
    command += ["--catalog", "catalog.db", "--metrics", "off", "--master", "local[2,8]"]
    command += ["--data", "files"]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)


def kill(folder: Path, process: subprocess.Popen[bytes], who: str) -> subprocess.Popen[bytes]:
    """The run that goes on: this one, or one that was started in place of one that has ended."""
    family = below(process.pid)
    if who in ("worker", "all"):
        for pid in filter(is_worker, family):
            end(pid, signal.SIGKILL)
    if who == "delivery":
        for pid in filter(is_delivery, family):
            end(pid, signal.SIGKILL)
    if who == "JVM":
        end(next(filter(is_java, family)), signal.SIGKILL)
        process.wait(PATIENCE_S)  # it says what has happened, and ends
    if who in ("driver", "all"):
        end(process.pid, signal.SIGKILL)
        end(next(filter(is_java, family), process.pid), signal.SIGKILL)
        process.wait()
    if process.poll() is None:
        return process
    for pid in family:
        end(pid, signal.SIGKILL)
    return start(folder)


def _write_file(folder: Path, number: int, items: int) -> None:
    size = items // FILES
    lines = [
        json.dumps({"id": str(n), "price": n % 100}) + "\n"
        for n in range(number * size, (number + 1) * size)
    ]
    fresh = folder / "files" / "tickets" / f".{number}"
    fresh.write_text("".join(lines))
    fresh.rename(folder / "files" / "tickets" / f"{number:05}.json")


def _wait_for_a_batch(folder: Path, process: subprocess.Popen[bytes], since_s: float) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and process.poll() is None:
        records = (folder / "headgate-data" / "checkpoints").glob("*/offsets/*")
        if any(_changed_s(path) > since_s for path in records):
            return
        time.sleep(0.01)


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _wait_for_all(folder: Path, items: int, say: Say) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        found = sum(_ids(folder).values())
        say(f"{found:,} of {items:,} items are stored")
        if found >= items and sent_count(folder) >= items // 2:
            return
        time.sleep(1.0)


def _ids(folder: Path) -> Counter[str]:
    return Counter(row.id for row in logged_rows(folder / "headgate-data"))


def sent_count(folder: Path) -> int:
    run_folder = find_folder(folder / "headgate-data")
    if not run_folder.has_deliveries:
        return 0
    with DeliveryDatabase(run_folder.delivery_database) as database:
        return count_deliveries(database).total


def _judge(folder: Path, items: int) -> tuple[int, int]:
    """How many items or deliveries are missing, and how many there are once too often."""
    stored = _ids(folder)
    lost = sum(str(n) not in stored for n in range(items))
    twice = sum(count - 1 for count in stored.values())
    sent, expected = sent_count(folder), items // 2
    document = json.loads((folder / "feeds" / "cheap.json").read_bytes())
    shown = [each["id"] for each in document["items"]]
    lost += max(expected - sent, 0)
    twice += max(sent - expected, 0) + len(shown) - len(set(shown))
    return lost, twice
