"""Walks over the forest: what of each node is left, and what is made of it at the ends.

    stack[0]        a bit for each item of the batch
    stack[d + 1]    the items that satisfy the path down to depth d

Nodes lie in depth-first order. Where no item is left, the whole subtree is skipped.

At an end stand the names of its subscriptions. A negative name is a subscription that is dead.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.match.kernels import LOW_BITS, ONE, popcount

SQUARES = 4
"""How many squares of 64 × 64 bits wait to be written: an item's list is then touched less often.
Measured: 1 to 8 squares, and 2 to 6 matches at once; these two are the fastest or close to it."""
AT_ONCE = np.uint64(2)


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
def lowest_bit(word):  # type: ignore[no-untyped-def]
    """The place of the lowest bit that is set; in this shape LLVM makes one instruction of it. It
    is unsigned, so that Numba need not ask whether an index made of it is negative."""
    return popcount(~word & (word - ONE)) & LOW_BITS


@nb.njit(nogil=True, cache=True)
def list_matches(  # type: ignore[no-untyped-def]
    node_row,
    node_depth,
    node_skip,
    node_end,
    end_start,
    subscriptions,
    rows,
    stack,
    items,
    owners,
    per_item,
):
    """The matches as pairs, in one pass: items[n] matches owners[n], and per_item[i] counts those
    of item i. How many there are in all, or −1 if they are more than there is room for.

    Where matches are few, most words of a row are zero. Which are not is found without a branch, 64
    words at a time.
    """
    node, node_count, word_count = 0, node_row.shape[0], rows.shape[1]
    used, room = 0, items.shape[0]
    while node < node_count:
        depth = node_depth[node]
        if not descend(stack, depth, rows, node_row[node]):
            node = node_skip[node]
            continue
        end = node_end[node]
        node += 1
        if end < 0:
            continue
        for first in range(0, word_count, 64):
            some = np.uint64(0)
            for word in range(first, min(first + 64, word_count)):
                some |= np.uint64(stack[depth + 1, word] != 0) << np.uint64(word - first)
            while some != 0:
                word = np.uint64(first) + lowest_bit(some)
                some &= some - ONE
                left = stack[depth + 1, word]
                while left != 0:
                    if used + end_start[end + 1] - end_start[end] > room:
                        return -1
                    item = (word << np.uint64(6)) + lowest_bit(left)
                    left &= left - ONE
                    for each in range(end_start[end], end_start[end + 1]):
                        items[used] = item
                        owners[used] = subscriptions[each]
                        living = subscriptions[each] >= 0
                        used += living
                        per_item[item] += living
    return used


@nb.njit(nogil=True, cache=True)
def write_pairs(items, owners, used, ends, write):  # type: ignore[no-untyped-def]
    """Pairs in the form of `write_matches`."""
    for at in range(used):
        item = items[at]
        write[ends[item]] = owners[at]
        ends[item] += 1


@nb.njit(nogil=True, cache=True)
def count_matches(  # type: ignore[no-untyped-def]
    node_row, node_depth, node_skip, node_end, end_start, subscriptions, rows, stack, planes, counts
):
    """counts[item]: how many living subscriptions the item matches.

    The counters of all items are kept bit by bit: planes[p] has bit p of each. Adding a row to them
    is a few operations on words, however many items it has, as most carries end early.
    """
    node, node_count, word_count = 0, node_row.shape[0], rows.shape[1]
    carry = np.empty(word_count, np.uint64)
    while node < node_count:
        depth = node_depth[node]
        if not descend(stack, depth, rows, node_row[node]):
            node = node_skip[node]
            continue
        end = node_end[node]
        if end >= 0:
            share, plane = 0, 0
            for each in range(end_start[end], end_start[end + 1]):
                share += subscriptions[each] >= 0
            while share > 0:
                if share & 1:
                    carry[:] = stack[depth + 1]
                    _add(planes, plane, carry)
                share >>= 1
                plane += 1
        node += 1
    for item in range(counts.shape[0]):
        word, bit = item >> 6, np.uint64(item) & LOW_BITS
        for plane in range(planes.shape[0]):
            counts[item] += np.int64((planes[plane, word] >> bit) & ONE) << plane


@nb.njit(nogil=True, cache=True)
def _add(planes, plane, carry):  # type: ignore[no-untyped-def]
    """Add 2^plane to the counters of the items in `carry`, which is used up."""
    carried = ONE
    while carried != 0:
        carried = np.uint64(0)
        for word in range(planes.shape[1]):
            before, added = planes[plane, word], carry[word]
            planes[plane, word] = before ^ added
            carry[word] = before & added
            carried |= before & added
        plane += 1


@nb.njit(nogil=True, cache=True)
def transpose(bits):  # type: ignore[no-untyped-def]
    """A square of 64 × 64 bits, mirrored: bit i of word k becomes bit k of word i."""
    width, mask = 32, np.uint64(0x00000000FFFFFFFF)
    while width > 0:
        shift = np.uint64(width)
        for block in range(0, 64, 2 * width):
            for at in range(block, block + width):
                swapped = ((bits[at] >> shift) ^ bits[at + width]) & mask
                bits[at + width] ^= swapped
                bits[at] ^= swapped << shift
        width >>= 1
        mask ^= mask << np.uint64(width)


@nb.njit(nogil=True, cache=True)
def _write_squares(waiting, owners, used, ends, limits, write):  # type: ignore[no-untyped-def]
    """Write the subscriptions whose rows are waiting to the items that match them."""
    bits = np.zeros((SQUARES, 64), np.uint64)
    for word in range(waiting.shape[1]):
        for square in range(SQUARES):
            for at in range(64):
                line = (square << 6) + at
                bits[square, at] = waiting[line, word] if line < used else np.uint64(0)
            transpose(bits[square])
        for each in range(64):
            item, count = (word << 6) + each, popcount(bits[0, each])
            for square in range(1, SQUARES):
                count += popcount(bits[square, each])
            if count == 0:
                continue
            begin = np.uint64(ends[item])
            ends[item] += np.int64(count)
            if begin + count + AT_ONCE <= np.uint64(limits[item]):
                _write_fast(bits, each, owners, begin, write)
            else:
                _write_exactly(bits, each, owners, begin, write)


@nb.njit(nogil=True, cache=True, inline="always")
def _write_fast(bits, each, owners, at, write):  # type: ignore[no-untyped-def]
    """Two at a time, whether or not there are so many: what is too much is written over by the
    item's next matches, and a branch that the processor cannot foresee is spared."""
    for square in range(SQUARES):
        left, base = bits[square, each], np.uint64(square << 6)
        next_at = at + popcount(left)
        while True:
            for step in range(AT_ONCE):
                write[at + np.uint64(step)] = owners[base + lowest_bit(left)]
                left &= left - ONE
            if left == 0:
                break
            at += AT_ONCE
        at = next_at


