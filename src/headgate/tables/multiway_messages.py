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
from enum import IntEnum

from headgate.tables import change_kernels as columns
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.join_graph import Form
from headgate.tables.messages import NUMBER_BYTES, Key, Messages, Region, Row, Table
from headgate.tables.multiway_rows import RowStore, TableRow


class Act(IntEnum):
    INSERT = 0
    DELETE = 1
    EMPTY = 2


@dataclass(frozen=True, slots=True)
class SemijoinMessage:
    """`row` is of the base table, without payload if it is gone; `join` is the join value that has
    become empty. Whoever gets an insertion drops the row with the number `replaces`."""

    form: Form
    act: Act
    region: Region
    row: TableRow | None = None
    join: Key | None = None
    replaces: int | None = None
    size_bytes: int = 0


@dataclass(slots=True)
class EdgeRows:
    """A table's rows as an edge sees them: with the join value of that edge."""

    store: RowStore
    side: Table
    positions: tuple[int, ...]
    dimensions: int
    join_attributes: int
    payload_bytes: Longs

    @classmethod
    def of(cls, store: RowStore, side: Table, positions: tuple[int, ...]) -> EdgeRows:
        """The rows as they are until the next batch."""
        shape = store.dimensions, store.join_attributes
        return cls(store, side, positions, *shape, store.payload_bytes)

    def key(self, slot: int) -> Key | None:
        """The join value of a row; None if it lacks one of the attributes."""
        found = tuple(self.store.joins[slot][at] for at in self.positions)
        whole = tuple(each for each in found if each is not None)
        return whole if len(whole) == len(found) else None

    def row(self, slot: int) -> Row:
        row, key = self.store.row(slot), self.key(slot)
        assert key is not None, "messages are about rows that join"
        return Row(row.number, self.side, key, row.values, row.payload)


@dataclass(frozen=True, slots=True, eq=False)
class GroupMessages:
    """The messages of one group and one batch, in order, as arrays.

    Iterating makes objects of them, until the server takes the next batch.
    """

    form: Form
    base: Table
    messages: Messages
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
                yield SemijoinMessage(self.form, Act.EMPTY, region, join=join, size_bytes=size)
                continue
            row, act = rows.store.row(slot), Act(line[columns.MESSAGE_KIND])
            if act is Act.DELETE:
                row = TableRow(row.number, row.table, row.joins, row.values)
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
