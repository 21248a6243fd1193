"""From changes of two tables to messages ([Select-Joins §3.1.2, §3.2.2]).

A new tuple t of one table goes to the subscriptions that it affects (`skylines.py`). Then rows of
the other table go to the subscriptions that t exposes them to: those that select t and the row, and
select no other tuple of t's table that joins with the row. Of t's table only the neighbours a⁻ and
a⁺ of t matter: a range that contains t and another tuple also contains what is between.

    A    ──a⁻────t────a⁺──       exposed: ranges that contain t and lie within (a⁻, a⁺)
    C    ─c──────c───c──c─       joining rows; those in the union of these ranges on C are sent

With several attributes on t's table its envelope takes the place of a⁻ and a⁺; with several on the
other table each joining row is a query of its own (Appendix C).

A deletion has the region of the subscriptions that hold the row: the same description. Clients drop
rows of the other table that are left without a partner by themselves. A replacement is an insertion
followed by a deletion, so that no row of the other table leaves and comes back; a client that gets
the new row drops the old one, so the deletion excludes subscriptions that select the new one.

`own` is the table that changes, `other` the table that it joins with. In: changes as rows of
int64 and both tables' `RowIndex`. Out: messages in each sink's buffer, in the order in which
clients apply them; the index is updated after each change.

Short kernels are inlined: a call with tuples of arrays counts references to each array, which took
a fifth of the time of a change.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.tables.box_tree_kernels import (
    BoxQuery,
    Excluded,
    Floats,
    Tree,
    any_match,
    clear_query,
    greatest,
    require_containing,
    require_range,
)
from headgate.tables.message_buffer import (
    DELETE,
    INSERT,
    JOIN,
    KIND,
    NEW,
    OLD,
    PAIRS,
    REPLACE,
    SIDE,
    MessageArrays,
    MessageHead,
    put_row_pair,
    put_selected,
    start_message,
)
from headgate.tables.skylines import EVERYONE, SUB, ChangeEvent, describe, envelope
from headgate.tables.table_kernels import first_at_least, insert, remove, space_to_insert, value_at

SEMIJOINS, JOINS, NEEDED_JOINS = 0, 1, 2
"""What a scheme sends: rows of semijoins, all join results, or only the selected ones."""


class SchemeCode(NamedTuple):
    """A scheme as kernels take it."""

    sends: int  # SEMIJOINS, JOINS or NEEDED_JOINS
    description: int  # the kind of region: TUP, CLU, CLU_PLUS, SUB or EVERYONE (skylines.py)


class MessageSink(NamedTuple):
    """The subscriptions that messages are written for, by which scheme, and to which buffer."""

    trees: tuple[Tree, ...]  # by the side that changes, as are the queries
    queries: tuple[BoxQuery, ...]
    anchors: tuple[Floats, ...]  # by side
    scheme: SchemeCode
    out: MessageArrays
    marks: npt.NDArray[np.bool_]  # working memory


@nb.njit(nogil=True, cache=True, inline="always")
def event_of(number, change, tables, sink):  # type: ignore[no-untyped-def]
    """The change at position `number`, with the tables and subscriptions to check it with."""
    side = change[SIDE]
    own_rows, query = tables[side], sink.queries[side]
    own_first = 0 if side == 0 else query.least.shape[0] // 2 - own_rows.value.shape[1]
    return ChangeEvent(
        number,
        side,
        change[JOIN],
        own_first,
        own_rows,
        tables[1 - side],
        sink.trees[side],
        query,
        sink.anchors[1 - side],
    )


@nb.njit(nogil=True, cache=True, inline="always")
def write_affected(event, head, excluded, description, out):  # type: ignore[no-untyped-def]
    """Write one message for the subscriptions that a row of the changed table affects.

    `excluded` (float64, [0 or 1, attribute]) is the version that replaces it, if there is one.
    """
    own_rows, query = event.own, event.query
    values, own_first = own_rows.value[head.slot], event.own_first
    clear_query(query)
    require_containing(query, own_first, values)
    if own_rows.value.shape[1] == 1 and excluded.shape[0] > 0:
        half = query.least.shape[0] // 2
        if excluded[0, 0] > values[0]:
            query.most[half + own_first] = np.nextafter(excluded[0, 0], -np.inf)
        else:
            query.least[own_first] = np.nextafter(excluded[0, 0], np.inf)
    write_described(event, head, excluded, description, out)


@nb.njit(nogil=True, cache=True, inline="always")
def write_described(event, head, excluded, description, out):  # type: ignore[no-untyped-def]
    """Write one message for the affected subscriptions within `event.query`; none if there are
    none."""
    messages, numbers = out.used[0], out.used[1]
    line = start_message(out, head)
    put_selected(out, line, event.own.value[head.slot], excluded)
    end = describe(description, event, out.numbers, out.used[1])
    line[PAIRS] = (end - out.used[1]) // (2 * event.other.value.shape[1])
    if line[PAIRS] == 0:
        out.used[0], out.used[1] = messages, numbers
    else:
        out.used[1] = end


@nb.njit(nogil=True, cache=True)
def mark_selected_rows(event, excluded, marks):  # type: ignore[no-untyped-def]
    """Mark the joining rows that some subscription within `event.query` selects; return whether
    there is one.

    The union of the ranges is walked from left to right. The range that contains the current row
    and ends last says how many rows are selected; if there is none, the range that begins next says
    where to continue. So there are two queries per piece of the union, whatever the number of
    subscriptions.
    """
    tree, query, other_rows, join = event.tree, event.query, event.other, event.join
    begin, size = other_rows.start[join], other_rows.size[join]
    marks[:size] = False
    if size == 0:
        return False
    if other_rows.value.shape[1] > 1:
        is_any = False
        for row in range(size):
            require_containing(
                query, query.other_first, other_rows.value[other_rows.pool[begin + row]]
            )
            marks[row] = any_match(tree, query, excluded)
            is_any |= marks[row]
        return is_any
    low, high = query.other_first, query.least.shape[0] // 2 + query.other_first
    row, is_any, last = 0, False, value_at(other_rows, begin + size - 1)
    while row < size:
        value = value_at(other_rows, begin + row)
        require_range(query, -np.inf, value, value, np.inf)
        is_found, reach = greatest(tree, query, excluded, high, 1.0, last)
        if is_found:
            is_any = True
            while row < size and value_at(other_rows, begin + row) <= reach:
                marks[row] = True
                row += 1
            continue
        require_range(query, np.nextafter(value, np.inf), last, np.nextafter(value, np.inf), np.inf)
        is_found, start = greatest(tree, query, excluded, low, -1.0, np.inf)
        if not is_found:
            break
        row = first_at_least(other_rows, join, -start) - begin
    return is_any


@nb.njit(nogil=True, cache=True)
def neighbours(own_rows, join, slot):  # type: ignore[no-untyped-def]
    """The values of the rows next to a row (float64, [row, attribute]); its own where there is an
    equal row."""
    begin, end = own_rows.start[join], own_rows.start[join] + own_rows.size[join]
    values = own_rows.value[slot]
    if own_rows.value.shape[1] > 1:
        kept = np.empty(end - begin, np.int64)
        count = envelope(own_rows, begin, end, values, kept)
        return own_rows.value[kept[:count]]
    place = first_at_least(own_rows, join, values[0])
    if place < end and value_at(own_rows, place) == values[0]:
        return values.reshape(1, 1).copy()
    near = np.empty((2, 1))
    count = 0
    if place > begin:
        near[count, 0], count = value_at(own_rows, place - 1), count + 1
    if place < end:
        near[count, 0], count = value_at(own_rows, place), count + 1
    return near[:count]


@nb.njit(nogil=True, cache=True, inline="always")
def require_exposed(query, own_first, values, near):  # type: ignore[no-untyped-def]
    """Set the query to subscriptions that select the tuple and none of its neighbours; return the
    points that the query itself cannot exclude."""
    clear_query(query)
    require_containing(query, own_first, values)
    if values.shape[0] == 1:
        half = query.least.shape[0] // 2
        for e in range(near.shape[0]):
            if near[e, 0] < values[0]:
                query.least[own_first] = np.nextafter(near[e, 0], np.inf)
            else:
                query.most[half + own_first] = np.nextafter(near[e, 0], -np.inf)
    return Excluded(near[:0] if values.shape[0] == 1 else near, own_first)


@nb.njit(nogil=True, cache=True)
def write_exposed(event, slot, replaces, sink, sends):  # type: ignore[no-untyped-def]
    """Write the rows that a new tuple exposes or, for join schemes, its join results."""
    own_rows, other_rows, side, join = event.own, event.other, event.side, event.join
    values, begin, size, out = (
        own_rows.value[slot],
        other_rows.start[join],
        other_rows.size[join],
        sink.out,
    )
    near = own_rows.value[:0]
    if sends == SEMIJOINS:
        near = neighbours(own_rows, join, slot)
    excluded = require_exposed(event.query, event.own_first, values, near)
    if sends == JOINS:
        sink.marks[:size] = True
    elif not mark_selected_rows(event, excluded, sink.marks):
        return
    for place in range(size):
        if not sink.marks[place]:
            continue
        row, number = other_rows.pool[begin + place], event.number
        if sends == SEMIJOINS:
            version = other_rows.number[row]
            head = MessageHead(number, INSERT, 1 - side, side, row, -1, version, -1)
        else:
            head = MessageHead(
                number, INSERT, side, side, slot, row, own_rows.number[slot], replaces
            )
        line = start_message(out, head)
        put_selected(out, line, values, near)
        put_row_pair(out, line, other_rows.value[row])


@nb.njit(nogil=True, cache=True, inline="always")
def space_needed(change, own_rows, other_rows, sink, needs):  # type: ignore[no-untyped-def]
    """Write the most that one change can take to `needs` (int64, [4]): messages, numbers, places of
    the index's pool, marks."""
    join, tree = change[JOIN], sink.trees[change[SIDE]]
    size, near = (
        other_rows.size[join],
        2 if own_rows.value.shape[1] == 1 else own_rows.size[join] + 1,
    )
    needs[0] = size + 2
    per_message = own_rows.value.shape[1] * (2 + near) + 2 * other_rows.value.shape[1]
    pairs = size + 1 + (tree.points.shape[0] if sink.scheme.description == SUB else 0)
    needs[1] = (size + 2) * per_message + 2 * pairs * 2 * other_rows.value.shape[1]
    needs[2] = space_to_insert(own_rows, join)
    needs[3] = size


