"""Messages of a server as objects: rows, and the region of the subscriptions that they are for.

A message has no address. Its region says which subscriptions it is for, by the bounds of their
ranges only, so that a network without knowledge of joins can route it ([Select-Joins §3.2]):

    a subscription is in the region if   its ranges on `own` contain `selected`
                                         and contain none of `excluded`
                                         and for one pair (x, y), its ranges [low, high] on the
                                         other table have low ≤ x and high ≥ y

    insertion of t         selected t, pairs: its descriptive skyline
    a row that t exposes   selected t, excluded: t's neighbours (a⁻, a⁺), pair: the row itself
    deletion of t          as the insertion; excluded: the tuple that replaces it

Sizes are counted as in the paper, where a number takes four bytes: the tuple ⟨join, values,
payload⟩ and the description of the region. The values of a row are counted once: `selected` repeats
them only in messages about rows that another tuple exposes.

Messages of a semijoin R^S of a larger join (§4) are about rows of R alone. Besides insertions and
deletions there is `EMPTY`: no selected row of S is left with a join value, so all rows of R with
that value leave the semijoin. A client has one semijoin per table, so messages of different
semijoins need no order between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np

from headgate.tables import message_buffer as columns
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.join_graph import SemijoinForm

NUMBER_BYTES = 4
"""The size of a number in the paper's figures, where values are integers below 100,000."""

Point = tuple[float, ...]
Key = tuple[str | int | float | bool, ...]
"""Values that identify a row, or that it joins by, in the form in which they compare."""

Joins = tuple[str | int | float | bool | None, ...]
"""A value for each join attribute of the table, None where the row lacks it."""


class MessageKind(IntEnum):
    INSERT = columns.INSERT
    DELETE = columns.DELETE


class JoinSide(IntEnum):
    """The two tables of a join, as it names them: R and S of the paper."""

    LEFT = 0
    RIGHT = 1

    @property
    def other(self) -> JoinSide:
        return JoinSide(1 - self)


@dataclass(frozen=True, slots=True)
class JoinRow:
    """A version of a row of a table. Its number is never used for another one."""

    number: int
    table: JoinSide
    join: Key
    values: Point
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class Region:
    """A part of the subscription space; bounds are (low, high) for each attribute of a table."""

    own: JoinSide
    selected: Point
    excluded: tuple[Point, ...]
    pairs: tuple[tuple[Point, Point], ...]

    def holds(self, low: tuple[Point, Point], high: tuple[Point, Point]) -> bool:
        """Whether the subscription with these bounds, by table, is in the region."""
        own_low, own_high = low[self.own], high[self.own]
        other_low, other_high = low[self.own.other], high[self.own.other]
        return (
            _within(own_low, self.selected, own_high)
            and not any(_within(own_low, each, own_high) for each in self.excluded)
            and any(_at_most(other_low, x) and _at_most(y, other_high) for x, y in self.pairs)
        )


def _within(low: Point, point: Point, high: Point) -> bool:
    return _at_most(low, point) and _at_most(point, high)


def _at_most(lower: Point, upper: Point) -> bool:
    return all(left <= right for left, right in zip(lower, upper, strict=True))


@dataclass(frozen=True, slots=True)
class JoinMessage:
    """`rows` are one row, or two that join. A deletion has one row, without its payload.

    A client that gets an insertion drops the row with the number `replaces`, if it has it.
    """

    kind: MessageKind
    rows: tuple[JoinRow, ...]
    region: Region
    replaces: int | None = None
    description_bytes: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SemijoinRow:
    """A version of a row. No other version of a row of its table has its number."""

    number: int
    table: str
    joins: Joins
    values: Point
    payload: bytes = b""


class SemijoinAction(IntEnum):
    INSERT = 0
    DELETE = 1
    EMPTY = 2


@dataclass(frozen=True, slots=True)
class SemijoinMessage:
    """`row` is of the base table, without payload if it is gone; `join` is the join value that has
    become empty. A client that gets an insertion drops the row with the number
    `replaces`."""

    form: SemijoinForm
    act: SemijoinAction
    region: Region
    row: SemijoinRow | None = None
    join: Key | None = None
    replaces: int | None = None
    size_bytes: int = 0


