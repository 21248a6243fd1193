"""Messages of table joins as Parquet, for clients and relays.

    messages/<group>/day=…/17-0.parquet      change batch 17, bucket 0
    change  kind  table  number  replaces  join  payload │ own  excluded  pairs  numbers

A message is a row and its region, as in messages.py. The region is a list of numbers: the tuple
that must be selected, those that must not be, and pairs. A deletion has no payload. The file's
metadata has the group and the attributes that ranges are on.

In the messages of a semijoin of a larger join, a deletion of a row of the filtering table says that
no row is left there with this join value: `semijoins` reads such files.

Invariant: the messages of a `MessageFile` are those that were written, in their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.match.texts import Texts, texts_of
from headgate.model.errors import StateError
from headgate.tables import message_buffer as columns
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.bucket import Attributes
from headgate.tables.changes import Mask, selection_values
from headgate.tables.join_groups import JoinGroup
from headgate.tables.key_bytes import key_of
from headgate.tables.messages import (
    JoinMessage,
    JoinRow,
    Joins,
    JoinSide,
    MessageBatch,
    MessageKind,
    Point,
    Region,
    SemijoinAction,
    SemijoinMessage,
    SemijoinRow,
)
from headgate.tables.row_format import RowFormat
from headgate.tables.server import SelectJoinServer
from headgate.tables.stored_boxes import Names, dimensions_of

METADATA = b"headgate"


def messages_table(
    messages: MessageBatch, server: SelectJoinServer, group: JoinGroup, attributes: Attributes
) -> pa.Table:
    """The messages of a batch; messages of one change have the same `change`."""
    header, numbers = messages.header, messages.numbers
    side, slot = header[:, columns.ROW_SIDE], header[:, columns.SLOT]
    is_deletion = header[:, columns.MESSAGE_KIND] == MessageKind.DELETE
    joins, payloads = _rows(server, side, slot, without=is_deletion)
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
    metadata = {"group": group.to_json(), "attributes": attributes}
    return table.replace_schema_metadata({METADATA: json.dumps(metadata).encode()})


@dataclass(frozen=True, slots=True, eq=False)
class MessageFile:
    """The messages of a file as objects, for clients, which get few of them."""

    group: JoinGroup
    attributes: tuple[Names, Names]
    _rows: Sequence[dict[str, Any]]

    @classmethod
    def open(cls, path: Path) -> MessageFile:
        table = pq.read_table(path, partitioning=None)
        try:
            metadata = json.loads(table.schema.metadata[METADATA])
            left, right = map(tuple, metadata["attributes"])
            group = JoinGroup.from_json(metadata["group"])
        except (KeyError, ValueError, TypeError) as error:
            raise StateError(f"'{path}' has no messages of a join: {error}") from None
        return cls(group, (left, right), table.to_pylist())

    def messages(self) -> Iterator[JoinMessage]:
        """The messages of a join of two tables."""
        for row in self._rows:
            region, side = self._region(row), JoinSide(row["table"])
            values, payload = self._values(row, region), row["payload"] or b""
            sent = JoinRow(row["number"], side, key_of(row["join"]), values, payload)
            yield JoinMessage(MessageKind(row["kind"]), (sent,), region, row["replaces"])

    def semijoins(self, on: Sequence[str]) -> Iterator[SemijoinMessage]:
        """The messages of a semijoin; `on` are the join attributes that its base table has in the
        whole join."""
        form = self.group.form
        assert form is not None, "the group is a semijoin"
        row_format = self.group.formats[self.group.base or 0]
        for row in self._rows:
            region = self._region(row)
            if row["table"] != self.group.base:
                yield SemijoinMessage(form, SemijoinAction.EMPTY, region, join=key_of(row["join"]))
                continue
            payload = row["payload"] or b""
            joins = _joins(payload, row_format, on) if payload else ()
            sent = SemijoinRow(row["number"], form.base, joins, self._values(row, region), payload)
            yield SemijoinMessage(
                form, SemijoinAction(row["kind"]), region, row=sent, replaces=row["replaces"]
            )

    def _region(self, row: dict[str, Any]) -> Region:
        dimensions, own_side = dimensions_of(self.attributes), JoinSide(row["own"])
        own_width, other_width = dimensions[own_side], dimensions[own_side.other]
        points = np.array(row["numbers"])
        pairs_start = own_width * (1 + row["excluded"])
        selected, *excluded = map(tuple, points[:pairs_start].reshape(-1, own_width).tolist())
        corners = points[pairs_start:].reshape(-1, 2, other_width).tolist()
        pairs = tuple((tuple(x), tuple(y)) for x, y in corners)
        return Region(own_side, selected, tuple(excluded), pairs)

    def _values(self, row: dict[str, Any], region: Region) -> Point:
        side = row["table"]
        if row["payload"] is None:
            return region.selected if side == region.own else region.pairs[0][0]
        payload, names = texts_of([row["payload"]]), self.attributes[side]
        values = selection_values(self.group.formats[side].numbers(payload, names))
        return tuple(values[0].tolist())


def _joins(payload: bytes, row_format: RowFormat, on: Sequence[str]) -> Joins:
    """The join attributes of a row, None where it lacks one."""
    columns_ = pa.RecordBatch.from_pydict(row_format.columns(texts_of([payload])))
    columns = [RowFormat(row_format.schema, (name,)).joins(columns_) for name in on]
    return tuple(None if gone[0] else key_of(texts.encoded(0))[0] for texts, gone in columns)


def _rows(
    server: SelectJoinServer, side: Longs, slot: Longs, *, without: Mask
) -> tuple[pa.Array, pa.Array]:
    """Join values and payloads of rows of both tables; `without` marks rows whose payload is
    omitted."""
    places = np.empty(len(side), np.int64)
    joins: list[pa.Array] = []
    payloads: list[pa.Array] = []
    before = 0
    for table in JoinSide:
        chosen = np.flatnonzero(side == table)
        rows = server.tables[table]
        joins.append(_binary(rows.joins_of(slot[chosen])))
        payloads.append(_binary(rows.payloads_of(slot[chosen])))
        places[chosen] = np.arange(before, before + chosen.size)
        before += chosen.size
    order, with_payload = pa.array(places), pa.array(places, mask=without)
    return pa.concat_arrays(joins).take(order), pa.concat_arrays(payloads).take(with_payload)


def _binary(texts: Texts) -> pa.Array:
    offsets, data = pa.py_buffer(texts.start), pa.py_buffer(np.ascontiguousarray(texts.data))
    return pa.Array.from_buffers(pa.large_binary(), len(texts), [None, offsets, data])
