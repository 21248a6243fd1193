"""Messages as Spark's connector gives them to a task, and what the stage makes of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from headgate.acquire.rejected import Rejected, read_rejected
from headgate.match.item_columns import items_from_arrow
from headgate.model.schema import Schema
from headgate.model.values import Value
from headgate.pipeline.sources.kafka_fields import SchemaFile
from headgate.pipeline.sources.kafka_rows import read_messages
from headgate.pipeline.sources.kafka_topics import TopicSource

SENT, TAKEN = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
Message = tuple[str, int, bytes | None, bytes | None]
"""Topic, partition, key, value."""


def batches(messages: list[Message], size: int) -> list[pa.RecordBatch]:
    columns = [
        pa.array([each[2] for each in messages], pa.binary()),
        pa.array([each[3] for each in messages], pa.binary()),
        pa.array([each[0] for each in messages], pa.string()),
        pa.array([each[1] for each in messages], pa.int32()),
        pa.array(range(len(messages)), pa.int64()),
        pa.array([SENT] * len(messages), pa.timestamp("us", "UTC")),
        pa.array([TAKEN] * len(messages), pa.timestamp("us", "UTC")),
    ]
    names = ["key", "value", "topic", "partition", "offset", "timestamp", "taken"]
    whole = pa.RecordBatch.from_arrays(columns, names)
    return [whole.slice(start, size) for start in range(0, len(messages), size)]


def read_values(
    values: list[bytes], file: SchemaFile, schema: Schema
) -> tuple[dict[int, dict[str, Value]], dict[int, Rejected]]:
    """The attributes of each value by offset, and those that were rejected."""
    source = TopicSource("S", "stream", "", "t", "AAAAAAAAxx", file)
    messages: list[Message] = [("t", 3, None, each) for each in values]
    with TemporaryDirectory() as folder:
        stage = read_messages([source], schema, Path(folder))
        items = [
            item for rows in stage(batches(messages, 7)) for item in items_from_arrow(rows, schema)
        ]
        rejected = list(read_rejected([Path(folder)]))
    assert len(items) + sum(each.count for each in rejected) == len(values), "nothing is lost"
    assert all(each.file == "t:3" for each in rejected)
    found = {int(each.id.rpartition(":")[2]): dict(each.attributes) for each in items}
    return found, {each.line: each for each in rejected if each.line is not None}