@nb.njit(nogil=True, cache=True, inline="always")
def has_space(sink, change, own_rows, other_rows, needs):  # type: ignore[no-untyped-def]
    """Whether the buffer has space for all that a change may write; `needs` says how much."""
    space_needed(change, own_rows, other_rows, sink, needs)
    out = sink.out
    return (
        out.used[0] + needs[0] <= out.header.shape[0]
        and out.used[1] + needs[1] <= out.numbers.shape[0]
        and needs[3] <= sink.marks.shape[0]
    )


@nb.njit(nogil=True, cache=True, inline="always")
def update_index(change, own_rows):  # type: ignore[no-untyped-def]
    """Apply a change to the index of its table."""
    if change[KIND] != INSERT:
        remove(own_rows, change[JOIN], change[OLD])
    if change[KIND] != DELETE:
        insert(own_rows, change[JOIN], change[NEW])


@nb.njit(nogil=True, cache=True)
def apply_changes(changes, first, tables, sinks, needs):  # type: ignore[no-untyped-def]
    """Apply changes (int64, [change, 5]) from `first` on and write the messages of each sink.

    Stops where a change might not have enough space. Returns the position of the next change, and
    the number of the sink that is short of space; −1 if it is the index. `needs` says how much.
    """
    for number in range(first, changes.shape[0]):
        change = changes[number]
        own_rows, other_rows = tables[change[SIDE]], tables[1 - change[SIDE]]
        for sink in range(len(sinks)):
            if not has_space(sinks[sink], change, own_rows, other_rows, needs):
                return number, sink
        if own_rows.used[0] + space_to_insert(own_rows, change[JOIN]) > own_rows.pool.shape[0]:
            needs[2] = space_to_insert(own_rows, change[JOIN])
            return number, -1
        for sink in range(len(sinks)):
            event = event_of(number, change, tables, sinks[sink])
            write_change(event, change, sinks[sink], False)
        update_index(change, own_rows)
    return changes.shape[0], -1


