"""Tables of tuples that the kernels of a level program share, and lookups in them.

A table has rows of node numbers. All tables of a document lie one after the other in `cells`:
`start` says where each begins, `rows` how many rows it has. A negative number of rows says why a
table has none:

    TOO_MANY    the table itself was too large
    UNKNOWN     it reads one that was

An index of a column has a sorted key for each row. It is built when it is first needed and kept
until the document is finished.

    key = number << 32 | row      rows with the same number are a range, and so are rows with any
                                  number below a node, from its own + 1 to its `last`
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.views.pattern_arrays import Ints, Longs

TOO_MANY, UNKNOWN = -1, -2

LINE = np.int64(0xFFFFFFFF)
SHIFT = np.int64(32)

NO_VALUE = -(1 << 60)
"""The position of a value that is not comparable: a text that is not a number, or no value."""

KIND, IS_NOT, LOW, HIGH = range(4)
FEW = 32


ROWS_LIMIT, CELLS_LIMIT, READ_LIMIT, READ_LEFT = range(4)
"""Places in `TupleTables.limits`: rows of one table, cells of all, rows that one join may read, and
rows that all further joins of the document may read, which the kernels lower."""


class TupleTables(NamedTuple):
    """All tables of one document: `width` and `index_slot` are given, the rest is filled in."""

    width: Longs  # [table]: columns
    rows: Longs  # [table]: rows, or TOO_MANY or UNKNOWN
    start: Longs  # [table]: where its cells begin
    index_slot: Longs  # [table + 1]: its indexes, one for each column and last the one by parents
    index_start: Longs  # [slot]: where its keys begin; -1 if it is not built yet
    limits: Longs  # [4]


class TupleStorage(NamedTuple):
    """The cells of tables and the keys of indexes. Kernels return a new one if they grow it."""

    cells: Ints  # node numbers, row by row, table by table
    cells_used: int
    keys: Longs  # number << 32 | row, sorted within each index
    keys_used: int


@nb.njit(nogil=True, cache=True)
def grown(numbers, used, extra):  # type: ignore[no-untyped-def]
    """The array, or a larger copy if it has no room for `extra` elements after the first `used`."""
    if used + extra <= numbers.shape[0]:
        return numbers
    larger = np.empty(max(2 * numbers.shape[0], used + extra), numbers.dtype)
    larger[:used] = numbers[:used]
    return larger


@nb.njit(nogil=True, cache=True)
def fill_by_column(cells, begin, rows, width, column, keys, first):  # type: ignore[no-untyped-def]
    """Write the index of a column to keys, from keys[first] on."""
    for line in range(rows):
        number = np.int64(cells[begin + line * width + column])
        keys[first + line] = (number << SHIFT) | np.int64(line)
    _sort(keys, first, first + rows)


@nb.njit(nogil=True, cache=True)
def fill_by_parent(cells, begin, rows, width, parent, keys, first):  # type: ignore[no-untyped-def]
    """Write the index by the parent of the topmost node to keys, from keys[first] on."""
    for line in range(rows):
        above = np.int64(parent[cells[begin + line * width]])
        keys[first + line] = (above << SHIFT) | np.int64(line)
    _sort(keys, first, first + rows)


@nb.njit(nogil=True, cache=True)
def _sort(keys, first, end):  # type: ignore[no-untyped-def]
    """Sort keys[first:end]; few keys by insertion, as most tables are small and nearly sorted."""
    if end - first > FEW:
        keys[first:end].sort()
        return
    for position in range(first + 1, end):
        key, place = keys[position], position
        while place > first and keys[place - 1] > key:
            keys[place] = keys[place - 1]
            place -= 1
        keys[place] = key


@nb.njit(nogil=True, cache=True, inline="always")
def first_from(keys, low, high, number):  # type: ignore[no-untyped-def]
    """The first place in keys[low : high] that has this number or a larger one."""
    key = np.int64(number) << SHIFT
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@nb.njit(nogil=True, cache=True, inline="always")
def first_line_from(cells, begin, rows, width, number):  # type: ignore[no-untyped-def]
    """The first line of a table, sorted by its first column, that has this number or a larger."""
    low, high = 0, rows
    while low < high:
        middle = (low + high) >> 1
        if cells[begin + middle * width] < number:
            low = middle + 1
        else:
            high = middle
    return low


@nb.njit(nogil=True, cache=True, inline="always")
def value_holds(predicates, predicate, text_at, number_at):  # type: ignore[no-untyped-def]
    """Whether a node satisfies a predicate; text_at and number_at are positions of its value."""
    place = text_at if predicates[predicate, KIND] else number_at
    if place == NO_VALUE:
        return False
    is_in = predicates[predicate, LOW] <= place <= predicates[predicate, HIGH]
    return is_in != (predicates[predicate, IS_NOT] != 0)
