"""Lookups in a window: pairs of a lookup and a matching row.

A lookup is one primary item, by its position in the batch. It sees the rows of the window that are
within its bounds:

    low[l] < time ≤ high[l]    and    arrived ≤ latest[l]

All `find` kernels have the same form `kernel(first, out, bounds, index)`. Lookups are processed in
order from `first` on, and pairs are written to `out`. If the pairs of a lookup do not all fit, they
are dropped: the kernel returns that lookup's position and the number of pairs before it, and
`find_pairs` calls it again with more space."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.match.bit_rows import Ints, Longs

PAIRS_MIN = 4_096


class WindowBounds(NamedTuple):
    """What each lookup sees of the window, in microseconds."""

    low: Longs  # [lookup]: rows have a later time
    high: Longs  # [lookup]: rows have at most this time
    latest: Longs  # [lookup]: rows arrived by then
    times: Longs  # [row]
    arrived: Longs  # [row]

    def take(self, lookups: Longs) -> WindowBounds:
        """The bounds of these lookups only."""
        low, high, latest = (each[lookups] for each in self[:3])
        return WindowBounds(low, high, latest, self.times, self.arrived)

    def pairs_within(self, lookups: Longs, rows: Longs) -> Pairs:
        """The pairs whose row is within the bounds of the lookup."""
        times = self.times[rows]
        within = (self.low[lookups] < times) & (times <= self.high[lookups])
        within &= self.arrived[rows] <= self.latest[lookups]
        return Pairs(lookups[within], rows[within])


class Pairs(NamedTuple):
    """Pairs of a lookup and a row that it finds; also where kernels write them."""

    lookups: Longs
    rows: Longs


class TextLookups(NamedTuple):
    """The words of each lookup, as numbers of the index."""

    threshold: float
    start: Longs  # [lookup + 1]: where its known words begin, the rarest first
    words: Longs
    sizes: Longs  # [lookup]: its number of words, unknown ones included


class WordIndex(NamedTuple):
    """The words of the rows of a window, and chains of rows by word."""

    head: Ints  # [word]: the newest entry of its chain, −1 if there is none
    entries: Ints  # [entry, 4]: row, its number of words, position of the word, previous entry
    word_start: Longs  # [row + 1]: where its words begin, the rarest first
    words: Ints


class SimilarScratch(NamedTuple):
    """Working memory of `find_similar`, kept between calls."""

    word_seen: Longs  # [word]: the mark of the last lookup that has it
    row_seen: Longs  # [row]: the mark of the last lookup that counted it
    mark: Longs  # [1]: the last mark used
    counts: Longs  # [2]: entries walked, and rows counted word by word


def find_pairs(
    kernel: Callable[..., tuple[int, int]], bounds: WindowBounds, *arguments: object
) -> Pairs:
    """All pairs that a `find` kernel finds."""
    count, first, capacity = bounds.low.size, 0, PAIRS_MIN
    parts: list[Pairs] = []
    while first < count:
        lookups, rows = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        following, used = kernel(first, Pairs(lookups, rows), bounds, *arguments)
        parts.append(Pairs(lookups[:used], rows[:used]))
        if following == first:
            capacity *= 4
        first = following
    return parts[0] if len(parts) == 1 else concatenate_pairs(parts)


def concatenate_pairs(parts: list[Pairs]) -> Pairs:
    """All pairs one after the other."""
    empty = np.empty(0, np.int64)
    return Pairs(
        np.concatenate([empty, *(each.lookups for each in parts)]),
        np.concatenate([empty, *(each.rows for each in parts)]),
    )


def distinct(parts: list[Pairs], rows: int) -> Pairs:
    """The pairs that several access paths have found, each once."""
    if len(parts) == 1:
        return parts[0]
    pairs = concatenate_pairs(parts)
    codes = np.unique(pairs.lookups * max(rows, 1) + pairs.rows)
    return Pairs(*np.divmod(codes, max(rows, 1)))


@nb.njit(nogil=True, cache=True)
def find_all(first, out, bounds, rows):  # type: ignore[no-untyped-def]
    """Find all rows of the window; it has `rows` rows."""
    low, high, latest, times, arrived = bounds
    out_lookup, out_row = out
    used = 0
    for lookup in range(first, low.shape[0]):
        kept = used
        for row in range(rows):
            if low[lookup] < times[row] <= high[lookup] and arrived[row] <= latest[lookup]:
                if used == out_row.shape[0]:
                    return lookup, kept
                out_lookup[used], out_row[used] = lookup, row
                used += 1
    return low.shape[0], used


@nb.njit(nogil=True, cache=True)
def find_in_chains(first, out, bounds, heads, previous):  # type: ignore[no-untyped-def]
    """Find the rows of a chain: heads[lookup] (int64) is its newest row, −1 if there is none;
    previous[row] (int32) is the next older one."""
    low, high, latest, times, arrived = bounds
    out_lookup, out_row = out
    used = 0
    for lookup in range(first, low.shape[0]):
        kept, row = used, heads[lookup]
        while row >= 0:
            if low[lookup] < times[row] <= high[lookup] and arrived[row] <= latest[lookup]:
                if used == out_row.shape[0]:
                    return lookup, kept
                out_lookup[used], out_row[used] = lookup, row
                used += 1
            row = previous[row]
    return low.shape[0], used


@nb.njit(nogil=True, cache=True)
def least_common(size, threshold):  # type: ignore[no-untyped-def]
    """As `least_common` of match/similar_atoms.py."""
    least = max(np.int64(1), np.int64(threshold * size) - 1)
    while least / size < threshold:
        least += 1
    return least


@nb.njit(nogil=True, cache=True)
def count_entries(first_row, rows, word_start, lowest):  # type: ignore[no-untyped-def]
    """The number of index entries for the rarest words of these rows."""
    entries = 0
    for row in range(first_row, rows):
        size = word_start[row + 1] - word_start[row]
        if size > 0:
            entries += size - least_common(size, lowest) + 1
    return entries


@nb.njit(nogil=True, cache=True)
def link_rows(first_row, rows, word_start, words, lowest, head, entries, used):  # type: ignore[no-untyped-def]
    """Add entries for the rarest words of new rows at the heads of their chains (`WordIndex`)."""
    for row in range(first_row, rows):
        begin, size = word_start[row], word_start[row + 1] - word_start[row]
        if size == 0:
            continue
        for place in range(size - least_common(size, lowest) + 1):
            word = words[begin + place]
            entries[used, 0], entries[used, 1], entries[used, 2] = row, size, place
            entries[used, 3] = head[word]
            head[word] = used
            used += 1


@nb.njit(nogil=True, cache=True)
def link_rows_by_word(rows, word_start, words, lowest, head, entries):  # type: ignore[no-untyped-def]
    """As `link_rows` for all rows at once, with the entries of a chain adjacent in memory."""
    for row in range(rows):
        begin, size = word_start[row], word_start[row + 1] - word_start[row]
        if size > 0:
            for place in range(size - least_common(size, lowest) + 1):
                head[words[begin + place]] += 1
    before = 0
    for word in range(head.shape[0]):
        count = head[word] + 1  # it began with −1
        head[word] = before - 1
        before += count
    for row in range(rows):
        begin, size = word_start[row], word_start[row + 1] - word_start[row]
        if size == 0:
            continue
        for place in range(size - least_common(size, lowest) + 1):
            word = words[begin + place]
            head[word] += 1
            entry = head[word]
            entries[entry, 0], entries[entry, 1], entries[entry, 2] = row, size, place
            entries[entry, 3] = entry - 1
    before = 0
    for word in range(head.shape[0]):
        end = head[word] + 1
        if end == before:
            head[word] = -1
        else:
            entries[before, 3] = -1
        before = end


@nb.njit(nogil=True, cache=True)
def least_shared(sizes, threshold):  # type: ignore[no-untyped-def]
    """The least c with c / (sizes − c) ≥ threshold, by the oracle's own division."""
    least = max(np.int64(1), np.int64(threshold / (1.0 + threshold) * sizes) - 1)
    while least / (sizes - least) < threshold:
        least += 1
    return least


