"""Atoms on similarity: `title similar(0.7) 'rock concert'`, by an index from words to atoms.

The Jaccard similarity of an item's words a and an atom's words b is |a ∩ b| / |a ∪ b|. Four bounds
keep most atoms from being tested (Chaudhuri, Ganti, Kaushik 2006; Bayardo, Ma, Srikant 2007):

    least    |a ∩ b| is at least the least m with m / |b| ≥ threshold, as |a ∪ b| ≥ |b|
    prefix   so the rarest |b| − least + 1 words of b and the rarest |a| − least + 1 of a have one
             in common, if all words have one order: only these are indexed and looked up
    most     |a| is at most the greatest n with |b| / n ≥ threshold, as |a ∩ b| ≤ |b|
    needed   |a ∩ b| ≥ t (|a| + |b|) / (1 + t): counting stops when that is out of reach

The atoms of a word are sorted by `most`, the greatest first: the loop ends where an item has too
many words for all that follow. Of the remaining atoms, a signature of 256 bits shows in most cases
that too many words are missing; for the rest the common words are counted, and divided as the
oracle does.

Invariant: true exactly if `len(a & b) / len(a | b) >= threshold` in floats. Division rounds but
keeps the order, so the bounds, which are computed by the same division, never miss an atom.

Cost for each item: its distinct words, which are counted exactly (unknown ones are compared byte by
byte, and only until there are too many for every atom), and |b| for each atom that is tested.

The CPU time of a batch is divided among the atoms by their tests, each weighted with its words, and
kept until `take_costs` asks for it. Muted atoms, whose answer nobody needs, are not tested.

Rejected: counts for all atoms of all words, as a common word is in most atoms; MinHash, which is
approximate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.match.bit_rows import LOW_BITS, ONE, Ints, Longs, Words, popcount
from headgate.match.bounds import check_indices, check_length, check_starts, refuse_unless
from headgate.match.text_kernels import LOWER, PROCESS_MIX, hash_byte, hash_end
from headgate.match.texts import Bytes
from headgate.match.vocabulary import TokenColumn

SIGNATURE_WORDS = 4
TEST_WEIGHT = 8
"""What a test costs besides the words of its atom, in words."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
WORDS_MAX = 2**31
"""No item has more words than this: its texts would not fit into memory."""


