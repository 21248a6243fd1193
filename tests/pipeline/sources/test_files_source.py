"""Files through Spark: JSON, CSV, tables and documents; restarts, replays, files that come late."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.pipeline.sources.streams import Collected, read_available, streaming, uncommit, wait_for

from headgate.acquire.file_log import file_problems
from headgate.acquire.rejected import read_rejected
from headgate.acquire.source_list import ListedSource, write_source_list
from headgate.model.schema import DOCUMENT_SCHEMA, Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.sources.files_source import FilesSource

SCHEMA = Schema((Attribute("symbol", Type.TEXT, key=True), Attribute("price", Type.INT)))
JSON = ListedSource("Prices", "prices/*.json", "stream", "json")
CSV = ListedSource("Cells", "cells/*.csv", "stream", "csv")
TABLE = ListedSource("Stocks", "stocks/*.json", "table", "json")


def options(folder: Path, **more: str) -> dict[str, str]:
    given = {
        "list": str(folder / "sources.json"),
        "folder": str(folder / "state"),
        "base": str(folder / "base"),
        "settle_s": "0",
        "scan_s": "0.02",
    }
    return given | more


def publish(folder: Path, path: str, text: str) -> None:
    """Written elsewhere and renamed into place."""
    where = folder / "base" / path
    where.parent.mkdir(parents=True, exist_ok=True)
    fresh = folder / "fresh"
    fresh.write_text(text)
    fresh.replace(where)


def lines(start: int, count: int) -> str:
    found = [{"symbol": f"s{n}", "price": n} for n in range(start, start + count)]
    return "".join(json.dumps(each) + "\n" for each in found)


def test_files_arrive_once_over_restarts_and_replays(tmp_path: Path):
    sources = [JSON, CSV, ListedSource("Bad", "../*.json", "stream", "json")]
    write_source_list(tmp_path / "sources.json", SCHEMA, sources)
    publish(tmp_path, "prices/1.json", lines(0, 1_000) + "wrong\n")
    collected, checkpoint = Collected(), tmp_path / "checkpoint"
    given = options(tmp_path, rows_max="300")

    with streaming(FilesSource, given, checkpoint, collected):
        wait_for(lambda: len(collected.ids()) == 1_000)
        publish(tmp_path, "cells/1.csv", "price,symbol\n7,a\n8,b\n")
        write_source_list(tmp_path / "sources.json", SCHEMA, [*sources, TABLE])
        publish(tmp_path, "stocks/1.json", '[{"symbol": "A", "price": 1}, {"price": 2}]')
        wait_for(lambda: len(collected.ids()) == 1_003)
        problems = file_problems(tmp_path / "state")

    uncommit(checkpoint)
    with (tmp_path / "base/prices/1.json").open("a") as file:
        file.write(lines(1_000, 10))
    with streaming(FilesSource, given, checkpoint, collected):
        wait_for(lambda: len(collected.ids()) == 1_013)
    assert "base folder" in problems["Bad"]
    assert collected.replayed
    assert all(before.equals(after) for before, after in collected.replayed)
    found = {each.id: each for each in collected.items(SCHEMA)}
    assert len(found) == 1_013
    assert found["prices/1.json:1011"].attributes == {"symbol": "s1009", "price": 1_009}
    assert found["A@stocks/1.json:1"].source == "Stocks"
    assert found["cells/1.csv:3"].attributes == {"symbol": "b", "price": 8}
    rejected = sorted(
        (each.source, each.line, each.text) for each in read_rejected([tmp_path / "state"])
    )
    assert rejected == [("Prices", 1_001, "wrong"), ("Stocks", 2, "")]


def test_documents_arrive(tmp_path: Path):
    listed = ListedSource("News", "news/**/*.xml", "documents", "xml")
    write_source_list(tmp_path / "sources.json", DOCUMENT_SCHEMA, [listed])
    publish(tmp_path, "news/1.xml", "<item><topic>ACME</topic></item>")
    publish(tmp_path, "news/2.xml", "<item>")
    collected = Collected()
    with streaming(FilesSource, options(tmp_path), tmp_path / "checkpoint", collected):
        wait_for(lambda: len(collected.ids()) == 1)
        publish(tmp_path, "news/deep/er/3.xml", "<item/>")
        wait_for(lambda: len(collected.ids()) == 2)
    found = [(each.id, each.attributes["document"]) for each in collected.items(DOCUMENT_SCHEMA)]
    assert found == [
        ("news/1.xml", "<item><topic>ACME</topic></item>"),
        ("news/deep/er/3.xml", "<item/>"),
    ]
    (rejected,) = read_rejected([tmp_path / "state"])
    assert rejected.file == "news/2.xml"


def test_what_is_there_now_can_be_read_to_its_end(tmp_path: Path):
    write_source_list(tmp_path / "sources.json", SCHEMA, [JSON])
    publish(tmp_path, "prices/1.json", lines(0, 50))
    publish(tmp_path, "prices/2.json", '{"symbol": "a"')
    collected, checkpoint = Collected(), tmp_path / "checkpoint"
    # However long a file would have to settle: what is there counts as complete.
    given = options(tmp_path, settle_s="3600", rows_max="20")
    read_available(FilesSource, given, checkpoint, collected)
    assert len(collected.ids()) == 50
    publish(tmp_path, "prices/3.json", lines(50, 50))
    read_available(FilesSource, given, checkpoint, collected)
    assert len(collected.ids()) == len(set(collected.ids())) == 100
    assert [each.file for each in read_rejected([tmp_path / "state"])] == ["prices/2.json"]


def test_a_batch_has_as_many_partitions_as_its_bytes_deserve(tmp_path: Path):
    write_source_list(tmp_path / "sources.json", SCHEMA, [CSV])
    record = "symbol," + "x" * 90 + "\n"
    for number in range(4):
        publish(tmp_path, f"cells/{number}.csv", "symbol,other\n" + record * 6_000)
    source = FilesSource(options(tmp_path, parts="8"))
    reader = source.streamReader(source.schema())
    try:
        start = reader.initialOffset()
        wait_for(lambda: reader.latestOffset(start, ReadAllAvailable())["number"] == 4)
        assert len(reader.partitions(start, {"number": 4})) == 3, "2.4 MB"
        assert len(reader.partitions(start, {"number": 1})) == 1
    finally:
        reader.stop()


def test_a_batch_is_limited_by_bytes(tmp_path: Path):
    write_source_list(tmp_path / "sources.json", SCHEMA, [JSON])
    for number in range(4):
        publish(tmp_path, f"prices/{number}.json", lines(0, 100))
    collected = Collected()
    given = options(tmp_path, bytes_max="5000")
    read_available(FilesSource, given, tmp_path / "checkpoint", collected)
    assert len(collected.ids()) == 400
    assert len([each for each in collected.batches.values() if each.num_rows]) == 4
