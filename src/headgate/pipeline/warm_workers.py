"""Keeping Spark's Python workers warm, so that the first batch after a pause is like any other.

A worker that has had nothing to do for a minute ends, and the next batch waits for a new one: for
Python, NumPy and Numba, and for the plans to be mapped, 1 to 2 s in all. So every half minute each
worker is given a task that touches what a batch would: it opens the plans and matches an item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.match.item_columns import ID, SOURCE, TIME, item_columns
from headgate.model.schema import Schema
from headgate.pipeline.match_stage import MatchConfig, freeze_garbage, match_batch
from headgate.pipeline.snapshot import open_snapshot

EVERY_S = 30.0
PLANS_MAX = 100


def warm(session: SparkSession, snapshot: str, schemas: dict[str, Schema]) -> None:
    """One small task for each worker. Nothing happens to items."""
    slots = session.sparkContext.defaultParallelism
    some = {name: schemas[name] for name in list(schemas)[:PLANS_MAX]}
    frame = session.range(0, slots, 1, slots)
    frame.mapInArrow(_touch(snapshot, some), "id long").collect()


def _touch(
    snapshot: str, schemas: dict[str, Schema]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        opened = open_snapshot(snapshot)
        for source, schema in schemas.items():
            if source in opened.plans:
                list(
                    match_batch(_empty_item(source, schema), MatchConfig(opened.plans, every=True))
                )
        freeze_garbage()
        yield from batches

    return stage


def _empty_item(source: str, schema: Schema) -> pa.RecordBatch:
    own = {SOURCE: source, ID: "", TIME: 0}
    fields = item_columns(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array([own.get(each.name)], each.type) for each in fields], schema=fields
    )
