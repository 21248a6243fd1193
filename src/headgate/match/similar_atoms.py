"""Atoms on similarity: `title similar(0.7) 'rock concert'`, by an index from words to atoms.

The Jaccard similarity of an item's words a and an atom's words b is |a ∩ b| / |a ∪ b|. Four bounds
keep most atoms from being looked at (Chaudhuri, Ganti, Kaushik 2006; Bayardo, Ma, Srikant 2007):

    least    |a ∩ b| is at least the least m with m / |b| ≥ threshold, as |a ∪ b| ≥ |b|
    prefix   so the rarest |b| − least + 1 words of b and the rarest |a| − least + 1 of a have one
             in common, if all words have one order: index and try these, no others
    most     |a| is at most the greatest n with |b| / n ≥ threshold, as |a ∩ b| ≤ |b|
    needed   |a ∩ b| ≥ t (|a| + |b|) / (1 + t): counting stops when that is out of reach

Each word's atoms are sorted by `most`, the greatest first: the walk ends where an item has too many
words for all that follow. Of what is left, 256 bits tell in most cases that too many words are
missing; the rest is counted word by word, and divided as the oracle does it.

Law: true exactly if `len(a & b) / len(a | b) >= threshold` in floats. Division rounds but keeps the
order, so the bounds, which are found by the same division, never miss an atom.

Cost for each item: its distinct words, which are counted exactly (unknown ones are compared byte
by byte, and only until there are too many for every atom), and |b| for each atom that is left.

Rejected: counts for all atoms of all words, as a common word has most atoms; MinHash, which errs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.match.bounds import check_indices, check_length, check_starts, refuse_unless
from headgate.match.hash_tables import PROCESS_MIX
from headgate.match.kernels import Ints, Longs, Words
from headgate.match.similar_kernels import SIGNATURE_WORDS, fill_similar_rows, write_signatures
from headgate.match.vocabulary import Tokens

WORDS_MAX = 2**31
"""No item has more words than this: its texts would not fit into memory."""


@dataclass(frozen=True, slots=True, eq=False)
class SimilarAtoms:
    """The atoms as lists of words, and for each word the atoms that it may find."""

    rarity: Ints
    """For each word of the vocabulary how rare it is: the rarest has 0."""
    found_start: Ints
    """For each word of the vocabulary, where the atoms that it finds begin."""
    found: Ints
    word_start: Ints
    """For each atom, where its words begin, the rarest first."""
    words: Ints
    signature: Words
    """For each atom 256 bits: one for each of its words, not always one of its own."""
    most: Longs
    threshold: npt.NDArray[np.float64]
    row: Ints

    def fill(self, tokens: Tokens, rows: Words) -> None:
        """Set the bits of these atoms in rows that are zero."""
        limit = int(self.most.max())
        item_starts = tokens.start[:: tokens.parts]
        longest = int(np.diff(item_starts).max(initial=0))
        size = 1 << (2 * min(limit, longest) + 2).bit_length()
        fill_similar_rows(
            item_starts,
            tokens.numbers,
            tokens.texts.data,
            tokens.places,
            PROCESS_MIX,
            limit,
            float(self.threshold.min()),
            self.rarity,
            self.found_start,
            self.found,
            self.word_start,
            self.words,
            self.signature,
            self.most,
            self.threshold,
            self.row,
            np.zeros(self.found_start.size - 1, np.int64),
            np.zeros(self.row.size, np.int64),
            np.empty(longest, np.int32),
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            rows,
        )

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
    most = [most_words(len(words), threshold) for words, threshold, _ in atoms]
    finds: list[list[int]] = [[] for _ in range(word_count)]
    for atom in sorted(range(len(atoms)), key=lambda atom: -most[atom]):
        words = rarest_first[atom]
        for number in words[: len(words) - least_common(len(words), atoms[atom][1]) + 1]:
            finds[number].append(atom)
    word_start = np.cumsum([0, *map(len, rarest_first)]).astype(np.int32)
    flat = np.array([number for words in rarest_first for number in words], np.int32)
    signature = np.empty(SIGNATURE_WORDS * len(atoms), np.uint64)
    write_signatures(word_start, flat, signature)
    return SimilarAtoms(
        rarity,
        np.cumsum([0, *map(len, finds)]).astype(np.int32),
        np.array([atom for each in finds for atom in each], np.int32),
        word_start,
        flat,
        signature,
        np.array(most, np.int64),
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
    most = size / threshold + 2
    if most >= WORDS_MAX:
        return WORDS_MAX
    found = math.ceil(most)
    while size / found < threshold:
        found -= 1
    return found