@nb.njit(nogil=True, cache=True, inline="always")
def _write_exactly(bits, each, owners, at, write):  # type: ignore[no-untyped-def]
    for square in range(SQUARES):
        left, base = bits[square, each], np.uint64(square << 6)
        while left != 0:
            write[at] = owners[base + lowest_bit(left)]
            left &= left - ONE
            at += ONE


@nb.njit(nogil=True, cache=True)
def write_matches(  # type: ignore[no-untyped-def]
    node_row,
    node_depth,
    node_skip,
    node_end,
    end_start,
    subscriptions,
    rows,
    stack,
    ends,
    limits,
    write,
):
    """The subscriptions of each item, one after the other: those of item i begin at ends[i] in
    `write`, and ends[i] moves to where they end, which is limits[i].

    The forest yields items by subscription; wanted are subscriptions by item. Writing each match
    where it belongs would touch thousands of places in turn. So the rows of some subscriptions wait
    until they fill squares of 64 × 64 bits, which are transposed and written item by item.
    """
    node, node_count, word_count = 0, node_row.shape[0], rows.shape[1]
    room = 64 * SQUARES
    waiting, owners, used = np.empty((room, word_count), np.uint64), np.empty(room, np.int32), 0
    while node < node_count:
        depth = node_depth[node]
        if not descend(stack, depth, rows, node_row[node]):
            node = node_skip[node]
            continue
        end = node_end[node]
        if end >= 0:
            for each in range(end_start[end], end_start[end + 1]):
                if subscriptions[each] < 0:
                    continue
                waiting[used] = stack[depth + 1]
                owners[used] = subscriptions[each]
                used += 1
                if used == room:
                    _write_squares(waiting, owners, used, ends, limits, write)
                    used = 0
        node += 1
    _write_squares(waiting, owners, used, ends, limits, write)


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
    """For each node the next one that is not below it."""
    count = node_depth.shape[0]
    skip = np.empty(count, np.int32)
    nearest = np.full(node_depth.max() + 2 if count else 1, count, np.int32)
    for node in range(count - 1, -1, -1):
        depth = node_depth[node]
        # Of the nodes behind, the nearest at this depth or above; deeper ones are below this node.
        skip[node] = nearest[depth]
        nearest[depth] = node
        for deeper in range(depth + 1, nearest.shape[0]):
            nearest[deeper] = node
    return skip