@dataclass(frozen=True, slots=True, eq=False)
class SimilarAtoms:
    """The atoms as lists of words, and for each word the atoms that are looked up by it."""

    rarity: Ints
    """For each word of the vocabulary how rare it is: the rarest has 0."""
    found_start: Ints
    """For each word of the vocabulary, where the atoms that are looked up by it begin in
    `found`."""
    found: Ints
    word_start: Ints
    """For each atom, where its words begin, the rarest first."""
    words: Ints
    signature: Words
    """For each atom 256 bits: one for each of its words, not always one of its own."""
    most: Longs
    threshold: npt.NDArray[np.float64]
    row: Ints
    spent_ns: npt.NDArray[np.float64] = field(init=False, repr=False)
    """For each atom its CPU time since `take_costs` was called last; an estimate."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "spent_ns", np.zeros(self.row.size))

    def fill(self, tokens: TokenColumn, rows: Words, muted: frozenset[int] = frozenset()) -> None:
        """Set the bits of these atoms in rows that are zero; those of muted rows stay zero."""
        began_ns = time.thread_time_ns()
        is_muted = np.isin(self.row, list(muted)) if muted else np.zeros(self.row.size, np.bool_)
        limit = int(self.most.max())
        start = tokens.start[:: tokens.parts]
        longest = int(np.diff(start).max(initial=0))
        size = 1 << (2 * min(limit, longest) + 2).bit_length()
        texts = tokens.texts.data
        items = _ItemWords(start, tokens.numbers, texts, tokens.places, PROCESS_MIX)
        index = _Index(*(getattr(self, name) for name in _Index._fields))
        scratch = _Scratch(
            np.zeros(self.found_start.size - 1, np.int64),
            np.zeros(self.row.size, np.int64),
            np.empty(longest, np.int32),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            is_muted,
            np.zeros(self.row.size, np.int64),
        )
        fill_similar_rows(items, index, limit, float(self.threshold.min()), scratch, rows)
        weights = scratch.tests * (TEST_WEIGHT + np.diff(self.word_start))
        total = float(weights.sum())
        if total:
            self.spent_ns[:] += weights * ((time.thread_time_ns() - began_ns) / total)

    def take_costs(self) -> dict[int, int]:
        """The CPU time in ns since the last call, by row."""
        spent = np.flatnonzero(self.spent_ns)
        cpu_ns = self.spent_ns[spent].astype(np.int64)
        self.spent_ns[:] = 0.0
        return dict(zip(self.row[spent].tolist(), cpu_ns.tolist(), strict=True))

    def check(self, word_count: int, row_count: int) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""
        atoms = self.row.size
        refuse_unless(atoms > 0, "similar row", "there is no atom")
        check_length("rarity", self.rarity, word_count)
        check_starts("found_start", self.found_start, self.found.size, parts=word_count)
        check_indices("found", self.found, atoms)
        check_starts("word_start", self.word_start, self.words.size, parts=atoms)
        check_indices("words", self.words, word_count)
        refuse_unless(bool((np.diff(self.word_start) > 0).all()), "word_start", "an atom is empty")
        check_length("signature", self.signature, SIGNATURE_WORDS * atoms)
        check_indices("most", self.most, WORDS_MAX + 1, length=atoms)
        check_length("threshold", self.threshold, atoms)
        within = (self.threshold > 0) & (self.threshold <= 1)
        refuse_unless(bool(within.all()), "threshold", "a similarity is above 0 and at most 1")
        check_indices("similar row", self.row, row_count)


def compile_similar(
    atoms: Sequence[tuple[Sequence[int], float, int]], word_count: int
) -> SimilarAtoms | None:
    """The index of these atoms, each the numbers of its distinct words, a threshold and a row."""
    if not atoms:
        return None
    uses = np.zeros(word_count, np.int64)
    np.add.at(uses, [number for words, _, _ in atoms for number in words], 1)
    rarity = np.empty(word_count, np.int32)
    rarity[np.argsort(uses, kind="stable")] = np.arange(word_count)
    rank = rarity.tolist()
    rarest_first = [sorted(words, key=rank.__getitem__) for words, _, _ in atoms]
    most_by_atom = [most_words(len(words), threshold) for words, threshold, _ in atoms]
    atoms_by_word: list[list[int]] = [[] for _ in range(word_count)]
    for atom in sorted(range(len(atoms)), key=lambda atom: -most_by_atom[atom]):
        words = rarest_first[atom]
        for number in words[: len(words) - least_common(len(words), atoms[atom][1]) + 1]:
            atoms_by_word[number].append(atom)
    word_start = np.cumsum([0, *map(len, rarest_first)]).astype(np.int32)
    flat = np.array([number for words in rarest_first for number in words], np.int32)
    signature = np.empty(SIGNATURE_WORDS * len(atoms), np.uint64)
    write_signatures(word_start, flat, signature)
    return SimilarAtoms(
        rarity,
        np.cumsum([0, *map(len, atoms_by_word)]).astype(np.int32),
        np.array([atom for each in atoms_by_word for atom in each], np.int32),
        word_start,
        flat,
        signature,
        np.array(most_by_atom, np.int64),
        np.array([threshold for _, threshold, _ in atoms], np.float64),
        np.array([row for _, _, row in atoms], np.int32),
    )


def least_common(size: int, threshold: float) -> int:
    """The least number of common words with which a set of this size can be similar enough.

    >>> least_common(6, 0.5), least_common(3, 0.7)
    (3, 3)
    """
    least = max(1, math.floor(threshold * size) - 1)
    while least / size < threshold:
        least += 1
    return least


def most_words(size: int, threshold: float) -> int:
    """The most words that an item can have to be similar enough to a set of this size.

    >>> most_words(6, 0.5), most_words(3, 0.7)
    (12, 4)
    """
    bound = size / threshold + 2
    if bound >= WORDS_MAX:
        return WORDS_MAX
    count = math.ceil(bound)
    while size / count < threshold:
        count -= 1
    return count


class _ItemWords(NamedTuple):
    """The words of a batch.

    start     int64 [items + 1], where the words of each item begin
    numbers   int32 [words], the number of each word, −1 if it is unknown
    data      uint8, the bytes of the texts
    places    int64 [2 × words], where each word lies in the data, begin and end
    mix       uint64, the initial value of the hash of unknown words
    """

    start: Longs
    numbers: Ints
    data: Bytes
    places: Longs
    mix: np.uint64


class _Index(NamedTuple):
    """The fields of SimilarAtoms, as the kernel takes them."""

    rarity: Ints
    found_start: Ints
    found: Ints
    word_start: Ints
    words: Ints
    signature: Words
    most: Longs
    threshold: npt.NDArray[np.float64]
    row: Ints


class _Scratch(NamedTuple):
    """Memory of the kernel. An entry counts only for the item that it names, so nothing is cleared.

    word_item    int64 [vocabulary], zero: the last item that had this word, plus one
    atom_item    int64 [atoms], zero: the last item that this atom was tested for, plus one
    known        int32, the distinct known words of an item
    table        int64, a hash table of the unknown words of an item …
    table_item   int64, zero: … and the item that each slot was used for, plus one
    muted        bool [atoms], which atoms are not tested
    tests        int64 [atoms], zero: how many items each atom was tested for
    """

    word_item: Longs
    atom_item: Longs
    known: Ints
    table: Longs
    table_item: Longs
    muted: npt.NDArray[np.bool_]
    tests: Longs


@nb.njit(nogil=True, cache=True)
def _is_new(items, token, item, table, table_item):  # type: ignore[no-untyped-def]
    """Whether an unknown word is met for the first time in this item; the table then has it."""
    data, places = items.data, items.places
    begin, end = places[2 * token], places[2 * token + 1]
    mixed = items.mix
    for position in range(begin, end):
        mixed = hash_byte(mixed, LOWER[data[position]])
    slot = np.int64(hash_end(mixed) & np.uint64(table.shape[0] - 1))
    while table_item[slot] == item + 1:
        other_begin = places[2 * table[slot]]
        if places[2 * table[slot] + 1] - other_begin == end - begin:
            same = True
            for position in range(end - begin):
                same &= LOWER[data[begin + position]] == LOWER[data[other_begin + position]]
            if same:
                return False
        slot = (slot + 1) & (table.shape[0] - 1)
    table[slot], table_item[slot] = token, item + 1
    return True


@nb.njit(nogil=True, cache=True)
def _distinct_words(items, item, limit, scratch):  # type: ignore[no-untyped-def]
    """How many distinct known words an item has, which are then in scratch.known, and how many
    unknown ones. It stops when they are more than `limit`."""
    known_count, unknown_count = 0, 0
    for token in range(items.start[item], items.start[item + 1]):
        number = items.numbers[token]
        if number >= 0:
            if scratch.word_item[number] != item + 1:
                scratch.word_item[number] = item + 1
                scratch.known[known_count] = number
                known_count += 1
        elif _is_new(items, token, item, scratch.table, scratch.table_item):
            unknown_count += 1
        if known_count + unknown_count > limit:
            break
    return known_count, unknown_count


@nb.njit(nogil=True, cache=True)
def _write_signature(words, signature):  # type: ignore[no-untyped-def]
    """Out: signature uint64 [4], one of 256 bits for each word (int32). An item without the bit of
    a word does not have the word."""
    signature[:] = np.uint64(0)
    for word in words:
        bit = (np.uint64(word) * _SPREAD) >> np.uint64(56)
        signature[np.int64(bit >> np.uint64(6))] |= ONE << (bit & LOW_BITS)


@nb.njit(nogil=True, cache=True)
def write_signatures(word_start, words, signature):  # type: ignore[no-untyped-def]
    """Out: signature uint64 [4 × atoms]. In: atom a has words[word_start[a] : word_start[a +
    1]]."""
    for atom in range(word_start.shape[0] - 1):
        first = SIGNATURE_WORDS * atom
        _write_signature(
            words[word_start[atom] : word_start[atom + 1]],
            signature[first : first + SIGNATURE_WORDS],
        )


@nb.njit(nogil=True, cache=True, inline="always")
def _missing(signature, place, item_signature):  # type: ignore[no-untyped-def]
    """At least how many words of an atom, whose signature is at `place`, the item lacks."""
    missing = np.uint64(0)
    for word in range(SIGNATURE_WORDS):
        missing += popcount(signature[place + word] & ~item_signature[word])
    return np.int64(missing)


@nb.njit(nogil=True, cache=True)
def _count_common(item, words, needed, word_item):  # type: ignore[no-untyped-def]
    """How many of the words the item has; a number below `needed` as soon as that is certain."""
    common, remaining = 0, words.shape[0]
    for word in words:
        common += word_item[word] == item + 1
        remaining -= 1
        if common + remaining < needed:
            break
    return common


@nb.njit(nogil=True, cache=True)
def fill_similar_rows(items, index, limit, lowest, scratch, rows):  # type: ignore[no-untyped-def]
    """Set the bits of the items that are similar enough: rows uint64 [rows, words].

    In: items _ItemWords, index _Index; an item with more than `limit` distinct words is similar to
    nothing; `lowest` is the lowest threshold. scratch: _Scratch.
    """
    item_signature, known = np.empty(SIGNATURE_WORDS, np.uint64), scratch.known
    found_start, word_start, threshold = index.found_start, index.word_start, index.threshold
    for item in range(items.start.shape[0] - 1):
        known_count, unknown_count = _distinct_words(items, item, limit, scratch)
        count = known_count + unknown_count
        if known_count == 0 or count > limit:
            continue
        # Unknown words are the rarest of all; together with them, so many words must be tried.
        tried = min(known_count, count - _least_common(count, lowest) + 1 - unknown_count)
        if tried <= 0:
            continue
        _sort_by_rarity(known[:known_count], index.rarity)
        _write_signature(known[:known_count], item_signature)
        for rank in range(tried):
            for place in range(found_start[known[rank]], found_start[known[rank] + 1]):
                atom = index.found[place]
                if index.most[atom] < count:
                    break
                if scratch.atom_item[atom] == item + 1 or scratch.muted[atom]:
                    continue
                scratch.atom_item[atom] = item + 1
                scratch.tests[atom] += 1
                begin, end = word_start[atom], word_start[atom + 1]
                sizes = count + (end - begin)
                # c / (sizes − c) ≥ t only if c ≥ t × sizes / (1 + t); one less, as floats round.
                needed = np.int64(threshold[atom] * sizes / (1.0 + threshold[atom])) - 1
                lacking = _missing(index.signature, SIGNATURE_WORDS * atom, item_signature)
                if (end - begin) - lacking < needed:
                    continue
                common = _count_common(item, index.words[begin:end], needed, scratch.word_item)
                if common >= needed and common / (sizes - common) >= threshold[atom]:
                    rows[index.row[atom], item >> 6] |= ONE << (np.uint64(item) & LOW_BITS)


@nb.njit(nogil=True, cache=True)
def _least_common(size, threshold):  # type: ignore[no-untyped-def]
    """As `least_common`, for the words of an item."""
    least = np.int64(threshold * size) - 1
    while least < size and least / size < threshold:
        least += 1
    return least


@nb.njit(nogil=True, cache=True)
def _sort_by_rarity(words, rarity):  # type: ignore[no-untyped-def]
    """Sort word numbers (int32) in place, the rarest first; many words are sorted by the library.
    Not by quicksort: see docs/design/2026-11-16-factorize.md, "Sorting in kernels"."""
    count = words.shape[0]
    if count > 64:
        order = np.argsort(rarity[words], kind="mergesort")
        words[:] = words[order]
        return
    for unsorted in range(1, count):
        number, place = words[unsorted], unsorted
        while place > 0 and rarity[words[place - 1]] > rarity[number]:
            words[place] = words[place - 1]
            place -= 1
        words[place] = number
