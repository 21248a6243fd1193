"""The hot loop over steps of patterns: their tables, children first (evaluate_patterns.py)."""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.views.tuple_tables import (
    LINE,
    TOO_MANY,
    fill_by_parent,
    first_from,
    first_line_from,
    grown,
    value_holds,
)


@nb.njit(nogil=True, cache=True)
def run_steps(s, d, width, slot, rows, start, index_at, cells, used, keys, kept, limits):  # type: ignore[no-untyped-def]
    """The tables of all steps: cells and how many are used, keys and how many are used.

    `s` are the steps, `d` is the document; `limits` are those of lines and of cells.
    """
    # What is taken out of a tuple within a loop is counted as a reference each time.
    child_table, child_is_near, predicates = s.child_table, s.child_is_near, s.predicates
    parent, last, by_label, text_at, number_at = (
        d.parent, d.last, d.by_label, d.text_at, d.number_at,
    )  # fmt: skip
    low, high = np.empty((2, child_table.shape[0]), np.int64)
    for step in range(s.label.shape[0]):
        first, end = s.child_start[step], s.child_start[step + 1]
        start[step] = used
        rows[step] = _before(child_table, first, end, rows)
        if rows[step] <= 0:
            continue
        rows[step] = 0
        for at in range(first, end):
            child = child_table[at]
            own = slot[child + 1] - 1  # the index by parents is the last of a table
            if child_is_near[at] and index_at[own] < 0:
                index_at[own] = kept
                keys = grown(keys, kept, rows[child])
                fill_by_parent(cells, start[child], rows[child], width[child], parent, keys, kept)
                kept += rows[child]
        tests, tests_end = s.predicate_start[step], s.predicate_start[step + 1]
        size, label, is_root = width[step], s.label[step], s.is_root[step]
        for place in range(d.label_start[label], d.label_start[label + 1]):
            top = by_label[place]
            if is_root and top != 0:
                break
            if not _fits(predicates, tests, tests_end, text_at[top], number_at[top]):
                continue
            lines = _lines_below(
                child_table, child_is_near, first, end, top, last[top], width, slot, rows, start,
                index_at, cells, keys, low, high, limits[0],
            )  # fmt: skip
            if lines == 0:
                continue
            if rows[step] + lines > limits[0] or used + lines * size > limits[1]:
                rows[step], used = TOO_MANY, start[step]
                break
            if used + lines * size > cells.shape[0]:
                cells = grown(cells, used, lines * size)
            cells[used : used + lines * size : size] = top
            column, repeated = 1, lines
            for at in range(first, end):
                child, count = child_table[at], high[at] - low[at]
                repeated //= count
                _write(child_is_near[at], low[at], count, repeated, lines, start[child],
                       width[child], keys, cells, used + column, size)  # fmt: skip
                column += width[child]
            used += lines * size
            rows[step] += lines
    return cells, used, keys, kept


@nb.njit(nogil=True, cache=True)
def _before(children, first, end, rows):  # type: ignore[no-untyped-def]
    """0 if a child has no lines, TOO_MANY if one has, else 1."""
    found = 1
    for at in range(first, end):
        if rows[children[at]] == 0:
            return 0
        if rows[children[at]] < 0:
            found = TOO_MANY
    return found


@nb.njit(nogil=True, cache=True, inline="always")
def _fits(predicates, first, end, text_at, number_at):  # type: ignore[no-untyped-def]
    fits = True
    for each in range(first, end):
        fits = value_holds(predicates, each, text_at, number_at)
        if not fits:
            break
    return fits


@nb.njit(nogil=True, cache=True, inline="always")
def _lines_below(  # type: ignore[no-untyped-def]
    child_table, child_is_near, first, end, top, last, width, slot, rows, start, index_at, cells,
    keys, low, high, most,
):  # fmt: skip
    """Where each child's lines below a node are, and how many combinations they make."""
    lines = 1
    for at in range(first, end):
        child = child_table[at]
        begin, count = start[child], rows[child]
        if child_is_near[at]:
            own = index_at[slot[child + 1] - 1]
            low[at] = first_from(keys, own, own + count, top)
            high[at] = first_from(keys, low[at], own + count, top + 1)
        else:
            low[at] = first_line_from(cells, begin, count, width[child], top + 1)
            high[at] = first_line_from(cells, begin, count, width[child], last + 1)
        lines *= high[at] - low[at]
        if lines == 0 or lines > most:
            break
    return lines


@nb.njit(nogil=True, cache=True, inline="always")
def _write(is_near, low, count, repeated, lines, begin, width, keys, cells, to, size):  # type: ignore[no-untyped-def]
    """The part of a child in all combinations of what is below a node: of its `count` lines each
    one `repeated` times, and all of them again and again; the last child changes fastest."""
    for line in range(lines):
        place = low + (line // repeated) % count
        if is_near:
            place = keys[place] & LINE
        for each in range(width):
            cells[to + line * size + each] = cells[begin + place * width + each]
