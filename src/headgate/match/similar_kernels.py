"""The hot loops of similar_atoms.py: the distinct words of an item, and the atoms they find."""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.match.kernels import LOW_BITS, ONE, popcount
from headgate.match.text_kernels import LOWER, hash_byte, hash_end

SIGNATURE_WORDS = 4
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@nb.njit(nogil=True, cache=True)
def _is_new(data, places, token, mix, item, table, table_item):  # type: ignore[no-untyped-def]
    """Whether the word is met for the first time in this item; the table then has it."""
    begin, end = places[2 * token], places[2 * token + 1]
    mixed = mix
    for at in range(begin, end):
        mixed = hash_byte(mixed, LOWER[data[at]])
    slot = np.int64(hash_end(mixed) & np.uint64(table.shape[0] - 1))
    while table_item[slot] == item + 1:
        other = places[2 * table[slot]]
        if places[2 * table[slot] + 1] - other == end - begin:
            same = True
            for at in range(end - begin):
                same &= LOWER[data[begin + at]] == LOWER[data[other + at]]
            if same:
                return False
        slot = (slot + 1) & (table.shape[0] - 1)
    table[slot], table_item[slot] = token, item + 1
    return True


@nb.njit(nogil=True, cache=True)
def _distinct_words(  # type: ignore[no-untyped-def]
    first, last, numbers, data, places, mix, item, limit, word_item, known, table, table_item
):
    """How many distinct known words there are, which are then in `known`, and how many others."""
    known_count, unknown_count = 0, 0
    for token in range(first, last):
        number = numbers[token]
        if number >= 0:
            if word_item[number] != item + 1:
                word_item[number] = item + 1
                known[known_count] = number
                known_count += 1
        elif _is_new(data, places, token, mix, item, table, table_item):
            unknown_count += 1
        if known_count + unknown_count > limit:
            break
    return known_count, unknown_count


@nb.njit(nogil=True, cache=True)
def write_signature(words, first, last, signature, place):  # type: ignore[no-untyped-def]
    """A bit for each word, one of 256; an item without the bit does not have the word."""
    for each in range(SIGNATURE_WORDS):
        signature[place + each] = np.uint64(0)
    for at in range(first, last):
        bit = (np.uint64(words[at]) * _SPREAD) >> np.uint64(56)
        signature[place + np.int64(bit >> np.uint64(6))] |= ONE << (bit & LOW_BITS)


@nb.njit(nogil=True, cache=True)
def write_signatures(word_start, words, signature):  # type: ignore[no-untyped-def]
    """The signatures of all atoms."""
    for atom in range(word_start.shape[0] - 1):
        write_signature(
            words, word_start[atom], word_start[atom + 1], signature, SIGNATURE_WORDS * atom
        )


@nb.njit(nogil=True, cache=True, inline="always")
def _missing(signature, place, own):  # type: ignore[no-untyped-def]
    """At least how many words of the atom the item lacks."""
    missing = np.uint64(0)
    for each in range(SIGNATURE_WORDS):
        missing += popcount(signature[place + each] & ~own[each])
    return np.int64(missing)


@nb.njit(nogil=True, cache=True)
def _count_common(item, first, last, words, needed, word_item):  # type: ignore[no-untyped-def]
    """How many of the words the item has; less than needed as soon as that is certain."""
    common = 0
    for at in range(first, last):
        common += word_item[words[at]] == item + 1
        if common + (last - at - 1) < needed:
            break
    return common


@nb.njit(nogil=True, cache=True)
def fill_similar_rows(  # type: ignore[no-untyped-def]
    item_start,  # [item + 1]: where the words of each item begin
    numbers,  # the number of each word, −1 if it is unknown
    data,
    places,  # where each word lies in the data, begin and end
    mix,  # where the hash of an unknown word begins
    limit,  # an item with more distinct words is similar to nothing
    lowest,  # the lowest threshold
    rarity,  # [word]: the rarest has 0
    found_start,  # [word + 1]: where the atoms that a word finds begin
    found,
    word_start,  # [atom + 1]: where the words of an atom begin, the rarest first
    words,
    signature,  # [4 × atom]: 256 bits for the words of an atom
    most,  # [atom]: how many words an item may have
    threshold,
    row,
    word_item,  # scratch, 0: the last item that had this word, plus one
    atom_item,  # scratch, 0: the last item that this atom was looked at for, plus one
    known,  # scratch: the distinct known words of an item
    table,  # scratch: a hash table of its unknown words …
    table_item,  # scratch, 0: … and for which item each slot was used, plus one
    rows,
):
    """Set the bits of the items that are similar enough."""
    own = np.empty(SIGNATURE_WORDS, np.uint64)
    for item in range(item_start.shape[0] - 1):
        first, last = item_start[item], item_start[item + 1]
        known_count, unknown_count = _distinct_words(
            first,
            last,
            numbers,
            data,
            places,
            mix,
            item,
            limit,
            word_item,
            known,
            table,
            table_item,
        )
        count = known_count + unknown_count
        if known_count == 0 or count > limit:
            continue
        # Unknown words are the rarest of all; together with them, so many words must be tried.
        tried = min(known_count, count - _least_common(count, lowest) + 1 - unknown_count)
        if tried <= 0:
            continue
        _sort_by_rarity(known, known_count, rarity)
        write_signature(known, 0, known_count, own, 0)
        for at in range(tried):
            for place in range(found_start[known[at]], found_start[known[at] + 1]):
                atom = found[place]
                if most[atom] < count:
                    break
                if atom_item[atom] == item + 1:
                    continue
                atom_item[atom] = item + 1
                begin, end = word_start[atom], word_start[atom + 1]
                sizes = count + (end - begin)
                # c / (sizes − c) ≥ t only if c ≥ t × sizes / (1 + t); one less, as floats round.
                needed = np.int64(threshold[atom] * sizes / (1.0 + threshold[atom])) - 1
                if (end - begin) - _missing(signature, SIGNATURE_WORDS * atom, own) < needed:
                    continue
                common = _count_common(item, begin, end, words, needed, word_item)
                if common >= needed and common / (sizes - common) >= threshold[atom]:
                    rows[row[atom], item >> 6] |= ONE << (np.uint64(item) & LOW_BITS)


@nb.njit(nogil=True, cache=True)
def _least_common(size, threshold):  # type: ignore[no-untyped-def]
    """As `similar_atoms.least_common`, for the words of an item."""
    least = np.int64(threshold * size) - 1
    while least < size and least / size < threshold:
        least += 1
    return least


@nb.njit(nogil=True, cache=True)
def _sort_by_rarity(known, count, rarity):  # type: ignore[no-untyped-def]
    """The rarest first; where they are many, the library sorts them."""
    if count > 64:
        order = np.argsort(rarity[known[:count]])
        known[:count] = known[:count][order]
        return
    for at in range(1, count):
        number, place = known[at], at
        while place > 0 and rarity[known[place - 1]] > rarity[number]:
            known[place] = known[place - 1]
            place -= 1
        known[place] = number
