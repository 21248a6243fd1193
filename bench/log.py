"""The log: building segments, asking feeds, and opening it, without Spark.

Items have 13 matches among 200,000 feeds, drawn as in a catalog of overlapping filters: feed f is
drawn with a probability proportional to 1 / (f + 1000). A day has 10,000,000 items in batches of
one second, merged 64 to 1; the last batches are not merged yet. Asked are feeds drawn uniformly,
from positions drawn uniformly from the last hour and from the whole day.

The commands are timed as well: `tail` of ten items of a feed drawn uniformly, an item by its id
(`why`), and `stats`. Items have a title of 60 letters and are of 200 sources. Ids are drawn, so
that no row group can be left out by its least and greatest id.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import Result, Row, Say
from bench.running.s3_server import BUCKET, MISSING, VERSION, S3Server, find_server
from headgate.match.bit_rows import Longs
from headgate.store.data_folder import DataFolder
from headgate.store.find_item import find_item
from headgate.store.log import LogReader, Sequencer
from headgate.store.log_index import LogIndex
from headgate.store.log_merge import files_to_merge
from headgate.store.log_state import Origin, WrittenFile
from headgate.store.log_storage import FolderStorage, LogStorage
from headgate.store.log_view import LogView
from headgate.store.open_storage import open_storage
from headgate.store.postings import build_postings
from headgate.store.segment import Segment, merge_segments, one_run, segment_bytes
from headgate.store.stats import stats
from headgate.store.tail import last_places, tail
from headgate.store.whole_files import ROW_GROUP_ROWS

FEEDS = 200_000
MATCHES = 13
ASKED = 2_000
SERVER = f"S3 (versitygw {VERSION}, loopback)"
SOURCES = 200
LINES = 10


def run(*, quick: bool, say: Say) -> Result:
    items, seconds = (200_000, 1_000) if quick else (10_000_000, 86_400)
    rows = [_segment_row(10_000, MATCHES, say=say), _segment_row(500, 12_000, say=say)]
    with tempfile.TemporaryDirectory() as name:
        storage = FolderStorage(Path(name))
        _fill(storage, items, seconds, say=say)
        rows += _open_rows(storage, seconds)
        rows += _asked_rows(storage, items, say=say)
        _write_items(storage, say=say)
        rows += _command_rows(Path(name), items, say=say)
        rows.append(_commit_row(FolderStorage(Path(name, "commits")), "a folder", quick=quick))
    return Result(rows + _url_rows(quick=quick, say=say))


def _url_rows(*, quick: bool, say: Say) -> list[Row]:
    """The same at a URL, on an S3 server of this machine: what a network adds is not in it."""
    if find_server() is None:
        say(MISSING)
        return []
    items, seconds = (50_000, 250) if quick else (1_000_000, 8_640)
    with tempfile.TemporaryDirectory() as name, S3Server(Path(name)) as server:
        cache = {"HEADGATE_CACHE": str(Path(name, "cache"))}
        with patch.dict(os.environ, {**server.environment, **cache}):
            storage = open_storage(f"s3://{BUCKET}/log")
            _fill(storage, items, seconds, say=say)
            rows = [_commit_row(open_storage(f"s3://{BUCKET}/commits"), SERVER, quick=quick)]
            rows += [_open_row(storage, seconds, f"{each} cache") for each in ("cold", "warm")]
            asked = _asked_rows(storage, items, say=say)
    where = f"{SERVER}, warm cache"
    return rows + [replace(row, workload=f"{where}, {row.workload}") for row in asked]


def _commit_row(storage: LogStorage, where: str, *, quick: bool) -> Row:
    """The latency of an entry: from the call until it is durable and visible."""
    sequencer, taken = Sequencer(storage), []
    for batch in range(300 if quick else 3_000):
        written = WrittenFile(f"data/feeds/{batch}.parquet", f"data/feeds/{batch}", "feeds", 10, 1)
        began = time.perf_counter()
        sequencer.commit(Origin("feeds", "a", batch), [written])
        taken.append((time.perf_counter() - began) * 1e3)
    p50, p99 = np.quantile(taken, [0.5, 0.99])
    return Row("commit", where, f"p50 {p50:.1f} ms, p99 {p99:.1f} ms")


def _open_row(storage: LogStorage, seconds: int, what: str) -> Row:
    began = time.perf_counter()
    index = LogIndex(storage)
    for file in index.files:
        index.segment(file)
    taken = time.perf_counter() - began
    workload = f"{SERVER}, {what}, {seconds:,} batches, {len(index.files)} files"
    return Row("open with all segments", workload, f"{taken * 1e3:.0f} ms")


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


def _fill(storage: LogStorage, items: int, seconds: int, *, say: Say) -> None:
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


def _open_rows(storage: LogStorage, seconds: int) -> list[Row]:
    def open_log() -> None:
        LogReader(storage).refresh()

    taken = _best_s(open_log, 3)
    files = len(LogIndex(storage).files)
    return [Row("open", f"{seconds:,} batches, {files} files", f"{taken * 1e3:.0f} ms")]


def _asked_rows(storage: LogStorage, items: int, *, say: Say) -> list[Row]:
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


def _write_items(storage: LogStorage, *, say: Say) -> None:
    """The files of items of the log, and segments that know the sources."""
    index, rng = LogIndex(storage), np.random.default_rng(4)
    names = tuple(f"source{number}" for number in range(SOURCES))
    for number, file in enumerate(index.files):
        say(f"items of file {number} of {len(index.files)}")
        rows = np.arange(file.rows)
        sources = build_postings(rows % SOURCES, rows)
        segment = replace(index.segment(file), source_names=names, sources=sources)
        storage.write(file.segment, segment_bytes(segment))
        ids = pa.array(rng.integers(0, 2**62, file.rows)).cast(pa.string())
        table = pa.table(
            {
                "@source": pa.array(names).take(rows % SOURCES),
                "@id": ids,
                "@time": pa.array(rows, pa.timestamp("us", tz="UTC")),
                "title": pa.array([f"{row:060}" for row in rows.tolist()]),
            }
        )
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, row_group_size=ROW_GROUP_ROWS, compression="zstd")
        storage.write(file.items, sink.getvalue())


def _command_rows(path: Path, items: int, *, say: Say) -> list[Row]:
    say("tail, why and stats")
    view, rng = LogView(DataFolder(path)), np.random.default_rng(5)
    for file in view.files():
        view.index.segment(file)
    feeds = rng.integers(0, FEEDS, 200).tolist()
    places_ms = [_taken_ms(lambda f=f: last_places(view, f, LINES, since_us=0)) for f in feeds]
    tail_ms = [_taken_ms(lambda f=f: tail(view, f, lines=LINES)) for f in feeds]
    whole = [_taken_ms(lambda: tail(LogView(DataFolder(path)), feeds[0], lines=LINES))]
    (last,) = tail(view, feeds[0], lines=1)
    found_ms = _taken_ms(lambda: find_item(view, last.id))
    stats_ms = _taken_ms(lambda: stats(view))
    workload = f"{items:,} items, {FEEDS:,} feeds"
    met = bool(np.quantile(places_ms, 0.99) <= 5)
    return [
        Row("tail, index", f"{workload}, last {LINES}", _quantiles(places_ms), "p99 ≤ 5 ms", met),
        Row("tail, with items", f"{workload}, last {LINES}", _quantiles(tail_ms)),
        Row("tail, with opening the log", f"{workload}, last {LINES}", f"{whole[0]:.0f} ms"),
        Row("why, item by id", workload, f"{found_ms:,.0f} ms"),
        Row("stats", f"{workload}, {SOURCES} sources", f"{stats_ms:,.0f} ms"),
    ]


def _taken_ms(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e3


def _quantiles(taken_ms: Sequence[float]) -> str:
    p50, p99 = np.quantile(taken_ms, [0.5, 0.99])
    return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"
