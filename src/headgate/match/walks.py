"""Walks over the forest: what of each node is left, and what is made of it at the ends.

    stack[0]        a bit for each item of the batch
    stack[d + 1]    the items that satisfy the path down to depth d

Nodes lie in depth-first order. Where no item is left, the whole subtree is skipped.

At an end stand the names of its subscriptions. A negative name is a subscription that is dead.

Matches are written out in two ways. An end that few items satisfy is listed, as pairs of an item
and the end, in the first walk (`list_matches`). Whatever needs the names comes later, in loops of
its own, as a walk would wait for the memory that they are in. An end that many items satisfy is
only counted there (counter_kernels.py), and written by a second walk that goes nowhere else
(`write_many`, square_kernels.py).
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.match.counter_kernels import PLANES, add_eight, read_counters
from headgate.match.kernels import ONE, lowest_bit, popcount
from headgate.match.square_kernels import SQUARES, write_squares


@nb.njit(nogil=True, cache=True, inline="always")
def descend(stack, depth, rows, row):  # type: ignore[no-untyped-def]
    """stack[depth + 1] = stack[depth] and the node's row; whether an item is left in it."""
    found = np.uint64(0)
    for word in range(rows.shape[1]):
        value = stack[depth, word] & rows[row, word]
        stack[depth + 1, word] = value
        found |= value
    return found != 0


@nb.njit(nogil=True, cache=True)
def count_ends(node_row, node_depth, node_skip, node_end, rows, stack, ends, counts):  # type: ignore[no-untyped-def]
    """The ends that some item satisfies, and how many do: counts[n] items satisfy ends[n]. How many
    such ends there are. Few items satisfy few of them, so a list is less to write than a table."""
    node, node_count, word_count, used = 0, node_row.shape[0], rows.shape[1], 0
    while node < node_count:
        depth = node_depth[node]
        if not descend(stack, depth, rows, node_row[node]):
            node = node_skip[node]
            continue
        if node_end[node] >= 0:
            total = np.uint64(0)
            for word in range(word_count):
                total += popcount(stack[depth + 1, word])
            ends[used] = node_end[node]
            counts[used] = total
            used += 1
        node += 1
    return used


@nb.njit(nogil=True, cache=True, inline="always")
def _hit_words(stack, depth, hit):  # type: ignore[no-untyped-def]
    """How many words of the row are not zero, and which: bits of `hit`. It takes no branch."""
    count = np.uint64(0)
    for block in range(hit.shape[0]):
        first, some = block << 6, np.uint64(0)
        for word in range(first, min(first + 64, stack.shape[1])):
            some |= np.uint64(stack[depth, word] != 0) << np.uint64(word - first)
        hit[block] = some
        count += popcount(some)
    return np.int64(count)


@nb.njit(nogil=True, cache=True)
def list_matches(  # type: ignore[no-untyped-def]
    node_row,
    node_depth,
    node_skip,
    node_end,
    end_start,
    names,
    rows,
    stack,
    items,  # items[n] satisfies …
    ends,  # … ends[n]
    many,  # nodes whose ends many items satisfy
    per_item,  # for each item how many living subscriptions those ends have for it
):
    """The matches of all ends: how many are listed as pairs, and how many nodes as `many`.

    An end is listed if at most a quarter of its row's words are hit, and while there is room.
    """
    node, node_count, word_count = 0, node_row.shape[0], rows.shape[1]
    hit = np.empty((word_count + 63) >> 6, np.uint64)
    few, used, many_count, wait_count = max(word_count >> 2, 1), 0, 0, 0
    waiting = np.empty((8, word_count), np.uint64)
    planes = np.zeros((PLANES, word_count), np.uint64)
    while node < node_count:
        depth = node_depth[node]
        if not descend(stack, depth, rows, node_row[node]):
            node = node_skip[node]
            continue
        end = node_end[node]
        node += 1
        if end < 0:
            continue
        hit_count = _hit_words(stack, depth + 1, hit)
        if hit_count <= few and used + (hit_count << 6) <= items.shape[0]:
            for block in range(hit.shape[0]):
                some = hit[block]
                while some != 0:
                    word = np.uint64(block << 6) + lowest_bit(some)
                    some &= some - ONE
                    left = stack[depth + 1, word]
                    while left != 0:
                        items[np.uint64(used)] = (word << np.uint64(6)) + lowest_bit(left)
                        ends[np.uint64(used)] = end
                        left &= left - ONE
                        used += 1
            continue
        many[many_count] = node - 1
        many_count += 1
        for each in range(end_start[end], end_start[end + 1]):
            if names[each] < 0:
                continue
            for word in range(word_count):
                waiting[wait_count, word] = stack[depth + 1, word]
            wait_count += 1
            if wait_count == 8:
                add_eight(waiting, planes)
                wait_count = 0
    if many_count > 0:
        waiting[wait_count:] = 0
        add_eight(waiting, planes)
        read_counters(planes, per_item)
    return used, many_count