@nb.njit(nogil=True, cache=True)
def find_similar(first, out, bounds, texts, index, scratch):  # type: ignore[no-untyped-def]
    """Find the rows whose words are similar enough, by the same division as the oracle.

    texts: TextLookups, index: WordIndex, scratch: SimilarScratch.
    """
    low, high, latest, times, arrived = bounds
    out_lookup, out_row = out
    words, head, entries = texts.words, index.head, index.entries
    word_seen, row_seen, counts = scratch.word_seen, scratch.row_seen, scratch.counts
    used = 0
    needed_of = np.zeros(2_048, np.int64)  # by the sum of both sizes; 0 if it is not known yet
    for lookup in range(first, low.shape[0]):
        # A lookup that is repeated gets a new mark.
        scratch.mark[0] += 1
        kept, mark = used, scratch.mark[0]
        begin, end = texts.start[lookup], texts.start[lookup + 1]
        size = texts.sizes[lookup]
        if begin == end:
            continue
        for position in range(begin, end):
            word_seen[words[position]] = mark
        # Unknown words are rarer than all others; they take the first places.
        unknown = size - (end - begin)
        for place in range(unknown, size - least_common(size, texts.threshold) + 1):
            entry = head[words[begin + place - unknown]]
            while entry >= 0:
                row, row_size, row_place = entries[entry, 0], entries[entry, 1], entries[entry, 2]
                entry = entries[entry, 3]
                counts[0] += 1
                sizes = min(row_size + size, needed_of.shape[0] - 1)
                needed = needed_of[sizes]
                if needed == 0:
                    needed = least_shared(row_size + size, texts.threshold)
                    if row_size + size == sizes:
                        needed_of[sizes] = needed
                # The rarest common word comes first: at most the words after it are common too.
                if min(size - place, row_size - row_place) < needed or row_seen[row] == mark:
                    continue
                row_seen[row] = mark
                within = low[lookup] < times[row] <= high[lookup]
                if not within or arrived[row] > latest[lookup]:
                    continue
                counts[1] += 1
                common, start, remaining = 1, index.word_start[row], row_size - row_place - 1
                for position in range(start + row_place + 1, start + row_size):
                    common += word_seen[index.words[position]] == mark
                    remaining -= 1
                    if common + remaining < needed:
                        break
                if common < needed:
                    continue
                if used == out_row.shape[0]:
                    return lookup, kept
                out_lookup[used], out_row[used] = lookup, row
                used += 1
    return low.shape[0], used


@nb.njit(nogil=True, cache=True)
def renumber_words(kept, word_start, words, new_number, new_start, new_words):  # type: ignore[no-untyped-def]
    """Write the words of the kept rows with their new numbers, the rarest (highest) first."""
    used = 0
    for new_row in range(kept.shape[0]):
        new_start[new_row] = used
        size = word_start[kept[new_row] + 1] - word_start[kept[new_row]]
        for place in range(word_start[kept[new_row]], word_start[kept[new_row] + 1]):
            number, target = new_number[words[place]], used
            # Insertion sort for short texts; a text may also have a million words.
            while size <= 64 and target > new_start[new_row] and new_words[target - 1] < number:
                new_words[target] = new_words[target - 1]
                target -= 1
            new_words[target] = number
            used += 1
        if size > 64:
            row_words = new_words[new_start[new_row] : used]
            row_words[:] = np.sort(row_words)[::-1]
    new_start[kept.shape[0]] = used
