"""Subscriptions to a join of many tables as boxes of two: the first table, and all others.

    R(a | x)  S(a, b | y)  T(b | z)        left: x        right: 1.y  2.z

So files, trees and layers are the same as for two tables (tables/stored_boxes.py). An
attribute of the others is called by its table's place and its own name.
"""

from __future__ import annotations

import numpy as np

from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.compile_boxes import SelectedTable, SelectJoin
from headgate.tables.stored_boxes import Names
from headgate.tables.whole_join import WholeJoin

Column = tuple[int, str] | None


def as_two_tables(join: SelectJoin) -> SelectJoin:
    """The join with all tables but the first as one."""
    first, *others = join.sides
    ranges = {
        f"{place}.{name}": own
        for place, side in enumerate(others, 1)
        for name, own in side.ranges.items()
    }
    return SelectJoin(join.on, (first, SelectedTable("", ranges)))


def attributes_by_table(attributes: tuple[Names, Names], tables: int) -> tuple[Names, ...]:
    """By which attributes rows of each table are selected.

    >>> attributes_by_table((("x",), ("1.y", "1.z", "2.y")), 3)
    (('x',), ('y', 'z'), ('y',))
    """
    found: list[list[str]] = [[] for _ in range(tables)]
    for each in _named(attributes):
        if each is not None:
            found[each[0]].append(each[1])
    return tuple(map(tuple, found))


def points_of(server: WholeJoin, slots: Longs, attributes: tuple[Names, Names]) -> Floats:
    """The values of results in the order in which boxes have them; NaN where a row is missing, as
    long as they are being joined."""
    named = _named(attributes)
    by_table = attributes_by_table(attributes, len(server.dimensions))
    found = np.zeros((len(slots), len(named)))
    for at, each in enumerate(named):
        if each is not None:
            table, name = each
            own = slots[:, table]
            values = server.values(table, own)[:, by_table[table].index(name)]
            found[:, at] = np.where(own >= 0, values, np.nan)
    return found


def _named(attributes: tuple[Names, Names]) -> list[Column]:
    """For each column of boxes its table and attribute; None where a side has no attribute."""
    left, right = attributes
    parts = [each.split(".", 1) for each in right]
    first: list[Column] = [(0, name) for name in left]
    others: list[Column] = [(int(place), name) for place, name in parts]
    return (first or [None]) + (others or [None])
