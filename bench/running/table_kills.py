"""`kill -9` of driver, worker or both while tables are joined: which results are lost, which twice?

Stocks and prices are there before; then reviews come, file by file, each for one stock. Half of
them are good enough for the feeds, so each of these makes one result of two tables and one of
three. A killed run is started again. At the end every result must be once in the store, once in the
outbox and once in its file.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from pathlib import Path

from bench import Row, Say
from bench.running.kills import judged_row, kill, sent_count, start
from bench.running.logged import logged_rows
from bench.running.processes import below, end
from headgate.store.log_writer import TABLES
from headgate.tables.change_batches import read_change_progress

SCRIPT = """
register table Stocks (Symbol text key, PER float) from json 'stocks/*.json';
register table Reviews (id int key, Symbol text, Rating int) from json 'reviews/*.json';
register table Prices (Symbol text key, Price float) from json 'prices/*.json';
create feed Rated from Stocks as $s join Reviews as $r on Symbol
  where $s[PER between 45 and 70] and $r[Rating >= 5];
create feed Priced from Stocks join Reviews as $r on Symbol join Prices on Symbol
  where $r[Rating >= 5];
subscribe to Rated output file 'rated.json' for 30 days;
subscribe to Priced output file 'priced.json' for 30 days;
"""
OUTPUTS = ("rated.json", "priced.json")
STOCKS = 50
FILES = 40
PATIENCE_S = 180.0


def table_kills_row(*, quick: bool, say: Say) -> Row:
    reviews, kills = (2_000, 3) if quick else (20_000, 20)
    return judged_row(
        "kill -9 while tables are joined",
        f"{reviews // 2:,} results of two tables and as many of three",
        kills,
        lambda folder: _run_and_kill(folder, reviews, kills, say),
        lambda folder: _judge(folder, reviews),
    )


def _run_and_kill(folder: Path, reviews: int, kills: int, say: Say) -> int:
    chance = random.Random(1)
    (folder / "script.feeds").write_text(SCRIPT)
    symbols = [f"S{n}" for n in range(STOCKS)]
    _write(folder / "files" / "stocks", "all", [{"Symbol": each, "PER": 50.0} for each in symbols])
    _write(folder / "files" / "prices", "all", [{"Symbol": each, "Price": 1.5} for each in symbols])
    written, done, process = 0, 0, start(folder)
    try:
        _wait(lambda: _lots(folder) >= 1 and _stored(folder) == 2 * STOCKS)
        time.sleep(1.0)
        while done < kills:
            say(f"kill {done + 1} of {kills}")
            before = _lots(folder)
            while written < (done + 1) * FILES // (kills + 1):
                _write_reviews(folder, written, reviews)
                written += 1
            # Each time a lot has begun since it was last killed, or nothing is shown.
            _wait(lambda: _begun(folder) > before)  # noqa: B023 - it is waited for at once
            time.sleep(chance.uniform(0.0, 0.5))
            process = kill(folder, process, ("driver", "worker", "all")[done % 3])
            done += 1
        while written < FILES:
            _write_reviews(folder, written, reviews)
            written += 1
        _wait(lambda: sent_count(folder) >= len(OUTPUTS) * reviews // 2)
        time.sleep(2.0)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    finally:
        for pid in below(process.pid)[::-1]:
            end(pid, signal.SIGKILL)
        process.wait()
    return done


def _wait(is_done: object) -> None:
    assert callable(is_done)
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and not is_done():
        time.sleep(0.02)


def _lots(folder: Path) -> int:
    """How many lots are taken."""
    return read_change_progress(folder / "headgate-data" / "tables").number


def _begun(folder: Path) -> int:
    lots = (folder / "headgate-data" / "tables" / "lots").glob("*.json")
    return max((int(each.stem) for each in lots if each.stem.isdecimal()), default=0)


def _stored(folder: Path) -> int:
    """How many rows of stocks and prices there are."""
    return sum(1 for _ in logged_rows(folder / "headgate-data"))


def _write_reviews(folder: Path, number: int, reviews: int) -> None:
    size = reviews // FILES
    rows = [
        {"id": n, "Symbol": f"s{n % STOCKS}", "Rating": n % 10}
        for n in range(number * size, (number + 1) * size)
    ]
    _write(folder / "files" / "reviews", f"{number:05}", rows)


def _write(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f".{name}"
    fresh.write_text("".join(json.dumps(row) + "\n" for row in rows))
    fresh.rename(folder / f"{name}.json")


def _judge(folder: Path, reviews: int) -> tuple[int, int]:
    """How many results or deliveries are missing, and how many there are once too often."""
    stored: dict[str, Counter[int]] = {}
    for row in logged_rows(folder / "headgate-data"):
        if row.group.startswith(TABLES):
            number = row.columns["id"]
            assert isinstance(number, int)
            stored.setdefault(row.group, Counter())[number] += 1
    expected = [n for n in range(reviews) if n % 10 >= 5]
    lost = len(expected) * (len(OUTPUTS) - len(stored))
    twice = 0
    for own in stored.values():
        lost += sum(n not in own for n in expected)
        twice += sum(count - 1 for count in own.values()) + sum(n % 10 < 5 for n in own)
    sent, wanted = sent_count(folder), len(OUTPUTS) * len(expected)
    lost += max(wanted - sent, 0)
    twice += max(sent - wanted, 0)
    for name in OUTPUTS:
        document = json.loads((folder / "feeds" / name).read_bytes())
        shown = [each["id"] for each in document["items"]]
        twice += len(shown) - len(set(shown))
    return lost, twice
