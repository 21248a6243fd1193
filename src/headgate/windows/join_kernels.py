"""The hot loops of window joins: from what is asked to pairs of a question and a row of the window.

All `find` kernels have the same form. Questions are taken in order from `first` on; pairs go into
`out_question` and `out_row`. A question whose pairs do not all fit is taken back: its number is
returned, and whoever calls comes again with more room. A row counts only if it is within

    low[q] < time ≤ high[q]    and    arrived ≤ latest[q]
"""

from __future__ import annotations

import numba as nb
import numpy as np


@nb.njit(nogil=True, cache=True)
def find_all(first, out_question, out_row, low, high, latest, times, arrived, rows):  # type: ignore[no-untyped-def]
    """Every row of the window."""
    used = 0
    for question in range(first, low.shape[0]):
        kept = used
        for row in range(rows):
            if low[question] < times[row] <= high[question] and arrived[row] <= latest[question]:
                if used == out_row.shape[0]:
                    return question, kept
                out_question[used], out_row[used] = question, row
                used += 1
    return low.shape[0], used


@nb.njit(nogil=True, cache=True)
def find_in_chains(  # type: ignore[no-untyped-def]
    first, out_question, out_row, low, high, latest, times, arrived, heads, previous
):
    """The rows of a chain: heads[q] is its newest row, −1 if there is none."""
    used = 0
    for question in range(first, low.shape[0]):
        kept, row = used, heads[question]
        while row >= 0:
            if low[question] < times[row] <= high[question] and arrived[row] <= latest[question]:
                if used == out_row.shape[0]:
                    return question, kept
                out_question[used], out_row[used] = question, row
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
    """How many entries the rarest words of these rows make."""
    entries = 0
    for row in range(first_row, rows):
        size = word_start[row + 1] - word_start[row]
        if size > 0:
            entries += size - least_common(size, lowest) + 1
    return entries


@nb.njit(nogil=True, cache=True)
def link_rows(first_row, rows, word_start, words, lowest, head, entries, used):  # type: ignore[no-untyped-def]
    """Put the rarest words of new rows at the heads of their chains.

    An entry is the row, how many words it has, which of them this is, and the entry before it.
    """
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
    """The same for all rows at once, so that the entries of a chain lie side by side."""
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
            at = head[word]
            entries[at, 0], entries[at, 1], entries[at, 2] = row, size, place
            entries[at, 3] = at - 1
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
    """The least c with c / (sizes − c) ≥ threshold, by the judge's own division."""
    least = max(np.int64(1), np.int64(threshold / (1.0 + threshold) * sizes) - 1)
    while least / (sizes - least) < threshold:
        least += 1
    return least


@nb.njit(nogil=True, cache=True)
def find_similar(  # type: ignore[no-untyped-def]
    first,
    out_question,
    out_row,
    low,
    high,
    latest,
    times,
    arrived,
    threshold,
    asked_start,  # [question + 1]: where its known words begin, the rarest first
    asked,
    asked_size,  # [question]: how many words it has, unknown ones included
    head,  # [word]: the newest entry of its chain, −1 if there is none
    entries,  # [entry, 4]: see link_rows
    word_start,  # [row + 1]: where its words begin, the rarest first
    words,
    word_seen,  # scratch: [word]: the last question that has it
    row_seen,  # scratch: [row]: the last question that it was looked at for
    seen,  # scratch: [1]: what the last question was called
    counts,  # [2]: how many entries were walked, and how many rows counted word by word
):
    """The rows whose words are similar enough, counted and divided as the judge does it."""
    used = 0
    needed_of = np.zeros(2_048, np.int64)  # by the sum of both sizes; 0 if it is not known yet
    for question in range(first, low.shape[0]):
        # A question that is taken back comes again under another name.
        seen[0] += 1
        kept, mark = used, seen[0]
        begin, end = asked_start[question], asked_start[question + 1]
        size = asked_size[question]
        if begin == end:
            continue
        for at in range(begin, end):
            word_seen[asked[at]] = mark
        # Unknown words are rarer than all others; they take the first places.
        unknown = size - (end - begin)
        for place in range(unknown, size - least_common(size, threshold) + 1):
            entry = head[asked[begin + place - unknown]]
            while entry >= 0:
                row, own, row_place = entries[entry, 0], entries[entry, 1], entries[entry, 2]
                entry = entries[entry, 3]
                counts[0] += 1
                sizes = min(own + size, needed_of.shape[0] - 1)
                needed = needed_of[sizes]
                if needed == 0:
                    needed = least_shared(own + size, threshold)
                    if own + size == sizes:
                        needed_of[sizes] = needed
                # The rarest common word is met first: at most what is behind it is common too.
                if min(size - place, own - row_place) < needed or row_seen[row] == mark:
                    continue
                row_seen[row] = mark
                within = low[question] < times[row] <= high[question]
                if not within or arrived[row] > latest[question]:
                    continue
                counts[1] += 1
                common, start, left = 1, word_start[row], own - row_place - 1
                for at in range(start + row_place + 1, start + own):
                    common += word_seen[words[at]] == mark
                    left -= 1
                    if common + left < needed:
                        break
                if common < needed:
                    continue
                if used == out_row.shape[0]:
                    return question, kept
                out_question[used], out_row[used] = question, row
                used += 1
    return low.shape[0], used


@nb.njit(nogil=True, cache=True)
def renumber_words(kept, word_start, words, new_number, new_start, new_words):  # type: ignore[no-untyped-def]
    """The words of the kept rows under their new numbers, the rarest (the highest) first."""
    used = 0
    for at in range(kept.shape[0]):
        new_start[at] = used
        size = word_start[kept[at] + 1] - word_start[kept[at]]
        for place in range(word_start[kept[at]], word_start[kept[at] + 1]):
            number, target = new_number[words[place]], used
            # A text may have a million words; few are sorted fastest one by one.
            while size <= 64 and target > new_start[at] and new_words[target - 1] < number:
                new_words[target] = new_words[target - 1]
                target -= 1
            new_words[target] = number
            used += 1
        if size > 64:
            new_words[new_start[at] : used] = np.sort(new_words[new_start[at] : used])[::-1]
    new_start[kept.shape[0]] = used