@nb.njit(nogil=True, cache=True)
def count_listed(items, ends, used, end_start, names, per_item):  # type: ignore[no-untyped-def]
    """Add to per_item[i] how many living subscriptions the pairs of item i have."""
    for at in range(used):
        end, living = np.uint64(ends[at]), 0
        for each in range(end_start[end], end_start[end + ONE]):
            living += names[np.uint64(each)] >= 0
        per_item[np.uint64(items[at])] += living


@nb.njit(nogil=True, cache=True)
def write_listed(items, ends, used, end_start, names, places, write):  # type: ignore[no-untyped-def]
    """The names of the pairs, in the form of `write_many`."""
    for at in range(used):
        end, item = np.uint64(ends[at]), np.uint64(items[at])
        place = places[item]
        for each in range(end_start[end], end_start[end + ONE]):
            name = names[np.uint64(each)]
            if name >= 0:
                write[place] = name
                place += 1
        places[item] = place


@nb.njit(nogil=True, cache=True)
def write_many(  # type: ignore[no-untyped-def]
    node_row,
    node_depth,
    node_skip,
    node_end,
    end_start,
    names,
    rows,
    stack,
    many,
    places,
    limits,
    write,
):
    """The names of the ends of the nodes in `many`, by item: those of item i begin at places[i] in
    `write`, and places[i] moves to where they end, which is at most limits[i].

    The forest yields items by subscription; wanted are subscriptions by item. Writing each match
    where it belongs would touch thousands of places in turn. So rows wait until they fill squares.
    """
    node, word_count, room, used = 0, rows.shape[1], 64 * SQUARES, 0
    waiting, owners = np.empty((room, word_count), np.uint64), np.empty(room, np.int32)
    for wanted in many:
        while node < wanted:
            if node_skip[node] <= wanted:
                node = node_skip[node]
            else:
                descend(stack, node_depth[node], rows, node_row[node])
                node += 1
        depth = node_depth[node]
        descend(stack, depth, rows, node_row[node])
        end = node_end[node]
        node += 1
        for each in range(end_start[end], end_start[end + 1]):
            if names[each] < 0:
                continue
            for word in range(word_count):
                waiting[used, word] = stack[depth + 1, word]
            owners[used] = names[each]
            used += 1
            if used == room:
                write_squares(waiting, owners, used, places, limits, write)
                used = 0
    write_squares(waiting, owners, used, places, limits, write)


@nb.njit(nogil=True, cache=True)
def write_bitmaps(node_row, node_depth, node_skip, node_end, rows, stack, bitmaps):  # type: ignore[no-untyped-def]
    """bitmaps[end]: the items that satisfy the conjunction that ends there."""
    node, node_count = 0, node_row.shape[0]
    while node < node_count:
        depth = node_depth[node]
        if not descend(stack, depth, rows, node_row[node]):
            node = node_skip[node]
            continue
        if node_end[node] >= 0:
            bitmaps[node_end[node]] = stack[depth + 1]
        node += 1


@nb.njit(nogil=True, cache=True)
def skip_pointers(node_depth):  # type: ignore[no-untyped-def]
    """For each node the next one that is not below it: from its first child on, one child after the
    other is skipped."""
    count = node_depth.shape[0]
    skip = np.empty(count, np.int32)
    for node in range(count - 1, -1, -1):
        after = node + 1
        while after < count and node_depth[after] > node_depth[node]:
            after = skip[after]
        skip[node] = after
    return skip
