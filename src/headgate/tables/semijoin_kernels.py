"""From changes of two joined tables to messages of the two groups of one edge, R^S and S^R (§4).

A group R^S holds rows of its base table R only. What a change means for it:

    R changes    the row goes to those whom it affects, as in a two-way join
    S, a new t   rows of R that t exposes go to those whom it exposes them to
    S, t leaves  rows of R that no one is left to join with leave; no one says which

The last one is where a group differs from a two-way join. There a client has both sides and sees
itself that one has become empty. Here it has no rows of S. But within a join value b all rows of R
that it selects join with all rows of S that it selects: so the rows of R with b leave all at once,
and one short message is enough, "b is empty", to those who select t and none of its neighbours
among what is left, and some row of R.

    C    ──c⁻────t────c⁺──       told: ranges that contain t and lie within (c⁻, c⁺)

The two groups of an edge share the indexes of both tables, and each has its own subscriptions and
its own messages. A message "b is empty" is a deletion of a row of the filtering table.
"""

from __future__ import annotations

import numba as nb

from headgate.tables.change_kernels import (
    DELETE,
    INSERT,
    JOIN,
    KIND,
    NEW,
    OLD,
    REPLACE,
    SEMIJOINS,
    SIDE,
    Event,
    ask_exposed,
    neighbours,
    rooms_needed,
    tell,
    tell_asked,
    tell_rows,
)
from headgate.tables.table_kernels import insert, remove


@nb.njit(nogil=True, cache=True)
def tell_emptied(event, slot, flavour, out):  # type: ignore[no-untyped-def]
    """Tell those for whom a row, which the index has no more, was the last one of its table."""
    own = event.own
    values = own.value[slot]
    near = neighbours(own, event.join, slot)
    for at in range(near.shape[0]):
        if (near[at] == values).all():
            return
    ask_exposed(event.question, event.own_first, values, near)
    tell_asked(event, DELETE, slot, -1, near, flavour, out)


@nb.njit(nogil=True, cache=True)
def tell_base(event, change, scheme, out):  # type: ignore[no-untyped-def]
    """A change of the base table."""
    own, kind, new, old = event.own, change[KIND], change[NEW], change[OLD]
    replaces, unless = -1, own.value[:0]
    if kind == REPLACE:
        replaces, unless = own.number[old], own.value[new : new + 1]
    if kind != DELETE:
        tell(event, INSERT, new, replaces, own.value[:0], scheme.flavour, out)
    if kind == INSERT or (kind == REPLACE and (own.value[old] == own.value[new]).all()):
        return
    tell(event, DELETE, old, -1, unless, scheme.flavour, out)


@nb.njit(nogil=True, cache=True)
def is_room(change, own, other, tree, scheme, out, wanted, needs):  # type: ignore[no-untyped-def]
    """Whether there is room for all that the change may write; `needs` says what it needs."""
    rooms_needed(change, own, other, tree, scheme, needs)
    return (
        out.used[0] + needs[0] <= out.header.shape[0]
        and out.used[1] + needs[1] <= out.numbers.shape[0]
        and own.used[0] + needs[2] <= own.pool.shape[0]
        and needs[3] <= wanted.shape[0]
    )


@nb.njit(nogil=True, cache=True)
def event_of(number, change, tables, trees, questions, anchors):  # type: ignore[no-untyped-def]
    side = change[SIDE]
    own, question = tables[side], questions[side]
    own_first = 0 if side == 0 else question.least.shape[0] // 2 - own.value.shape[1]
    return Event(
        number,
        side,
        change[JOIN],
        own_first,
        own,
        tables[1 - side],
        trees[side],
        question,
        anchors[1 - side],
    )


@nb.njit(nogil=True, cache=True)
def process_edge(changes, first, tables, groups, is_used, scheme, outs, marks, needs):  # type: ignore[no-untyped-def]
    """Apply changes from `first` on and write the messages of both groups; which change is next.

    groups[base] has (trees, questions, anchors), each by side, of the group with this base; outs
    and marks are where its messages are written. It stops where there might not be room for all
    that a change writes, and says in `needs` what is needed, and in needs[4] by which group.
    """
    for number in range(first, changes.shape[0]):
        change = changes[number]
        side, join, kind = change[SIDE], change[JOIN], change[KIND]
        own, other = tables[side], tables[1 - side]
        for base in range(2):
            needs[4] = base
            tree = groups[base][0][side]
            if not is_room(change, own, other, tree, scheme, outs[base], marks[base], needs):
                return number
        if is_used[side]:
            trees, questions, anchors = groups[side]
            event = event_of(number, change, tables, trees, questions, anchors)
            tell_base(event, change, scheme, outs[side])
        trees, questions, anchors = groups[1 - side]
        event = event_of(number, change, tables, trees, questions, anchors)
        if is_used[1 - side] and kind != DELETE:
            tell_rows(event, change[NEW], -1, SEMIJOINS, outs[1 - side], marks[1 - side])
        if kind != INSERT:
            remove(own, join, change[OLD])
        if kind != DELETE:
            insert(own, join, change[NEW])
        if is_used[1 - side] and kind != INSERT:
            tell_emptied(event, change[OLD], scheme.flavour, outs[1 - side])
    return changes.shape[0]
