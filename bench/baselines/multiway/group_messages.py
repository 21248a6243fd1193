"""What the server of multi-way joins says: messages of one group each, with regions as always (§4).

    insert     a row of the base table                     to those in the region
    delete     a row of the base table is gone             to those who have it
    empty      no row of the filtering table is left       to those for whom that is so: they drop
               with this join value                        all rows of the base table that have it

A message belongs to a group, R^S. It concerns a subscription if R^S is the subscription's semijoin
for R, and the subscription is in the region. No two semijoins of a subscription have the same base
table, so what is held of a table depends on the messages of one group alone, and the order between
groups does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.baselines.multiway.rows import RowStore
from headgate.tables import message_buffer as columns
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.join_graph import SemijoinForm
from headgate.tables.messages import (
    NUMBER_BYTES,
    JoinRow,
    JoinSide,
    Key,
    MessageBatch,
    SemijoinAction,
    SemijoinMessage,
    SemijoinRow,
)


@dataclass(slots=True)
class EdgeRows:
    """A table's rows as an edge sees them: with the join value of that edge."""

    store: RowStore
    side: JoinSide
    positions: tuple[int, ...]
    dimensions: int
    join_attributes: int
    payload_bytes: Longs

    @classmethod
    def of(cls, store: RowStore, side: JoinSide, positions: tuple[int, ...]) -> EdgeRows:
        """The rows as they are until the next batch."""
        shape = store.dimensions, store.join_attributes
        return cls(store, side, positions, *shape, store.payload_bytes)

    def key(self, slot: int) -> Key | None:
        """The join value of a row; None if it lacks one of the attributes."""
        found = tuple(self.store.joins[slot][at] for at in self.positions)
        whole = tuple(each for each in found if each is not None)
        return whole if len(whole) == len(found) else None

    def row(self, slot: int) -> JoinRow:
        row, key = self.store.row(slot), self.key(slot)
        assert key is not None, "messages are about rows that join"
        return JoinRow(row.number, self.side, key, row.values, row.payload)


@dataclass(frozen=True, slots=True, eq=False)
class GroupMessages:
    """The messages of one group and one batch, in order, as arrays.

    Iterating makes objects of them, until the server takes the next batch.
    """

    form: SemijoinForm
    base: JoinSide
    messages: MessageBatch
    rows: tuple[EdgeRows, EdgeRows]

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[SemijoinMessage]:
        sizes = self.size_bytes.tolist()
        for at, line in enumerate(self.messages.header.tolist()):
            region, size = self.messages.region(at), sizes[at]
            side, slot = line[columns.ROW_SIDE], line[columns.SLOT]
            rows = self.rows[side]
            if side != self.base:
                join = rows.key(slot)
                yield SemijoinMessage(
                    self.form, SemijoinAction.EMPTY, region, join=join, size_bytes=size
                )
                continue
            row, act = rows.store.row(slot), SemijoinAction(line[columns.MESSAGE_KIND])
            if act is SemijoinAction.DELETE:
                row = SemijoinRow(row.number, row.table, row.joins, row.values)
            replaces = line[columns.REPLACES] if line[columns.REPLACES] >= 0 else None
            yield SemijoinMessage(
                self.form, act, region, row=row, replaces=replaces, size_bytes=size
            )

    @property
    def size_bytes(self) -> Longs:
        """For each message, the row and the description; of an empty join value, that value."""
        found = self.messages.size_bytes
        rows = self.rows[self.base.other]
        empty = self.messages.header[:, columns.ROW_SIDE] != self.base
        found[empty] -= NUMBER_BYTES * (rows.join_attributes - len(rows.positions))
        return found
