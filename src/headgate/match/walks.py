"""Walks over the forest: which items are left at each node, and what is reported at the ends.

    stack[0]        a bit for each item of the batch
    stack[d + 1]    the items that satisfy the path down to depth d

Nodes lie in depth-first order (forest.py). Where no item is left, the whole subtree is skipped. At
an end are the names of its subscriptions; a negative name is a subscription that has been removed.

Below a node that few items satisfy, most words of all rows are zero: the walk is *narrow* there.
The places of the node's non-zero words are listed once, and only those words are computed for the
nodes below it. Of 200,000 conjunctions that begin with a rare atom, nine tenths of the nodes are
visited in this way.

Matches are written in two ways. An end that few items satisfy is listed in the first walk, as pairs
of an item and the end (`list_matches`). Whatever needs the names comes later, in loops of its own,
since a walk would wait for the memory that they are in. An end that many items satisfy is only
counted in the first walk, and written by a second walk that visits nothing else (`write_many`).

Python passes the named tuples of arrays as plain tuples, and the kernels name their fields again:
to find the type of a named tuple costs Numba 2 µs a call, of a plain one 0.1 µs.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.match.bit_rows import (
    ONE,
    PLANES,
    SQUARES,
    Ints,
    Longs,
    Words,
    add_eight,
    lowest_bit,
    popcount,
    read_counters,
    write_squares,
)

NARROW_FROM = 32
"""Rows of fewer words are always computed whole."""


class ForestNodes(NamedTuple):
    """The nodes of a forest in depth-first order, int32 [nodes] each: the row that a node tests,
    its depth, the next node that is not below it, and the end that it is (−1 if none)."""

    row: Ints
    depth: Ints
    skip: Ints
    end: Ints


class EndNames(NamedTuple):
    """End e has the names name[start[e] : start[e + 1]], negative where removed; both int32."""

    start: Ints
    name: Ints


class BitRows(NamedTuple):
    """The rows of a batch, uint64 [rows, words], and the stack of a walk, uint64 [depth + 1,
    words], whose bottom has a bit for each item."""

    rows: Words
    stack: Words


class Listed(NamedTuple):
    """What the first walk finds.

    item, end   int32 [room]: item[n] satisfies end[n]
    many        int32 [ends]: the nodes whose ends many items satisfy
    per_item    int64 [items]: how many subscriptions those ends have for each item
    """

    item: Ints
    end: Ints
    many: Ints
    per_item: Longs


@nb.njit(nogil=True, cache=True, inline="always")
def descend(stack, depth, rows, row):  # type: ignore[no-untyped-def]
    """stack[depth + 1] = stack[depth] & rows[row]; whether an item is left in it."""
    some = np.uint64(0)
    for word in range(rows.shape[1]):
        value = stack[depth, word] & rows[row, word]
        stack[depth + 1, word] = value
        some |= value
    return some != 0


@nb.njit(nogil=True, cache=True)
def count_ends(nodes, bits, ends, counts):  # type: ignore[no-untyped-def]
    """Out: counts[n] items satisfy ends[n], for the ends that some item satisfies, both int32. How
    many such ends there are. Few ends are satisfied, so a list is less to write than a table.

    In: nodes ForestNodes, bits BitRows.
    """
    nodes, bits = ForestNodes(*nodes), BitRows(*bits)
    rows, stack, used = bits.rows, bits.stack, 0
    node, node_count, word_count = 0, nodes.row.shape[0], rows.shape[1]
    places, narrow = _narrow_arrays(stack)
    while node < node_count:
        depth = nodes.depth[node]
        if not descend(stack, depth, rows, nodes.row[node]):
            node = nodes.skip[node]
            continue
        if nodes.end[node] >= 0:
            ends[used], counts[used] = nodes.end[node], _count_bits(stack, depth + 1, word_count)
            used += 1
        last, node = nodes.skip[node], node + 1
        if node == last or places.shape[0] == 0:
            continue
        width = _to_narrow(stack, depth + 1, places, narrow)
        # A loop of its own: one loop for both kinds of nodes takes 1.8 times as long.
        while width > 0 and node < last:
            depth = nodes.depth[node]
            if not _descend_narrow(narrow, depth, rows, nodes.row[node], places, width):
                node = nodes.skip[node]
                continue
            if nodes.end[node] >= 0:
                ends[used], counts[used] = nodes.end[node], _count_bits(narrow, depth + 1, width)
                used += 1
            node += 1
    return used


@nb.njit(nogil=True, cache=True, inline="always")
def _count_bits(words, depth, width):  # type: ignore[no-untyped-def]
    """How many items are left in the first words of words[depth]."""
    total = np.uint64(0)
    for word in range(width):
        total += popcount(words[depth, word])
    return total


@nb.njit(nogil=True, cache=True)
def _narrow_arrays(stack):  # type: ignore[no-untyped-def]
    """Room for a narrow walk: uint64 [most], the places of words, and [depth + 1, most], the words
    of a stack. `most` is 0 if rows are so short that a narrow walk gains nothing."""
    most = stack.shape[1] >> 3 if stack.shape[1] >= NARROW_FROM else 0
    return np.empty(most, np.uint64), np.empty((stack.shape[0], most), np.uint64)


@nb.njit(nogil=True, cache=True, inline="always")
def _to_narrow(stack, depth, places, narrow):  # type: ignore[no-untyped-def]
    """List the words of stack[depth] that are not zero in `places`, and copy them to narrow[depth].
    How many; 0 if there are too many."""
    width = 0
    for word in range(stack.shape[1]):
        if stack[depth, word] != 0:
            if width == places.shape[0]:
                return 0
            places[width] = word
            narrow[depth, width] = stack[depth, word]
            width += 1
    return width


@nb.njit(nogil=True, cache=True, inline="always")
def _descend_narrow(narrow, depth, rows, row, places, width):  # type: ignore[no-untyped-def]
    """`descend`, for the words at these places only."""
    some = np.uint64(0)
    for place in range(width):
        value = narrow[depth, place] & rows[row, places[place]]
        narrow[depth + 1, place] = value
        some |= value
    return some != 0


@nb.njit(nogil=True, cache=True, inline="always")
def _to_whole(narrow, depth, places, width, stack):  # type: ignore[no-untyped-def]
    """The inverse of `_to_narrow`."""
    stack[depth] = 0
    for place in range(width):
        stack[depth, places[place]] = narrow[depth, place]


@nb.njit(nogil=True, cache=True, inline="always")
def _list_items(word, left, end, used, items, ends):  # type: ignore[no-untyped-def]
    """Append a pair of item and end for each bit of a word; how many pairs there are then."""
    first = word << np.uint64(6)
    while left != 0:
        items[np.uint64(used)] = first + lowest_bit(left)
        ends[np.uint64(used)] = end
        left &= left - ONE
        used += 1
    return used


@nb.njit(nogil=True, cache=True, inline="always")
def _list_row(row, hit, end, used, items, ends):  # type: ignore[no-untyped-def]
    """Append a pair for each bit of a row whose non-zero words are the bits of `hit`."""
    for block in range(hit.shape[0]):
        some = hit[block]
        while some != 0:
            word = np.uint64(block << 6) + lowest_bit(some)
            some &= some - ONE
            used = _list_items(word, row[word], end, used, items, ends)
    return used


@nb.njit(nogil=True, cache=True, inline="always")
def _hit_words(stack, depth, hit):  # type: ignore[no-untyped-def]
    """How many words of stack[depth] are not zero, and which: bits of `hit`. It takes no branch."""
    count = np.uint64(0)
    for block in range(hit.shape[0]):
        first, some = block << 6, np.uint64(0)
        for word in range(first, min(first + 64, stack.shape[1])):
            some |= np.uint64(stack[depth, word] != 0) << np.uint64(word - first)
        hit[block] = some
        count += popcount(some)
    return np.int64(count)


@nb.njit(nogil=True, cache=True, inline="always")
def _count_names(names, end, row, waiting, wait_count, planes):  # type: ignore[no-untyped-def]
    """Add the row of an end to the counters, once for each of its names; rows wait until there are
    eight. How many are waiting then."""
    for each in range(names.start[end], names.start[end + 1]):
        if names.name[each] < 0:
            continue
        for word in range(row.shape[0]):
            waiting[wait_count, word] = row[word]
        wait_count += 1
        if wait_count == 8:
            add_eight(waiting, planes)
            wait_count = 0
    return wait_count


@nb.njit(nogil=True, cache=True)
def list_matches(nodes, names, bits, listed):  # type: ignore[no-untyped-def]
    """Out: listed (Listed), the matches of all ends. How many are listed as pairs, and how many
    nodes as `many`. An end is listed if at most a quarter of its row's words are hit, and while
    there is room.

    In: nodes ForestNodes, names EndNames, bits BitRows.
    """
    nodes, names = ForestNodes(*nodes), EndNames(*names)
    bits, listed = BitRows(*bits), Listed(*listed)
    rows, stack, items, ends = bits.rows, bits.stack, listed.item, listed.end
    node, node_count, word_count = 0, nodes.row.shape[0], rows.shape[1]
    hit = np.empty((word_count + 63) >> 6, np.uint64)
    few, used, many_count, wait_count = max(word_count >> 2, 1), 0, 0, 0
    waiting = np.empty((8, word_count), np.uint64)
    planes = np.zeros((PLANES, word_count), np.uint64)
    places, narrow = _narrow_arrays(stack)
    while node < node_count:
        depth = nodes.depth[node]
        if not descend(stack, depth, rows, nodes.row[node]):
            node = nodes.skip[node]
            continue
        end = nodes.end[node]
        if end >= 0:
            hit_count = _hit_words(stack, depth + 1, hit)
            if hit_count <= few and used + (hit_count << 6) <= items.shape[0]:
                used = _list_row(stack[depth + 1], hit, end, used, items, ends)
            else:
                listed.many[many_count] = node
                many_count += 1
                row = stack[depth + 1]
                wait_count = _count_names(names, end, row, waiting, wait_count, planes)
        last, node = nodes.skip[node], node + 1
        if node == last or places.shape[0] == 0:
            continue
        width = _to_narrow(stack, depth + 1, places, narrow)
        # A loop of its own, as in `count_ends`.
        while width > 0 and node < last:
            depth = nodes.depth[node]
            if not _descend_narrow(narrow, depth, rows, nodes.row[node], places, width):
                node = nodes.skip[node]
                continue
            end = nodes.end[node]
            if end >= 0 and used + (width << 6) <= items.shape[0]:
                for place in range(width):
                    left = narrow[depth + 1, place]
                    used = _list_items(places[place], left, end, used, items, ends)
            elif end >= 0:
                _to_whole(narrow, depth + 1, places, width, stack)
                listed.many[many_count] = node
                many_count += 1
                row = stack[depth + 1]
                wait_count = _count_names(names, end, row, waiting, wait_count, planes)
            node += 1
    if many_count > 0:
        waiting[wait_count:] = 0
        add_eight(waiting, planes)
        read_counters(planes, listed.per_item)
    return used, many_count


@nb.njit(nogil=True, cache=True)
def count_listed(items, ends, names, per_item):  # type: ignore[no-untyped-def]
    """Add to per_item (int64 [items]) how many subscriptions the pairs of each item have. In: items
    and ends, int32 [pairs]; names, EndNames."""
    names = EndNames(*names)
    for pair in range(items.shape[0]):
        end, living = np.uint64(ends[pair]), 0
        for place in range(names.start[end], names.start[end + ONE]):
            living += names.name[np.uint64(place)] >= 0
        per_item[np.uint64(items[pair])] += living


@nb.njit(nogil=True, cache=True)
def write_listed(items, ends, names, places, write):  # type: ignore[no-untyped-def]
    """Write the names of the pairs (items and ends, int32 [pairs]), as `write_many` does."""
    names = EndNames(*names)
    for pair in range(items.shape[0]):
        end, item = np.uint64(ends[pair]), np.uint64(items[pair])
        place = places[item]
        for place_of_name in range(names.start[end], names.start[end + ONE]):
            name = names.name[np.uint64(place_of_name)]
            if name >= 0:
                write[place] = name
                place += 1
        places[item] = place


@nb.njit(nogil=True, cache=True)
def write_many(nodes, names, bits, many, places, limits, write):  # type: ignore[no-untyped-def]
    """Write the names of the ends of the nodes in `many` (int32), by item: those of item i begin at
    places[i] in `write`, and places[i] moves to where they end, which is at most limits[i].

    In: nodes ForestNodes, names EndNames, bits BitRows, limits int64 [items]. In and out: places
    int64 [items]. Out: write int32.

    The walk gives items by subscription; the result is subscriptions by item. Rows are collected
    until they fill squares, and these are transposed (bit_rows.py).
    """
    nodes, names, bits = ForestNodes(*nodes), EndNames(*names), BitRows(*bits)
    rows, stack = bits.rows, bits.stack
    node, word_count, room, used = 0, rows.shape[1], 64 * SQUARES, 0
    waiting, owners = np.empty((room, word_count), np.uint64), np.empty(room, np.int32)
    for target in many:
        while node < target:
            if nodes.skip[node] <= target:
                node = nodes.skip[node]
            else:
                descend(stack, nodes.depth[node], rows, nodes.row[node])
                node += 1
        depth = nodes.depth[node]
        descend(stack, depth, rows, nodes.row[node])
        end = nodes.end[node]
        node += 1
        for place in range(names.start[end], names.start[end + 1]):
            if names.name[place] < 0:
                continue
            for word in range(word_count):
                waiting[used, word] = stack[depth + 1, word]
            owners[used] = names.name[place]
            used += 1
            if used == room:
                write_squares(waiting, owners, places, limits, write)
                used = 0
    write_squares(waiting, owners[:used], places, limits, write)


@nb.njit(nogil=True, cache=True)
def write_bitmaps(nodes, bits, bitmaps):  # type: ignore[no-untyped-def]
    """Out: bitmaps uint64 [ends, words], the items that satisfy each end. In: nodes ForestNodes,
    bits BitRows."""
    nodes, bits = ForestNodes(*nodes), BitRows(*bits)
    node, node_count = 0, nodes.row.shape[0]
    while node < node_count:
        depth = nodes.depth[node]
        if not descend(bits.stack, depth, bits.rows, nodes.row[node]):
            node = nodes.skip[node]
            continue
        if nodes.end[node] >= 0:
            bitmaps[nodes.end[node]] = bits.stack[depth + 1]
        node += 1


@nb.njit(nogil=True, cache=True)
def skip_pointers(node_depth):  # type: ignore[no-untyped-def]
    """For each node the next one that is not below it, int32 [nodes]: from its first child on, one
    child after the other is skipped. In: node_depth int32 [nodes]."""
    count = node_depth.shape[0]
    skip = np.empty(count, np.int32)
    for node in range(count - 1, -1, -1):
        after = node + 1
        while after < count and node_depth[after] > node_depth[node]:
            after = skip[after]
        skip[node] = after
    return skip
