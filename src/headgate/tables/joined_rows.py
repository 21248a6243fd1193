"""The rows of all tables that are joined in one place, by key and by join value.

    changes ──► take ──► lines: who is new, who is replaced, who goes
                         TableRows (2 or more)

Join values of all tables share their codes. Two tables are indexed by join value (`server.py`); for
more of them a join value is a tuple of all join attributes that the table has (`whole_join.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headgate.tables.box_tree_kernels import Longs
from headgate.tables.byte_codes import ByteCodes
from headgate.tables.changes import ChangeColumns, deletions
from headgate.tables.table import TableContent, TableRows
from headgate.tables.take_kernels import take


class JoinedRows:
    def __init__(
        self, dimensions: Sequence[int], join_attributes: Sequence[int], numbers: tuple[int, int]
    ) -> None:
        """For each table how many attributes rows are selected by, and joined by.

        `numbers` are those that versions of rows get: the first, and the step to the next.
        """
        self.dimensions, self.join_attributes = tuple(dimensions), tuple(join_attributes)
        self.next_number, self._step = numbers
        """The number of the next version of a row."""
        self._clear()

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    @property
    def join_values(self) -> int:
        """How many join values there are, or have been since the rows were last loaded."""
        return len(self.joins)

    def tidy(self) -> None:
        """Load the rows anew if most of what is kept is of rows that are gone; before a batch."""
        if any(table.is_wasteful for table in self.tables):
            self.load(self.content(), next_number=self.next_number)

    def take(self, changes: ChangeColumns) -> Longs:
        """What changes mean for rows, which are there from now on, as lines for kernels.

        If one of them is refused, none is taken.
        """
        changes = changes.checked(self.dimensions)
        for table in self.tables:
            table.begin_batch(changes)
        self.joins.reserve(changes.joins)
        lines = np.empty((2 * len(changes), 5), np.int64)
        keys = tuple(table.keys.arrays for table in self.tables)
        slots = tuple(table.slots for table in self.tables)
        given, joins = changes.arrays, self.joins.arrays
        used, number = take(given, slots, keys, joins, self.next_number, self._step, lines)
        self.next_number = int(number)
        for table in self.tables:
            table.reserve(joins=self.join_values, places=0)
        return lines[:used]

    def expired(self, now_s: float) -> ChangeColumns:
        """The deletions of rows that are kept until now or less long."""
        return deletions([table.expired(now_s) for table in self.tables], self.dimensions)

    def content(self) -> tuple[TableContent, ...]:
        """All rows of all tables."""
        return tuple(table.content() for table in self.tables)

    def load(self, content: Sequence[TableContent], *, next_number: int) -> None:
        """Have these rows and no others."""
        self._clear()
        for table, own in zip(self.tables, content, strict=True):
            table.load(own)
        for table in self.tables:
            table.reserve(joins=self.join_values, places=0)
        self.next_number = next_number

    def _clear(self) -> None:
        """Have no rows."""
        self.joins = ByteCodes()
        self.tables = tuple(
            TableRows(side, dimensions=width, join_attributes=count, joins=self.joins)
            for side, (width, count) in enumerate(
                zip(self.dimensions, self.join_attributes, strict=True)
            )
        )
