"""Posted events through Spark: restarts, replays, limits, several sources in one spool."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path

from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.pipeline.sources.streams import Collected, streaming, uncommit, wait_for

from headgate.acquire.source_list import ListedSource, write_source_list
from headgate.acquire.spool import Spool
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.sources.posted_source import PostedSource

SCHEMA = Schema((Attribute("n", Type.INT), Attribute("title", Type.TEXT)))


def options(folder: Path, **more: str) -> dict[str, str]:
    write_source_list(folder / "sources.json", SCHEMA, [ListedSource("A", "", "stream", "post")])
    return {"list": str(folder / "sources.json"), "folder": str(folder / "state"), **more}


def numbers(start: int, count: int) -> list[bytes]:
    return [json.dumps({"n": n, "title": "t"}).encode() for n in range(start, start + count)]


def test_events_arrive_once_over_restarts_and_replays(tmp_path: Path):
    spool = Spool(tmp_path / "state" / "spool")
    collected, checkpoint = Collected(), tmp_path / "checkpoint"
    given = options(tmp_path, rows_max="120")
    position = spool.append("A", numbers(0, 100))
    with streaming(PostedSource, given, checkpoint, collected):
        wait_for(lambda: len(collected.ids()) == 100)
        for start in range(100, 400, 50):
            spool.append("B", numbers(start, 50))
        wait_for(lambda: len(collected.ids()) == 400)
    uncommit(checkpoint)
    Spool(tmp_path / "state" / "spool").append("A", numbers(400, 10))
    with streaming(PostedSource, given, checkpoint, collected):
        wait_for(lambda: len(collected.ids()) == 410)
    assert all(before.equals(after) for before, after in collected.replayed)
    assert collected.replayed
    items = collected.items(SCHEMA)
    assert [each.attributes["n"] for each in items] == list(range(410))
    assert len({each.id for each in items}) == 410
    assert items[0].id == f"post:1:{position & 0xFFFFFFFF}:1"
    assert [each.source for each in items] == ["A"] * 100 + ["B"] * 300 + ["A"] * 10
    assert max(rows.num_rows for rows in collected.batches.values()) <= 120


def test_partitions_follow_the_bytes(tmp_path: Path):
    spool = Spool(tmp_path / "state" / "spool")
    line = json.dumps({"n": 1, "title": "x" * 1_000}).encode()
    source = PostedSource(options(tmp_path, parts="8"))
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    for _ in range(10):
        spool.append("A", [line] * 100)
    end = reader.latestOffset(start, ReadAllAvailable())
    parts = reader.partitions(start, end)
    assert len(parts) == 5, "1 MB"
    assert sum(batch.num_rows for part in parts for batch in reader.read(part)) == 1_000
    assert [(a.end, b.start) for a, b in pairwise(parts) if a.end != b.start] == []


def test_a_batch_starts_soon_after_a_post(tmp_path: Path):
    spool = Spool(tmp_path / "state" / "spool")
    source = PostedSource(options(tmp_path))
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    spool.append("A", numbers(0, 1))
    began = time.monotonic()
    assert reader.latestOffset(start, ReadAllAvailable()) != start, "seen at the first look"
    assert time.monotonic() - began < 1.0