class RowSource(Protocol):
    """Where the rows of messages come from: a table of the server."""

    dimensions: int
    join_attributes: int
    payload_bytes: Longs

    def row(self, slot: int) -> JoinRow: ...


@dataclass(frozen=True, slots=True, eq=False)
class MessageBatch:
    """The messages of a batch of changes, in order, as arrays; see `message_buffer.py`.

    Iterating makes objects of them, and is possible until the server takes the next batch.
    `size_bytes` and `description_bytes` are computed from the arrays.
    """

    header: Longs
    numbers: Floats
    rows: tuple[RowSource, RowSource]

    def __len__(self) -> int:
        return len(self.header)

    def __iter__(self) -> Iterator[JoinMessage]:
        described, sizes = self.description_bytes.tolist(), self.size_bytes.tolist()
        for position, line in enumerate(self.header.tolist()):
            rows = [self.rows[line[columns.ROW_SIDE]].row(line[columns.SLOT])]
            if line[columns.PARTNER] >= 0:
                rows.append(self.rows[1 - line[columns.ROW_SIDE]].row(line[columns.PARTNER]))
            kind = MessageKind(line[columns.MESSAGE_KIND])
            if kind is MessageKind.DELETE:
                rows = [JoinRow(rows[0].number, rows[0].table, rows[0].join, rows[0].values)]
            replaces = line[columns.REPLACES] if line[columns.REPLACES] >= 0 else None
            yield JoinMessage(
                kind,
                tuple(rows),
                self.region(position),
                replaces,
                described[position],
                sizes[position],
            )

    def region(self, message: int) -> Region:
        """The region of one message."""
        line = self.header[message]
        own_side = JoinSide(int(line[columns.OWN_SIDE]))
        own_width, other_width = (
            self.rows[own_side].dimensions,
            self.rows[own_side.other].dimensions,
        )
        start, excluded, pairs = (
            int(line[column]) for column in (columns.START, columns.EXCLUDED, columns.PAIRS)
        )
        pairs_start = start + own_width * (1 + excluded)
        points = self.numbers[start:pairs_start].reshape(-1, own_width).tolist()
        corners = (
            self.numbers[pairs_start : pairs_start + 2 * other_width * pairs]
            .reshape(-1, 2, other_width)
            .tolist()
        )
        selected, *rest = map(tuple, points)
        return Region(
            own_side, selected, tuple(rest), tuple((tuple(x), tuple(y)) for x, y in corners)
        )

    @property
    def description_bytes(self) -> Longs:
        """For each message, the size of its description: everything but its rows."""
        header, widths = self.header, np.array([each.dimensions for each in self.rows])
        own_side, excluded = header[:, columns.OWN_SIDE], header[:, columns.EXCLUDED]
        own_width, other_width = widths[own_side], widths[1 - own_side]
        exposed = header[:, columns.ROW_SIDE] != own_side
        # Not counted: pairs that repeat a row of the message, and the pair that describes everyone.
        first_pair = header[:, columns.START] + own_width * (1 + excluded)
        is_implied = (
            exposed | (header[:, columns.PARTNER] >= 0) | np.isinf(self.numbers[first_pair])
        )
        pairs = np.where(is_implied, 0, header[:, columns.PAIRS])
        sizes: Longs = NUMBER_BYTES * (own_width * (exposed + excluded) + 2 * other_width * pairs)
        return sizes

    @property
    def size_bytes(self) -> Longs:
        """For each message, its rows and description; two joined rows share a join value."""
        header, sizes = self.header, self.description_bytes
        has_payload = header[:, columns.MESSAGE_KIND] == MessageKind.INSERT
        for side, source in enumerate(self.rows):
            is_row = header[:, columns.ROW_SIDE] == side
            is_partner = ~is_row & (header[:, columns.PARTNER] >= 0)
            sizes[is_row] += NUMBER_BYTES * (source.join_attributes + source.dimensions)
            sizes[is_partner] += NUMBER_BYTES * source.dimensions
            for chosen, slot in (
                (is_row & has_payload, columns.SLOT),
                (is_partner, columns.PARTNER),
            ):
                sizes[chosen] += source.payload_bytes[header[chosen, slot]]
        return sizes
