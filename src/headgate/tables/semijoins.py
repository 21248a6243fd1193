"""Messages of the groups R^S and S^R of one edge: the loop around `semijoin_kernels.process_edge`,
which ends wherever there might not be room for what a change writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from headgate.tables import change_kernels as columns
from headgate.tables.audience import Audience
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.changes import Mask
from headgate.tables.desk import Desk
from headgate.tables.schemes import SCHEMES
from headgate.tables.semijoin_kernels import process_edge
from headgate.tables.table_kernels import Index


class IndexedRows(Protocol):
    """Rows of a table by join value."""

    @property
    def index(self) -> Index: ...
    def reserve(self, *, joins: int, places: int) -> None: ...


def tell_edge(
    lines: Longs,
    tables: Sequence[IndexedRows],
    audiences: Sequence[Audience],
    is_used: Mask,
    desks: Sequence[Desk],
) -> None:
    """Apply changes of two tables, and write the messages of each base that is used to its desk."""
    needs, at = np.zeros(5, np.int64), 0
    groups = tuple((each.trees, each.questions, each.anchors) for each in audiences)
    scheme = SCHEMES[audiences[0].scheme].code
    for desk in desks:
        desk.used[:] = 0
    while True:
        indexes = tuple(each.index for each in tables)
        outs = tuple(columns.Out(each.header, each.numbers, each.used) for each in desks)
        marks = tuple(each.wanted for each in desks)
        at = process_edge(lines, at, indexes, groups, is_used, scheme, outs, marks, needs)
        if at == len(lines):
            return
        desks[needs[4]].make_room(needs)
        tables[lines[at, columns.SIDE]].reserve(joins=0, places=int(needs[2]))
