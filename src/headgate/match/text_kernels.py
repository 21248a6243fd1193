"""The kernels over bytes: folding, words, and the places of texts among sorted texts.

Texts come as TextArrays (start, data; see texts.py). What is not ASCII has been folded by
model/text.py before a kernel reads it; a kernel only finds where a word ends, and for that it has a
bit for each code point (`letters`, uint8). Bytes that are no UTF-8 end a word; they never lead
outside of an array.

Hashes are FNV-1a from an initial value that the hash table chooses (vocabulary.py says why).
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.bit_rows import LOW_BITS, ONE

LOWER = np.zeros(256, np.uint8)
"""The folded form of each byte of a word; 0 for what is in no word."""
LOWER[48:58] = np.arange(48, 58)
LOWER[65:91] = np.arange(97, 123)
LOWER[97:123] = np.arange(97, 123)
LOWER[128:] = np.arange(128, 256)

FOLDED = np.arange(256).astype(np.uint8)
"""The folded form of each byte of an ASCII text; all kinds of space are a space."""
FOLDED[65:91] += 32
FOLDED[9:14] = 32
FOLDED[28:32] = 32

SPACE = np.uint8(32)
GAP_MAX = 4
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
def find_pieces(texts, pieces):  # type: ignore[no-untyped-def]
    """Find the pieces that are not ASCII, each with the ASCII character before it; how many.

    Out: pieces int64, begin and end of each, written if there is room for all. A few ASCII
    characters between two pieces join them, so that a text in another script is one piece and not
    one for each word; a NUL is in no piece.
    """
    start, data = texts
    count = 0
    for text in range(start.shape[0] - 1):
        begin, end = start[text], start[text + 1]
        position = begin
        while position < end:
            if data[position] < 128:
                position += 1
                continue
            first = position - 1 if position > begin and data[position - 1] != 0 else position
            last = position
            while position < end and position - last <= GAP_MAX and data[position] != 0:
                position += 1
                if data[position - 1] >= 128:
                    last = position
            if 2 * count < pieces.shape[0]:
                pieces[2 * count] = first
                pieces[2 * count + 1] = last
            count += 1
            position = last
    return count


@nb.njit(nogil=True, cache=True)
def number_pieces(data, pieces, mix, table, numbers, first):  # type: ignore[no-untyped-def]
    """Number the distinct pieces; how many.

    In: data uint8; pieces int64, begin and end of each; mix uint64, the initial value of the hash;
    table int64, a hash table with −1 everywhere and room for twice the pieces. Out: numbers int64,
    which distinct piece each is; first int64, the first piece of each number.
    """
    count, mask = 0, table.shape[0] - 1
    for piece in range(numbers.shape[0]):
        begin, end = pieces[2 * piece], pieces[2 * piece + 1]
        mixed = mix
        for position in range(begin, end):
            mixed = hash_byte(mixed, data[position])
        slot = np.int64(hash_end(mixed) & np.uint64(mask))
        while table[slot] >= 0:
            other_begin = pieces[2 * first[table[slot]]]
            if pieces[2 * first[table[slot]] + 1] - other_begin == end - begin:
                same = True
                for position in range(end - begin):
                    same &= data[begin + position] == data[other_begin + position]
                if same:
                    break
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            first[count] = piece
            count += 1
        numbers[piece] = table[slot]
    return count


@nb.njit(nogil=True, cache=True)
def fold_texts(texts, pieces, numbers, folded_pieces, folded):  # type: ignore[no-untyped-def]
    """Out: folded (TextArrays), each text in lower case, its words separated by single spaces.

    In: texts TextArrays; pieces int64, begin and end of each piece that is not ASCII; numbers
    int64, the entry of folded_pieces (TextArrays) that replaces each piece.
    """
    start, data = texts
    given_start, given_bytes = folded_pieces
    folded_start, into = folded
    used, piece = 0, 0
    folded_start[0] = 0
    for text in range(start.shape[0] - 1):
        begin, position = used, start[text]
        while position < start[text + 1]:
            if piece < numbers.shape[0] and pieces[2 * piece] == position:
                for place in range(given_start[numbers[piece]], given_start[numbers[piece] + 1]):
                    used = _append_byte(given_bytes[place], begin, used, into)
                position = pieces[2 * piece + 1]
                piece += 1
            else:
                used = _append_byte(FOLDED[data[position]], begin, used, into)
                position += 1
        if used > begin and into[used - 1] == SPACE:
            used -= 1
        folded_start[text + 1] = used


@nb.njit(nogil=True, cache=True, inline="always")
def _append_byte(byte, begin, used, folded):  # type: ignore[no-untyped-def]
    """Append a byte, unless it is a space at the beginning or after another one."""
    if byte == SPACE and (used == begin or folded[used - 1] == SPACE):
        return used
    folded[used] = byte
    return used + 1


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


@nb.njit(nogil=True, cache=True)
def _letter_length(data, position, end, letters):  # type: ignore[no-untyped-def]
    """How many bytes the character at this place has, which is not ASCII; negative if it is no
    letter."""
    lead = data[position]
    if lead < 0xC0:
        return -1
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if position + length > end:
        return -1
    code = np.int64(lead & (0x7F >> length))
    for place in range(position + 1, position + length):
        code = code << 6 | np.int64(data[place] & 0x3F)
    if code >> 3 >= letters.shape[0] or not (letters[code >> 3] >> (code & 7)) & 1:
        return -length
    return length


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
def read_words(texts, letters, table, tokens):  # type: ignore[no-untyped-def]
    """Out: tokens (TokenArrays), each text as the numbers of its words, in order. How many.

    In: texts TextArrays, ASCII or folded; letters uint8, a bit for each code point, may be empty if
    all texts are ASCII; table WordTable.
    """
    start, data = texts
    token_start, numbers, places = tokens
    seed, slots, word_start, word_bytes = table
    used, mask = 0, np.uint64(slots.shape[0] - 1)
    token_start[0] = 0
    for text in range(start.shape[0] - 1):
        position, end = start[text], start[text + 1]
        while position < end:
            begin, mixed, skipped = position, _HASH_START ^ seed, 1
            while position < end:
                byte = LOWER[data[position]]
                if byte == 0:
                    break
                if byte >= 128:
                    length = _letter_length(data, position, end, letters)
                    if length < 0:
                        skipped = -length
                        break
                    for _ in range(length):
                        mixed = hash_byte(mixed, data[position])
                        position += 1
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
