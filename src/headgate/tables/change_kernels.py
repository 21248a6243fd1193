"""From changes of two tables to messages (§3.1.2, §3.2.2); who gets them is asked elsewhere.

A new tuple t of one table goes to the semijoins that it affects (`describe_kernels.py`). Then rows
of the other table that t joins with go to those whom t exposes them to: who selects t and the row,
and has no other tuple of t's table that joins with the row and is selected. Of t's table only the
neighbours of t matter, a⁻ and a⁺: who selects another tuple and t selects what is between.

    A    ──a⁻────t────a⁺──       exposed: ranges that contain t and lie within (a⁻, a⁺)
    C    ─c──────c───c──c─       joining rows; those in the union of these ranges on C are sent

With several attributes on t's table, its envelope takes the place of a⁻ and a⁺; with several on the
other one, each joining row is asked for by itself (Appendix C).

A deletion is told to those who hold the row: the same description. Rows of the other table that
nobody is left to join with are dropped by clients themselves. A replacement is an insertion
followed by a deletion, so that no row of the other table leaves and comes back; whoever gets the
new row drops the old one, so the deletion goes to those who do not select the new one.

A message is a line of `header` and a stretch of `numbers`:

    numbers   the tuple that must be selected | tuples that must not be | pairs of the skyline
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.tables.box_tree_kernels import Excluded, Floats, Longs, Tree
from headgate.tables.describe_kernels import EVERYONE, SUB, describe, envelope
from headgate.tables.question_kernels import (
    Question,
    ask_all,
    ask_containing,
    mark_wanted,
    value_at,
)
from headgate.tables.table_kernels import (
    Index,
    first_at_least,
    insert,
    remove,
    room_needed,
)

INSERT, DELETE, REPLACE = 0, 1, 2
# Columns of a change.
KIND, SIDE, JOIN, NEW, OLD = range(5)
# Columns of a message's header.
OF_CHANGE, MESSAGE_KIND, ROW_SIDE, OWN_SIDE, SLOT, PARTNER, NUMBER, REPLACES = range(8)
START, EXCLUDED, PAIRS, HEADER = range(8, 12)

SEMIJOINS, JOINS, NEEDED_JOINS = 0, 1, 2


class Out(NamedTuple):
    header: Longs  # [message, HEADER]
    numbers: Floats
    used: Longs  # [2]: messages and numbers


class SchemeCode(NamedTuple):
    """What is sent, and how it is described."""

    sends: int
    flavour: int


class Teller(NamedTuple):
    """Whom a scheme tells, and where it writes what it tells."""

    trees: tuple[Tree, ...]
    questions: tuple[Question, ...]
    anchors: tuple[Floats, ...]
    scheme: SchemeCode
    out: Out
    wanted: npt.NDArray[np.bool_]


class Event(NamedTuple):
    """A change, and all that it is asked about with."""

    number: int
    side: int
    join: int
    own_first: int  # the own table's first dimension
    own: Index
    other: Index
    tree: Tree
    question: Question
    anchors: Floats  # of the other table


@nb.njit(nogil=True, cache=True)
def put_message(out, change, kind, row_side, own_side, slot, partner, number, replaces):  # type: ignore[no-untyped-def]
    """Begin a message; its numbers are still to be written."""
    line = out.header[out.used[0]]
    line[OF_CHANGE], line[MESSAGE_KIND] = change, kind
    line[ROW_SIDE], line[OWN_SIDE] = row_side, own_side
    line[SLOT], line[PARTNER] = slot, partner
    line[NUMBER], line[REPLACES] = number, replaces
    line[START], line[EXCLUDED], line[PAIRS] = out.used[1], 0, 0
    out.used[0] += 1
    return line


@nb.njit(nogil=True, cache=True)
def put_point(out, line, values, excluded):  # type: ignore[no-untyped-def]
    """The tuple that must be selected, and those that must not be."""
    used = out.used[1]
    for d in range(values.shape[0]):
        out.numbers[used], used = values[d], used + 1
    for e in range(excluded.shape[0]):
        for d in range(values.shape[0]):
            out.numbers[used], used = excluded[e, d], used + 1
    line[EXCLUDED] = excluded.shape[0]
    out.used[1] = used


@nb.njit(nogil=True, cache=True)
def put_row_pair(out, line, values):  # type: ignore[no-untyped-def]
    used = out.used[1]
    for _ in range(2):
        for d in range(values.shape[0]):
            out.numbers[used], used = values[d], used + 1
    line[PAIRS] = 1
    out.used[1] = used


@nb.njit(nogil=True, cache=True)
def tell(event, kind, slot, replaces, unless, flavour, out):  # type: ignore[no-untyped-def]
    """Tell about one tuple whom it affects."""
    own, question = event.own, event.question
    values, own_first = own.value[slot], event.own_first
    ask_all(question)
    ask_containing(question, own_first, values)
    if own.value.shape[1] == 1 and unless.shape[0] > 0:
        half = question.least.shape[0] // 2
        if unless[0, 0] > values[0]:
            question.most[half + own_first] = np.nextafter(unless[0, 0], -np.inf)
        else:
            question.least[own_first] = np.nextafter(unless[0, 0], np.inf)
    tell_asked(event, kind, slot, replaces, unless, flavour, out)


@nb.njit(nogil=True, cache=True)
def tell_asked(event, kind, slot, replaces, excluded, flavour, out):  # type: ignore[no-untyped-def]
    """Tell about one tuple those whom the question asks for; nothing if no one is described."""
    own, other, side = event.own, event.other, event.side
    messages, numbers = out.used[0], out.used[1]
    line = put_message(out, event.number, kind, side, side, slot, -1, own.number[slot], replaces)
    put_point(out, line, own.value[slot], excluded)
    end = describe(
        flavour,
        event.tree,
        event.question,
        other,
        event.join,
        event.anchors,
        out.numbers,
        out.used[1],
    )
    line[PAIRS] = (end - out.used[1]) // (2 * other.value.shape[1])
    if line[PAIRS] == 0:
        out.used[0], out.used[1] = messages, numbers
    else:
        out.used[1] = end


@nb.njit(nogil=True, cache=True)
def neighbours(own, join, slot):  # type: ignore[no-untyped-def]
    """The tuples next to a new one; itself, where there is an equal one."""
    begin, end = own.start[join], own.start[join] + own.size[join]
    values = own.value[slot]
    if own.value.shape[1] > 1:
        kept = np.empty(end - begin, np.int64)
        count = envelope(own, begin, end, values, kept)
        return own.value[kept[:count]]
    place = first_at_least(own, join, values[0])
    if place < end and value_at(own, place) == values[0]:
        return values.reshape(1, 1).copy()
    near = np.empty((2, 1))
    count = 0
    if place > begin:
        near[count, 0], count = value_at(own, place - 1), count + 1
    if place < end:
        near[count, 0], count = value_at(own, place), count + 1
    return near[:count]


@nb.njit(nogil=True, cache=True)
def ask_exposed(question, own_first, values, near):  # type: ignore[no-untyped-def]
    """Ask for those who select the tuple and none of its neighbours."""
    ask_all(question)
    ask_containing(question, own_first, values)
    if values.shape[0] == 1:
        half = question.least.shape[0] // 2
        for e in range(near.shape[0]):
            if near[e, 0] < values[0]:
                question.least[own_first] = np.nextafter(near[e, 0], np.inf)
            else:
                question.most[half + own_first] = np.nextafter(near[e, 0], -np.inf)
    return Excluded(near[:0] if values.shape[0] == 1 else near, own_first)


@nb.njit(nogil=True, cache=True)
def tell_rows(event, slot, replaces, sends, out, wanted):  # type: ignore[no-untyped-def]
    """The rows that the tuple exposes, or (Ref-J) its join results."""
    own, other, side, join = event.own, event.other, event.side, event.join
    values, begin, size = own.value[slot], other.start[join], other.size[join]
    near = own.value[:0]
    if sends == SEMIJOINS:
        near = neighbours(own, join, slot)
    excluded = ask_exposed(event.question, event.own_first, values, near)
    if sends == JOINS:
        wanted[:size] = True
    elif not mark_wanted(event.tree, event.question, excluded, other, join, wanted):
        return
    for at in range(size):
        if not wanted[at]:
            continue
        row, number = other.pool[begin + at], event.number
        if sends == SEMIJOINS:
            line = put_message(out, number, INSERT, 1 - side, side, row, -1, other.number[row], -1)
        else:
            line = put_message(
                out, number, INSERT, side, side, slot, row, own.number[slot], replaces
            )
        put_point(out, line, values, near)
        put_row_pair(out, line, other.value[row])


@nb.njit(nogil=True, cache=True)
def rooms_needed(change, own, other, tree, scheme, needs):  # type: ignore[no-untyped-def]
    """The most that one change can write: messages, numbers, places of the pool, marks."""
    join = change[JOIN]
    size, near = other.size[join], 2 if own.value.shape[1] == 1 else own.size[join] + 1
    needs[0] = size + 2
    each = own.value.shape[1] * (2 + near) + 2 * other.value.shape[1]
    pairs = size + 1 + (tree.points.shape[0] if scheme.flavour == SUB else 0)
    needs[1] = (size + 2) * each + 2 * pairs * 2 * other.value.shape[1]
    needs[2] = room_needed(own, join)
    needs[3] = size


@nb.njit(nogil=True, cache=True)
def has_room(teller, change, own, other, needs):  # type: ignore[no-untyped-def]
    """Whether all that a change may write fits; what it needs is in `needs`."""
    rooms_needed(change, own, other, teller.trees[change[SIDE]], teller.scheme, needs)
    out = teller.out
    return (
        out.used[0] + needs[0] <= out.header.shape[0]
        and out.used[1] + needs[1] <= out.numbers.shape[0]
        and needs[3] <= teller.wanted.shape[0]
    )


@nb.njit(nogil=True, cache=True)
def move(change, own):  # type: ignore[no-untyped-def]
    """Apply a change to the index."""
    if change[KIND] != INSERT:
        remove(own, change[JOIN], change[OLD])
    if change[KIND] != DELETE:
        insert(own, change[JOIN], change[NEW])


@nb.njit(nogil=True, cache=True)
def process(changes, first, tables, tellers, needs):  # type: ignore[no-untyped-def]
    """Apply changes from `first` on, and let each teller write its messages; which change comes
    next, and which teller has no room for it.

    It stops where there might not be room for all that a change writes, and says in `needs` what
    the change needs.
    """
    for number in range(first, changes.shape[0]):
        change = changes[number]
        side, join = change[SIDE], change[JOIN]
        own, other = tables[side], tables[1 - side]
        for at in range(len(tellers)):
            if not has_room(tellers[at], change, own, other, needs):
                return number, at
        if own.used[0] + room_needed(own, join) > own.pool.shape[0]:
            needs[2] = room_needed(own, join)
            return number, -1
        for at in range(len(tellers)):
            teller = tellers[at]
            question = teller.questions[side]
            own_first = 0 if side == 0 else question.least.shape[0] // 2 - own.value.shape[1]
            event = Event(
                number,
                side,
                join,
                own_first,
                own,
                other,
                teller.trees[side],
                question,
                teller.anchors[1 - side],
            )
            tell_all(event, change, teller.scheme, teller.out, teller.wanted)
        move(change, own)
    return changes.shape[0], -1


@nb.njit(nogil=True, cache=True)
def settle(changes, first, tables):  # type: ignore[no-untyped-def]
    """Apply changes from `first` on and tell nobody; which change the pool has no room for."""
    for number in range(first, changes.shape[0]):
        change = changes[number]
        own = tables[change[SIDE]]
        if own.used[0] + room_needed(own, change[JOIN]) > own.pool.shape[0]:
            return number
        move(change, own)
    return changes.shape[0]


@nb.njit(nogil=True, cache=True)
def tell_all(event, change, scheme, out, wanted):  # type: ignore[no-untyped-def]
    """All messages of one change, which the tables do not know yet."""
    own, kind, new, old = event.own, change[KIND], change[NEW], change[OLD]
    replaces, unless = -1, own.value[:0]
    if kind == REPLACE:
        replaces, unless = own.number[old], own.value[new : new + 1]
    if kind != DELETE:
        if scheme.sends == SEMIJOINS:
            tell(event, INSERT, new, replaces, own.value[:0], scheme.flavour, out)
        if scheme.flavour != EVERYONE:
            tell_rows(event, new, replaces, scheme.sends, out, wanted)
    if kind == INSERT or (kind == REPLACE and np.all(own.value[old] == own.value[new])):
        return
    tell(event, DELETE, old, -1, unless, scheme.flavour, out)
