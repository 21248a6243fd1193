"""The kernels over bytes: words, and the places of texts among sorted texts.

Texts come as TextArrays (start, data; see texts.py). What is not ASCII has been folded
(fold_kernels.py) before its words are read; where a word ends is in the tables of characters.py.
Bytes that are no UTF-8 end a word; they never lead outside of an array.

Hashes are FNV-1a from an initial value that the hash table chooses (vocabulary.py says why).
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.bit_rows import LOW_BITS, ONE
from headgate.match.characters import (
    CLUSTERED,
    CONJUNCT_SHIFT,
    CONSONANT,
    CONTINUES,
    EXTEND,
    LETTER,
    LINKER,
    MARK,
    WORD_SHIFT,
    decode,
    entry_of,
)

LOWER = np.zeros(256, np.uint8)
"""The folded form of each byte of a word; 0 for what is in no word."""
LOWER[48:58] = np.arange(48, 58)
LOWER[65:91] = np.arange(97, 123)
LOWER[97:123] = np.arange(97, 123)
LOWER[128:] = np.arange(128, 256)

PROCESS_MIX = np.uint64(secrets.randbits(64))
"""Where the hashes of words of items begin, different in each process: nobody can send words that
are known to collide. Tables of such hashes live as long as a batch, and never reach a file."""
_HASH_START = np.uint64(0xCBF29CE484222325)


class TextArrays(NamedTuple):
    """Text i is data[start[i] : start[i + 1]]; start int64 [texts + 1], data uint8."""

    start: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]


class WordTable(NamedTuple):
    """The hash table of a vocabulary: seed uint64, slots int32, and its words as texts."""

    seed: np.uint64
    slots: npt.NDArray[np.int32]
    word_start: npt.NDArray[np.int64]
    word_bytes: npt.NDArray[np.uint8]


class TokenArrays(NamedTuple):
    """The words that are read.

    start     int64 [texts + 1], where the words of each text begin
    numbers   int32, the number of each word in the vocabulary, −1 if it is not there
    places    int64 [2 × words], where each word lies, begin and end; not written if it is empty
    """

    start: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int32]
    places: npt.NDArray[np.int64]


@nb.njit(nogil=True, cache=True, inline="always")
def hash_byte(mixed, byte):  # type: ignore[no-untyped-def]
    """One step of FNV-1a."""
    return (mixed ^ np.uint64(byte)) * np.uint64(0x100000001B3)


@nb.njit(nogil=True, cache=True, inline="always")
def hash_end(mixed):  # type: ignore[no-untyped-def]
    """The high bits mixed into the low ones, which are those that a table looks at."""
    return mixed ^ (mixed >> np.uint64(32))


@nb.njit(nogil=True, cache=True)
def copy_texts(texts, into, places):  # type: ignore[no-untyped-def]
    """Copy each text to its place (int64) in `into` (uint8)."""
    start, data = texts
    for text in range(start.shape[0] - 1):
        place = places[text]
        for position in range(start[text], start[text + 1]):
            into[place] = data[position]
            place += 1


@nb.njit(nogil=True, cache=True)
def hash_texts(texts, seed, hashes):  # type: ignore[no-untyped-def]
    """Out: hashes uint64 [texts], computed as `read_words` does for a word."""
    start, data = texts
    for text in range(start.shape[0] - 1):
        mixed = _HASH_START ^ seed
        for position in range(start[text], start[text + 1]):
            mixed = hash_byte(mixed, data[position])
        hashes[text] = hash_end(mixed)


@nb.njit(nogil=True, cache=True, inline="always")
def _cluster_end(data, position, end, block, entries):  # type: ignore[no-untyped-def]
    """Where the grapheme cluster ends that begins here, with a letter of a script without spaces
    or with a mark behind one (UAX #29, GB9, GB9a and GB9c). In: data
    uint8, block and entries as in CharacterArrays."""
    code, length = decode(data, position, end)
    is_conjunct = (entry_of(code, block, entries) >> CONJUNCT_SHIFT) & 3 == CONSONANT
    is_linked = False
    position += length
    while position < end and data[position] >= 128:
        code, length = decode(data, position, end)
        entry = entry_of(code, block, entries)
        word_class, conjunct = (entry >> WORD_SHIFT) & 3, (entry >> CONJUNCT_SHIFT) & 3
        if word_class == MARK and entry & CONTINUES:
            if conjunct == LINKER:
                is_linked = is_conjunct
            elif conjunct != EXTEND:
                is_conjunct = is_linked = False
        elif word_class == CLUSTERED and conjunct == CONSONANT and is_linked:
            is_linked = False
        else:
            break
        position += length
    return position


_GOES_ON, _STOPS, _CLUSTER = range(3)


@nb.njit(nogil=True, cache=True, inline="always")
def _read_part(data, position, end, is_first, follows_cluster, block, entries):  # type: ignore[no-untyped-def]
    """What the character at this place, which is not ASCII, does to a word, and where to read on.

    _GOES_ON   the character is a part of the word
    _STOPS     the word, if there is one, ends before it; what belongs to no word is skipped
    _CLUSTER   it begins a grapheme cluster, which is a word
    """
    code, length = decode(data, position, end)
    word_class = (entry_of(code, block, entries) >> WORD_SHIFT) & 3
    if word_class == LETTER or (word_class == MARK and not is_first):
        return _GOES_ON, position + length
    if word_class == CLUSTERED or (word_class == MARK and follows_cluster):
        if is_first:
            return _CLUSTER, _cluster_end(data, position, end, block, entries)
        return _STOPS, position
    return _STOPS, position + length


@nb.njit(nogil=True, cache=True)
def _find_word(data, begin, end, slot, slots, word_start, word_bytes):  # type: ignore[no-untyped-def]
    """The number of the word data[begin:end] in a WordTable, from this slot on, or −1."""
    mask = slots.shape[0] - 1
    while slots[slot] >= 0:
        word = slots[slot]
        place = word_start[word]
        if word_start[word + 1] - place == end - begin:
            same = True
            for position in range(begin, end):
                same &= LOWER[data[position]] == word_bytes[place + position - begin]
            if same:
                return word
        slot = (slot + 1) & mask
    return -1


@nb.njit(nogil=True, cache=True)
def read_words(texts, characters, table, tokens):  # type: ignore[no-untyped-def]
    """Out: tokens (TokenArrays), each text as the numbers of its words, in order. How many.

    In: texts TextArrays, ASCII or folded; characters CharacterArrays; table WordTable.
    """
    start, data = texts
    token_start, numbers, places = tokens
    seed, slots, word_start, word_bytes = table
    block, entries = characters[0], characters[1]
    used, mask = 0, np.uint64(slots.shape[0] - 1)
    token_start[0] = 0
    for text in range(start.shape[0] - 1):
        position, end = start[text], start[text + 1]
        clusters_end = np.int64(-1)  # where the last cluster ended, which a mark may follow
        while position < end:
            begin, mixed, skipped = position, _HASH_START ^ seed, 1
            while position < end:
                byte = LOWER[data[position]]
                if byte == 0:
                    break
                if byte >= 128:
                    is_first, follows = position == begin, position == clusters_end
                    part, last = _read_part(data, position, end, is_first, follows, block, entries)
                    if part == _STOPS:
                        skipped = last - position
                        break
                    while position < last:
                        mixed = hash_byte(mixed, data[position])
                        position += 1
                    if part == _CLUSTER:
                        skipped, clusters_end = 0, last
                        break
                else:
                    mixed = hash_byte(mixed, byte)
                    position += 1
            if position > begin:
                slot = np.int64(hash_end(mixed) & mask)
                word = _find_word(data, begin, position, slot, slots, word_start, word_bytes)
                numbers[used] = word
                if places.shape[0]:
                    places[2 * used] = begin
                    places[2 * used + 1] = position
                used += 1
            position += skipped
        token_start[text + 1] = used
    return used


@nb.njit(nogil=True, cache=True, inline="always")
def _is_not_greater(data, position, end, other_data, place, stop):  # type: ignore[no-untyped-def]
    """Whether other[place:stop] ≤ data[at:end], byte by byte."""
    while place < stop:
        if position == end or other_data[place] > data[position]:
            return False
        if other_data[place] < data[position]:
            return True
        position += 1
        place += 1
    return True


@nb.njit(nogil=True, cache=True)
def rank_texts(texts, ordered, ranks):  # type: ignore[no-untyped-def]
    """Out: ranks int64 [texts], how many of the texts in `ordered` (sorted) are not greater. Both
    are TextArrays."""
    start, data = texts
    sorted_start, sorted_bytes = ordered
    for text in range(start.shape[0] - 1):
        low, length = 0, sorted_start.shape[0] - 1
        while length > 0:
            half = length >> 1
            middle = low + half
            stop = sorted_start[middle + 1]
            if _is_not_greater(
                data, start[text], start[text + 1], sorted_bytes, sorted_start[middle], stop
            ):
                low = middle + 1
                length -= half + 1
            else:
                length = half
        ranks[text] = low


@nb.njit(nogil=True, cache=True)
def code_texts(texts, ordered, codes):  # type: ignore[no-untyped-def]
    """Out: codes int64 [texts], 2i + 1 for a text that is the i-th of `ordered` (sorted), else the
    even number between. Both are TextArrays."""
    rank_texts(texts, ordered, codes)
    start, data = texts
    sorted_start, sorted_bytes = ordered
    for text in range(start.shape[0] - 1):
        rank = codes[text]
        codes[text] = 2 * rank
        if rank > 0:
            place = sorted_start[rank - 1]
            length = start[text + 1] - start[text]
            if sorted_start[rank] - place == length:
                same = True
                for n in range(length):
                    same &= sorted_bytes[place + n] == data[start[text] + n]
                codes[text] -= same


@nb.njit(nogil=True, cache=True)
def find_longest(texts, prefixes, parent, longest):  # type: ignore[no-untyped-def]
    """In and out: longest int64 [texts], the rank of each text among the prefixes, then the longest
    prefix that it begins with, −1 if none. In: texts and prefixes TextArrays, parent int32."""
    start, data = texts
    prefix_start, prefix_bytes = prefixes
    for text in range(start.shape[0] - 1):
        prefix = longest[text] - 1
        if prefix >= 0:
            place = prefix_start[prefix]
            shorter = min(prefix_start[prefix + 1] - place, start[text + 1] - start[text])
            common = 0
            while common < shorter and prefix_bytes[place + common] == data[start[text] + common]:
                common += 1
            while prefix >= 0 and prefix_start[prefix + 1] - prefix_start[prefix] > common:
                prefix = np.int64(parent[prefix])
        longest[text] = prefix


@nb.njit(nogil=True, cache=True)
def fill_prefix_rows(items, longest, parent, row_start, prefix_rows, rows):  # type: ignore[no-untyped-def]
    """Set the bits of items[n] for prefix longest[n] (both int64) and all above it, in rows (uint64
    [rows, words]). In: parent int32 [prefixes], prefix_rows int32 in lists by row_start int32."""
    for n in range(items.shape[0]):
        item, prefix = items[n], longest[n]
        bit = ONE << (np.uint64(item) & LOW_BITS)
        while prefix >= 0:
            for row in range(row_start[prefix], row_start[prefix + 1]):
                rows[prefix_rows[row], item >> 6] |= bit
            prefix = np.int64(parent[prefix])
