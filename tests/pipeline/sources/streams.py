"""Streaming queries in tests: their rows collected by batch, and waiting with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.query import StreamingQuery
from tests.pipeline.spark_session import spark

from headgate.match.item_columns import items_from_arrow
from headgate.model.items import Item
from headgate.model.schema import Schema


def wait_for(what: Callable[[], bool], *, timeout_s: float = 300.0) -> None:
    until = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


class Collected:
    """The rows of each batch; a batch that is run again replaces what it gave before."""

    def __init__(self) -> None:
        self.batches: dict[int, pa.Table] = {}
        self.replayed: list[tuple[pa.Table, pa.Table]] = []

    def take(self, rows: DataFrame, batch: int) -> None:
        found = rows.toArrow()
        if batch in self.batches:
            self.replayed.append((self.batches[batch], found))
        self.batches[batch] = found

    def items(self, schema: Schema) -> list[Item]:
        return [
            item
            for _, rows in sorted(self.batches.items())
            for batch in rows.to_batches()
            for item in items_from_arrow(batch, schema)
        ]

    def ids(self) -> list[str]:
        return [
            each for _, rows in sorted(self.batches.items()) for each in rows["@id"].to_pylist()
        ]


def read_available(
    source: type[DataSource], options: dict[str, str], checkpoint: Path, collected: Collected
) -> None:
    """All that is there now, and no more."""
    session = spark()
    session.dataSource.register(source)
    rows = session.readStream.format(source.name()).options(**options).load()
    query = (
        rows.writeStream.foreachBatch(collected.take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(30)


@contextmanager
def streaming(
    source: type[DataSource], options: dict[str, str], checkpoint: Path, collected: Collected
) -> Iterator[StreamingQuery]:
    session = spark()
    session.dataSource.register(source)
    rows = session.readStream.format(source.name()).options(**options).load()
    query = (
        rows.writeStream.foreachBatch(collected.take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="0 seconds")
        .start()
    )
    try:
        yield query
        assert query.exception() is None
    finally:
        query.stop()


def uncommit(checkpoint: Path) -> int:
    """Forget that the last batch was done, so that it is run again; which one that is."""
    last = max(int(each.name) for each in (checkpoint / "commits").iterdir() if each.name.isdigit())
    for each in (checkpoint / "commits").iterdir():
        if each.name.strip(".").startswith(str(last)):
            each.unlink()
    return last
