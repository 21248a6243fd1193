"""Pattern evaluation: one table for each distinct step, children first ([Delta §4.1]).

Equal subtrees of patterns are one *step*, whatever their marks. The table of a step has a row for
each way to embed its subtree, with the numbers of the nodes:

    //item[name]/mailbox/mail      mail ─► mailbox[mail] ─► item[name][mailbox[mail]]
    //item[name {val}]             name ─────────────────► item[name]

A table is sorted by the number of its topmost node. What lies below a node is a range of numbers,
hence of rows; children by '/' are a range in the order of parents. Both are found by binary search.

Cost: the total size of the tables. A node has rows only if all its children have some. Rejected:
one XPath for each view, which cannot return tuples.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.views.tuple_tables import (
    CELLS_LIMIT,
    LINE,
    ROWS_LIMIT,
    TOO_MANY,
    TupleStorage,
    fill_by_parent,
    first_from,
    first_line_from,
    grown,
    value_holds,
)

BEGIN, ROWS, WIDTH, INDEX, LOW, HIGH, CHILD_COLUMNS = range(7)
"""Columns that describe a child's table: its first cell, rows, width, the first key of its index by
parents or NO_INDEX, and the rows (or keys) LOW … HIGH − 1 that are below the current node."""
NO_INDEX = -1


@nb.njit(nogil=True, cache=True)
def run_steps(steps, document, tables, storage):  # type: ignore[no-untyped-def]
    """Fill the tables of all steps, children first; returns the storage, which may have grown.

    steps: level_program.Steps; document: DocumentArrays; tables: TupleTables, of which rows, start
    and index_start are written; storage: TupleStorage.
    """
    # Take arrays out of tuples before the loops: Numba counts a reference for each access.
    rows, start, limits, predicates = tables.rows, tables.start, tables.limits, steps.predicates
    last, by_label, text_at, number_at = (
        document.last, document.by_label, document.text_at, document.number_at,
    )  # fmt: skip
    cells, used, keys, keys_used = storage
    children = np.empty((steps.child_table.shape[0], CHILD_COLUMNS), np.int64)
    for step in range(steps.label.shape[0]):
        below = children[steps.child_start[step] : steps.child_start[step + 1]]
        start[step] = used
        rows[step] = _rows_before(steps, step, rows)
        if rows[step] <= 0:
            continue
        rows[step] = 0
        present = TupleStorage(cells, used, keys, keys_used)
        keys, keys_used = _open_children(steps, step, document.parent, tables, present, below)
        tests, tests_end = steps.predicate_start[step], steps.predicate_start[step + 1]
        size, label, is_root = tables.width[step], steps.label[step], steps.is_root[step]
        for place in range(document.label_start[label], document.label_start[label + 1]):
            top = by_label[place]
            if is_root and top != 0:
                break
            if not _fits(predicates, tests, tests_end, text_at[top], number_at[top]):
                continue
            lines = _rows_below(below, top, last[top], cells, keys, limits[ROWS_LIMIT])
            if lines == 0:
                continue
            if rows[step] + lines > limits[ROWS_LIMIT] or used + lines * size > limits[CELLS_LIMIT]:
                rows[step], used = TOO_MANY, start[step]
                break
            if used + lines * size > cells.shape[0]:
                cells = grown(cells, used, lines * size)
            cells[used : used + lines * size : size] = top
            column, repeated = 1, lines
            for child in range(below.shape[0]):
                repeated //= below[child, HIGH] - below[child, LOW]
                _write(below, child, repeated, lines, keys, cells, used + column, size)
                column += below[child, WIDTH]
            used += lines * size
            rows[step] += lines
    return TupleStorage(cells, used, keys, keys_used)


@nb.njit(nogil=True, cache=True)
def _rows_before(steps, step, rows):  # type: ignore[no-untyped-def]
    """0 if a child of the step has no rows, TOO_MANY if one has too many, else 1."""
    before = 1
    for child in range(steps.child_start[step], steps.child_start[step + 1]):
        child_rows = rows[steps.child_table[child]]
        if child_rows == 0:
            return 0
        if child_rows < 0:
            before = TOO_MANY
    return before


@nb.njit(nogil=True, cache=True)
def _open_children(steps, step, parent, tables, storage, below):  # type: ignore[no-untyped-def]
    """Describe the children's tables in `below` and build missing indexes by parents.

    Returns the keys, which may have grown, and their number.
    """
    cells, _, keys, keys_used = storage
    first = steps.child_start[step]
    for child in range(below.shape[0]):
        table = steps.child_table[first + child]
        begin, rows, width = tables.start[table], tables.rows[table], tables.width[table]
        below[child, BEGIN], below[child, ROWS], below[child, WIDTH] = begin, rows, width
        below[child, INDEX] = NO_INDEX
        if steps.child_is_near[first + child]:
            slot = tables.index_slot[table + 1] - 1  # the index by parents is a table's last
            if tables.index_start[slot] < 0:
                tables.index_start[slot] = keys_used
                keys = grown(keys, keys_used, rows)
                fill_by_parent(cells, begin, rows, width, parent, keys, keys_used)
                keys_used += rows
            below[child, INDEX] = tables.index_start[slot]
    return keys, keys_used


@nb.njit(nogil=True, cache=True, inline="always")
def _fits(predicates, first, end, text_at, number_at):  # type: ignore[no-untyped-def]
    fits = True
    for predicate in range(first, end):
        fits = value_holds(predicates, predicate, text_at, number_at)
        if not fits:
            break
    return fits


@nb.njit(nogil=True, cache=True, inline="always")
def _rows_below(below, top, last, cells, keys, most):  # type: ignore[no-untyped-def]
    """Find each child's rows below node `top`; returns the number of combinations."""
    lines = 1
    for child in range(below.shape[0]):
        begin, rows, index = below[child, BEGIN], below[child, ROWS], below[child, INDEX]
        if index != NO_INDEX:
            low = first_from(keys, index, index + rows, top)
            high = first_from(keys, low, index + rows, top + 1)
        else:
            low = first_line_from(cells, begin, rows, below[child, WIDTH], top + 1)
            high = first_line_from(cells, begin, rows, below[child, WIDTH], last + 1)
        below[child, LOW], below[child, HIGH] = low, high
        lines *= high - low
        if lines == 0 or lines > most:
            break
    return lines


@nb.njit(nogil=True, cache=True, inline="always")
def _write(below, child, repeated, lines, keys, cells, to, size):  # type: ignore[no-untyped-def]
    """Write a child's columns of all combinations: each of its rows `repeated` times in a row, the
    whole sequence as often as needed. The last child changes fastest."""
    low, count, width = (
        below[child, LOW],
        below[child, HIGH] - below[child, LOW],
        below[child, WIDTH],
    )
    begin, is_near = below[child, BEGIN], below[child, INDEX] != NO_INDEX
    for line in range(lines):
        row = low + (line // repeated) % count
        if is_near:
            row = keys[row] & LINE
        for column in range(width):
            cells[to + line * size + column] = cells[begin + row * width + column]
