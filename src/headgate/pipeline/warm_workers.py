"""Keeps Spark's Python workers alive and their plans open, so that no batch waits for a cold start.

Spark ends a worker that has had no task for a minute. The next batch then waits 1 to 2 s for a new
worker to load Python modules and to map the plans. So every half minute each worker gets a task
that opens the plans and matches an empty item. With dynamic allocation there are no such tasks:
they would keep executors alive that Spark wants to give back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.match.item_columns import ID, SOURCE, TIME, item_columns
from headgate.model.schema import Schema
from headgate.pipeline.match_stage import MatchConfig, freeze_garbage, match_batch
from headgate.pipeline.snapshot import open_snapshot
from headgate.store.data_folder import DataFolder

EVERY_S = 30.0
PLANS_MAX = 100


def warm(
    session: SparkSession, folder: DataFolder, snapshot: str, schemas: dict[str, Schema]
) -> None:
    """Run one small task on each worker. It has no effect on items."""
    if session.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    slots = session.sparkContext.defaultParallelism
    first = {name: schemas[name] for name in list(schemas)[:PLANS_MAX]}
    frame = session.range(0, slots, 1, slots)
    frame.mapInArrow(_touch_plans(folder, snapshot, first), "id long").collect()


def _touch_plans(
    folder: DataFolder, snapshot: str, schemas: dict[str, Schema]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plans = open_snapshot(folder, snapshot).plans
        for source, schema in schemas.items():
            if source in plans:
                list(match_batch(_empty_item(source, schema), MatchConfig(plans, every=True)))
        freeze_garbage()
        yield from batches

    return stage


def _empty_item(source: str, schema: Schema) -> pa.RecordBatch:
    """A batch of one item without attributes."""
    values = {SOURCE: source, ID: "", TIME: 0}
    fields = item_columns(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array([values.get(field.name)], field.type) for field in fields], schema=fields
    )
