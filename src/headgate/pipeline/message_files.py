"""Messages of table joins as Parquet: what clients and relays read.

    messages/<group>/day=…/17-0.parquet      lot 17, bucket 0
    change  kind  table  number  replaces  join  payload │ own  excluded  pairs  numbers

A message is as in join/select/messages.py: a row, and the region of those whom it is for, as
numbers: the tuple that must be selected, those that must not be, and pairs. A deletion has no
payload. The file says in its metadata which group it is of, and by which attributes ranges select.

Law: `read_messages` of a file are the messages that were written, in their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.join.select import change_kernels as columns
from headgate.join.select.box_tree_kernels import Longs
from headgate.join.select.changes import Mask, selection_values
from headgate.join.select.key_bytes import key_of
from headgate.join.select.messages import Kind, Message, Messages, Region, Row, Table
from headgate.join.select.row_format import RowFormat
from headgate.join.select.server import SelectJoinServer
from headgate.join.select.stored_boxes import dimensions_of
from headgate.match.texts import Texts, texts_of
from headgate.model.errors import StateError
from headgate.pipeline.bucket import Attributes
from headgate.pipeline.join_groups import JoinGroup

METADATA = b"headgate"


def messages_table(
    messages: Messages, server: SelectJoinServer, group: JoinGroup, attributes: Attributes
) -> pa.Table:
    """The messages of a batch; `change` says which of them are of one change."""
    header, numbers = messages.header, messages.numbers
    side, slot = header[:, columns.ROW_SIDE], header[:, columns.SLOT]
    dies = header[:, columns.MESSAGE_KIND] == Kind.DELETE
    joins, payloads = _rows(server, side, slot, without=dies)
    starts = np.append(header[:, columns.START], len(numbers)).astype(np.int32)
    replaces = header[:, columns.REPLACES]
    table = pa.table(
        {
            "change": header[:, columns.OF_CHANGE],
            "kind": header[:, columns.MESSAGE_KIND].astype(np.int8),
            "table": side.astype(np.int8),
            "number": header[:, columns.NUMBER],
            "replaces": pa.array(replaces, mask=replaces < 0),
            "join": joins,
            "payload": payloads,
            "own": header[:, columns.OWN_SIDE].astype(np.int8),
            "excluded": header[:, columns.EXCLUDED].astype(np.int32),
            "pairs": header[:, columns.PAIRS].astype(np.int32),
            "numbers": pa.ListArray.from_arrays(pa.array(starts), numbers),
        }
    )
    told = {"group": group.to_json(), "attributes": attributes}
    return table.replace_schema_metadata({METADATA: json.dumps(told).encode()})


def read_messages(path: Path) -> Iterator[Message]:
    """The messages of a file, one by one: for clients, which get few of them."""
    table = pq.read_table(path, partitioning=None)
    try:
        told = json.loads(table.schema.metadata[METADATA])
        left, right = map(tuple, told["attributes"])
        group = JoinGroup.from_json(told["group"])
    except (KeyError, ValueError, TypeError) as error:
        raise StateError(f"'{path}' has no messages of a join: {error}") from None
    attributes: Attributes = left, right
    rows: list[dict[str, Any]] = table.to_pylist()
    for row in rows:
        region = _region(row, dimensions_of(attributes))
        side = Table(row["table"])
        values = region.selected if side is region.own else region.pairs[0][0]
        if row["payload"] is not None:
            values = _values(row["payload"], group.formats[side], attributes[side])
        own = Row(row["number"], side, key_of(row["join"]), values, row["payload"] or b"")
        yield Message(Kind(row["kind"]), (own,), region, row["replaces"])


def _values(payload: bytes, row_format: RowFormat, names: tuple[str, ...]) -> tuple[float, ...]:
    found = selection_values(row_format.numbers(texts_of([payload]), names))
    return tuple(found[0].tolist())


def _region(row: dict[str, Any], dimensions: tuple[int, int]) -> Region:
    own = Table(row["own"])
    width, other = dimensions[own], dimensions[own.other]
    points = np.array(row["numbers"])
    behind = width * (1 + row["excluded"])
    selected, *excluded = map(tuple, points[:behind].reshape(-1, width).tolist())
    corners = points[behind:].reshape(-1, 2, other).tolist()
    pairs = tuple((tuple(x), tuple(y)) for x, y in corners)
    return Region(own, selected, tuple(excluded), pairs)


def _rows(
    server: SelectJoinServer, side: Longs, slot: Longs, *, without: Mask
) -> tuple[pa.Array, pa.Array]:
    """Join values and payloads of rows of both tables; no payloads of some."""
    places = np.empty(len(side), np.int64)
    joins: list[pa.Array] = []
    payloads: list[pa.Array] = []
    before = 0
    for table in Table:
        own = np.flatnonzero(side == table)
        rows = server.tables[table]
        joins.append(_binary(rows.joins_of(slot[own])))
        payloads.append(_binary(rows.payloads_of(slot[own])))
        places[own] = np.arange(before, before + own.size)
        before += own.size
    ordered, some = pa.array(places), pa.array(places, mask=without)
    return pa.concat_arrays(joins).take(ordered), pa.concat_arrays(payloads).take(some)


def _binary(texts: Texts) -> pa.Array:
    offsets, data = pa.py_buffer(texts.start), pa.py_buffer(np.ascontiguousarray(texts.data))
    return pa.Array.from_buffers(pa.large_binary(), len(texts), [None, offsets, data])
