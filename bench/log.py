"""The log: building segments, asking feeds, and opening it, without Spark.

Items have 13 matches among 200,000 feeds, drawn as in a catalog of overlapping filters: feed f is
drawn with a probability proportional to 1 / (f + 1000). A day has 10,000,000 items in batches of
one second, merged 64 to 1; the last batches are not merged yet. Asked are feeds drawn uniformly,
from positions drawn uniformly from the last hour and from the whole day.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench import Result, Row, Say
from headgate.match.bit_rows import Longs
from headgate.store.log import LogReader, Origin, Sequencer, WrittenFile
from headgate.store.log_index import LogIndex
from headgate.store.log_merge import files_to_merge
from headgate.store.log_storage import FolderStorage
from headgate.store.postings import build_postings
from headgate.store.segment import Segment, merge_segments, one_run, segment_bytes

FEEDS = 200_000
MATCHES = 13
ASKED = 2_000


def run(*, quick: bool, say: Say) -> Result:
    items, seconds = (200_000, 1_000) if quick else (10_000_000, 86_400)
    rows = [_segment_row(10_000, MATCHES, say=say), _segment_row(500, 12_000, say=say)]
    with tempfile.TemporaryDirectory() as name:
        storage = FolderStorage(Path(name))
        _fill(storage, items, seconds, say=say)
        rows += _open_rows(storage, seconds)
        rows += _asked_rows(storage, items, say=say)
    return Result(rows)


def _draw(rng: np.random.Generator, count: int) -> Longs:
    """Feeds with a probability proportional to 1 / (f + 1000)."""
    share = rng.random(count)
    drawn: Longs = (1_000 * ((FEEDS + 1_000) / 1_000) ** share - 1_000).astype(np.int64)
    return np.minimum(drawn, FEEDS - 1)


def _pairs(rng: np.random.Generator, items: int, matches: int) -> tuple[Longs, Longs]:
    """Feeds and rows, each pair once, ordered by row."""
    rows = np.repeat(np.arange(items), matches)
    feeds = _draw(rng, rows.size) if matches < 1_000 else rng.integers(0, FEEDS, rows.size)
    codes = np.unique(rows * FEEDS + feeds)
    return codes % FEEDS, codes // FEEDS


def _best_s(action: Callable[[], object], times: int = 5) -> float:
    action()
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        action()
        best = min(best, time.process_time() - began)
    return best


def _segment_row(items: int, matches: int, *, say: Say) -> Row:
    say(f"segments of {items:,} items with {matches:,} matches")
    feeds, rows = _pairs(np.random.default_rng(1), items, matches)
    taken = _best_s(lambda: build_postings(feeds, rows))
    size = build_postings(feeds, rows).data.size / feeds.size
    return Row(
        "segment",
        f"{items:,} items, {matches:,} matches each, {FEEDS:,} feeds",
        f"{feeds.size / taken / 1e6:.0f} million matches/s, {size:.2f} bytes each",
    )


def _fill(storage: FolderStorage, items: int, seconds: int, *, say: Say) -> None:
    """A log as a day leaves it. Segments of batches that were merged are not written one by one."""
    sequencer, rng = Sequencer(storage), np.random.default_rng(2)
    per_batch = items // seconds
    segments: dict[str, Segment] = {}
    for batch in range(seconds):
        if batch % 1_000 == 0:
            say(f"batch {batch:,} of {seconds:,}")
        feeds, rows = _pairs(rng, per_batch, MATCHES)
        name = f"data/feeds/{batch}"
        written = WrittenFile(f"{name}.items", name, "feeds", per_batch, 1)
        entry = sequencer.commit(Origin("feeds", "a", batch), [written])
        assert entry is not None
        runs = one_run(entry.base, entry.arrived_us)
        segments[name] = Segment(per_batch, feeds=build_postings(feeds, rows), runs=runs)
        while together := files_to_merge(sequencer.state):
            parts = [segments.pop(each.segment) for each in together]
            merged = merge_segments(parts, [each.runs for each in parts])
            name = f"data/feeds/{batch}-{together[0].level}"
            segments[name] = merged
            count = sum(each.rows for each in together)
            sequencer.merge(together, WrittenFile(f"{name}.items", name, "feeds", count, 1))
    for name, segment in segments.items():
        storage.write(name, segment_bytes(segment))


def _open_rows(storage: FolderStorage, seconds: int) -> list[Row]:
    def open_log() -> None:
        LogReader(storage).refresh()

    taken = _best_s(open_log, 3)
    files = len(LogIndex(storage).files)
    return [Row("open", f"{seconds:,} batches, {files} files", f"{taken * 1e3:.0f} ms")]


def _asked_rows(storage: FolderStorage, items: int, *, say: Say) -> list[Row]:
    say("asking")
    index, rng = LogIndex(storage), np.random.default_rng(3)
    for file in index.files:
        index.segment(file)
    rows = []
    for what, first in (("of the last hour", items - items // 24), ("of the whole day", 0)):
        taken, found = [], 0
        for _ in range(ASKED):
            feed, position = int(rng.integers(FEEDS)), int(rng.integers(first, items))
            began = time.perf_counter()
            found += len(index.since(feed, position, limit=100))
            taken.append((time.perf_counter() - began) * 1e3)
        p50, p99 = np.quantile(taken, [0.5, 0.99])
        rows.append(
            Row(
                "feed since a position",
                f"{items:,} items, {FEEDS:,} feeds, {what}, {found / ASKED:.0f} items on average",
                f"p50 {p50:.2f} ms, p99 {p99:.2f} ms",
                "p99 ≤ 5 ms",
                bool(p99 <= 5),
            )
        )
    return rows