@nb.njit(nogil=True, cache=True)
def apply_silently(changes, first, tables):  # type: ignore[no-untyped-def]
    """Apply changes from `first` on without messages; return the first one without space."""
    for number in range(first, changes.shape[0]):
        change = changes[number]
        own_rows = tables[change[SIDE]]
        if own_rows.used[0] + space_to_insert(own_rows, change[JOIN]) > own_rows.pool.shape[0]:
            return number
        update_index(change, own_rows)
    return changes.shape[0]


@nb.njit(nogil=True, cache=True)
def write_change(event, change, sink, is_base_only):  # type: ignore[no-untyped-def]
    """Write all messages of one change; the index has not been updated yet. With `is_base_only`,
    those about the changed row itself."""
    own_rows, kind, new, old = event.own, change[KIND], change[NEW], change[OLD]
    number, side, scheme = event.number, event.side, sink.scheme
    replaces, replaced_by = -1, own_rows.value[:0]
    if kind == REPLACE:
        replaces, replaced_by = own_rows.number[old], own_rows.value[new : new + 1]
    if kind != DELETE:
        if scheme.sends == SEMIJOINS:
            head = MessageHead(number, INSERT, side, side, new, -1, own_rows.number[new], replaces)
            write_affected(event, head, own_rows.value[:0], scheme.description, sink.out)
        if scheme.description != EVERYONE and not is_base_only:
            write_exposed(event, new, replaces, sink, scheme.sends)
    if kind == INSERT or (kind == REPLACE and np.all(own_rows.value[old] == own_rows.value[new])):
        return
    head = MessageHead(number, DELETE, side, side, old, -1, own_rows.number[old], -1)
    write_affected(event, head, replaced_by, scheme.description, sink.out)
