"""What window joins have found, in the store: the items again, with what was joined to them.

    store/joined.<schema>/day=…/12-0.parquet      @source @id @time  attributes … @feeds @arrived
                                                  @annotations: JSON (deliver/item_encoding.py)

`@feeds` are those that have the annotated item; @arrived is the moment of its lot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from headgate.deliver.item_encoding import json_of_item
from headgate.match.item_columns import FEEDS_FIELD, INNER_FIELD, batch_of_items, group_of
from headgate.model.schema import Schema
from headgate.store.item_files import JOINED, ItemsWriter, path_of
from headgate.windows.arrivals import Output

ANNOTATIONS = pa.field("@annotations", pa.string())


def write_joined(
    store: Path,
    number: int,
    arrived: datetime,
    outputs: Sequence[Output],
    *,
    schemas: Mapping[str, Schema],
    numbers: Mapping[str, int],
) -> None:
    """One file for each schema, replaced as a whole if it is there."""
    by_schema: dict[Schema, list[Output]] = {}
    for each in outputs:
        by_schema.setdefault(schemas[each.item.source], []).append(each)
    for schema, own in by_schema.items():
        batch = batch_of_items([each.item for each in own], schema)
        feeds = [[numbers[feed] for feed in each.feeds if feed in numbers] for each in own]
        annotations = [
            json.dumps(json_of_item(each.item).get("annotations", []), separators=(",", ":"))
            for each in own
        ]
        none: list[list[int]] = [[] for _ in own]
        batch = batch.append_column(FEEDS_FIELD, pa.array(feeds, FEEDS_FIELD.type))
        batch = batch.append_column(INNER_FIELD, pa.array(none, INNER_FIELD.type))
        batch = batch.append_column(ANNOTATIONS, pa.array(annotations, ANNOTATIONS.type))
        writer = ItemsWriter(path_of(store, f"{JOINED}{group_of(schema)}", arrived, number, "0"))
        writer.write(batch, arrived)
        writer.close()
