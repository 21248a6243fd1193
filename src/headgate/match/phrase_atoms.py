"""Atoms on phrases: `title contains phrase 'rock concert'`, all found in one pass over the words.

The phrases on an attribute are an automaton over the numbers of words (Aho and Corasick, 1975). A
node is the beginning of a phrase. Reading a word leads from a node to the node that is longer by
this word, or falls back to the longest suffix of the words so far that is a node:

    rock ──► concert ──► hall        "rock concert tonight": rock, rock concert, then back to
    concert ──► tonight              concert, on to concert tonight; both phrases are found

Invariant: after each word the node is the longest suffix of the text so far that a phrase begins
with. A phrase lies within one text: every text begins at the root, and an unknown word leads back
there.

Cost: one look-up for each word and one for each fallback, of which there are no more than words;
then one step for each phrase that is found for the first time in an item. So no text makes it slow,
not even 'a a a …' against the phrases 'a', 'a a', 'a a a' and so on.

    root ─ first[word] ─► node              the words that phrases begin with: an array
    node ─ slots(node, word) ─► node + …    all other steps: a hash table

Rejected: a list of phrases for their rarest word, each checked word by word: common words that are
the rarest of some phrase have long lists. A walk from each word on: quadratic for 'a a a …'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.match.bit_rows import LOW_BITS, ONE, Ints, Words
from headgate.match.bounds import check_indices, check_length, check_slots, refuse_unless
from headgate.match.vocabulary import TokenColumn, build_slots, check_seed

_FIRST_MIX, _SECOND_MIX = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True, eq=False)
class PhraseAtoms:
    """The automaton; node 0 is the root, and shorter nodes come before longer ones."""

    first: Ints
    """For each word of the vocabulary the node that it leads to from the root, which may be 0."""
    seed: int
    slots: Ints
    """The hash table of the nodes but the root, each by its parent and its last word."""
    parent: Ints
    word: Ints
    fallback: Ints
    """The longest proper end of each node that is a node itself."""
    ending: Ints
    """The longest end of each node, itself included, that is a whole phrase; 0 if there is none."""
    row: Ints
    """The row of the phrase that each node is, or −1."""

    def fill(self, tokens: TokenColumn, rows: Words) -> None:
        """Set the bits of these atoms in rows that are zero."""
        fill_phrase_rows(tokens.parts, tokens.start, tokens.numbers, self._automaton(), rows)

    def _automaton(self) -> _Automaton:
        arrays = self.slots, self.parent, self.word, self.fallback, self.ending, self.row
        return _Automaton(self.first, np.uint64(self.seed), *arrays)

    def check(self, word_count: int, row_count: int) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""
        nodes = self.parent.size
        refuse_unless(nodes > 0, "parent", "there is no root")
        check_indices("first", self.first, nodes, length=word_count)
        check_seed("seed", self.seed)
        check_slots("phrase slots", self.slots, nodes - 1)
        check_indices("parent", self.parent, nodes, length=nodes)
        check_length("word", self.word, nodes)
        check_indices("fallback", self.fallback, nodes, length=nodes)
        check_indices("ending", self.ending, nodes, length=nodes)
        check_indices("phrase row", self.row, row_count, least=-1, length=nodes)
        # What falls back must come nearer to the root, or a walk would never end.
        order = np.arange(nodes)
        backward = bool((self.fallback[1:] < order[1:]).all() and (self.ending <= order).all())
        refuse_unless(backward, "fallback", "a node falls back to a longer one")
        phrases = self.ending[self.ending > 0]
        refuse_unless(bool((self.row[phrases] >= 0).all()), "ending", "it names what is no phrase")


def compile_phrases(
    phrases: Sequence[tuple[Sequence[int], int]], word_count: int
) -> PhraseAtoms | None:
    """The automaton of these phrases, each the numbers of its words and a row."""
    if not phrases:
        return None
    parent, word, row = _nodes(phrases)
    slots, seed = build_slots(
        parent.size - 1,
        lambda seed, hashes: hash_steps(parent[1:], word[1:], seed, hashes),
    )
    first = np.zeros(word_count, np.int32)
    singles = np.nonzero(parent[1:] == 0)[0] + 1
    first[word[singles]] = singles
    fallback, ending = np.zeros(parent.size, np.int32), np.zeros(parent.size, np.int32)
    automaton = PhraseAtoms(first, seed, slots, parent, word, fallback, ending, row)
    find_fallbacks(automaton._automaton(), fallback, ending)
    return automaton


def _nodes(phrases: Sequence[tuple[Sequence[int], int]]) -> tuple[Ints, Ints, Ints]:
    """Parent, last word and row of each node, the root and then one length after the other."""
    lengths = np.array([len(words) for words, _ in phrases], np.int64)
    flat = np.array([number for words, _ in phrases for number in words], np.int64)
    begin = np.cumsum(lengths) - lengths
    node = np.zeros(len(phrases), np.int64)
    longer = np.arange(len(phrases))
    parents, words, count = [np.zeros(1, np.int64)], [np.full(1, -1)], 1
    for depth in range(int(lengths.max())):
        longer = longer[lengths[longer] > depth]
        step = node[longer] << 32 | flat[begin[longer] + depth]
        steps, place = np.unique(step, return_inverse=True)
        node[longer] = count + place
        parents.append(steps >> 32)
        words.append(steps & 0xFFFFFFFF)
        count += steps.size
    row = np.full(count, -1, np.int32)
    row[node] = [row for _, row in phrases]
    return np.concatenate(parents).astype(np.int32), np.concatenate(words).astype(np.int32), row


class _Automaton(NamedTuple):
    """The fields of PhraseAtoms, as the kernels take them: int32 arrays and the seed (uint64)."""

    first: Ints
    seed: np.uint64
    slots: Ints
    parent: Ints
    word: Ints
    fallback: Ints
    ending: Ints
    row: Ints


@nb.njit(nogil=True, cache=True, inline="always")
def _hash_step(seed, node, word):  # type: ignore[no-untyped-def]
    """The finalizer of splitmix64, on node and word; uint64."""
    mixed = ((np.uint64(node) << np.uint64(32)) | np.uint64(word)) ^ (seed << np.uint64(56))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST_MIX
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND_MIX
    return mixed ^ (mixed >> np.uint64(31))


@nb.njit(nogil=True, cache=True)
def hash_steps(parent: Ints, word: Ints, seed: np.uint64, hashes: Words) -> None:
    """Out: hashes[n] of the step from parent[n] by word[n]."""
    for step in range(parent.shape[0]):
        hashes[step] = _hash_step(seed, parent[step], word[step])


@nb.njit(nogil=True, cache=True, inline="always")
def _step(node, word, automaton):  # type: ignore[no-untyped-def]
    """The node that a word leads to from a node."""
    slots, mask = automaton.slots, automaton.slots.shape[0] - 1
    while node > 0:
        slot = np.int64(_hash_step(automaton.seed, node, word) & np.uint64(mask))
        while slots[slot] >= 0:
            longer = slots[slot] + 1
            if automaton.parent[longer] == node and automaton.word[longer] == word:
                return longer
            slot = (slot + 1) & mask
        node = automaton.fallback[node]
    return automaton.first[word]


@nb.njit(nogil=True, cache=True)
def find_fallbacks(automaton, fallback, ending):  # type: ignore[no-untyped-def]
    """Out: fallback and ending, int32 [nodes], which are those of the automaton itself.

    A node falls back to where its last word leads from the fallback of its parent.
    """
    for node in range(1, automaton.parent.shape[0]):
        if automaton.parent[node] > 0:
            above = fallback[automaton.parent[node]]
            fallback[node] = _step(above, automaton.word[node], automaton)
        ending[node] = node if automaton.row[node] >= 0 else ending[fallback[node]]


@nb.njit(nogil=True, cache=True)
def fill_phrase_rows(parts, token_start, numbers, automaton, rows):  # type: ignore[no-untyped-def]
    """Set the bits of the phrases in each text; text t is one of item t // parts.

    In: token_start int64 [texts + 1], numbers int32 (words, −1 if unknown), automaton _Automaton.
    Out: rows uint64 [rows, words].
    """
    ending, fallback, row = automaton.ending, automaton.fallback, automaton.row
    for text in range(token_start.shape[0] - 1):
        item = text // parts
        place, bit = item >> 6, ONE << (np.uint64(item) & LOW_BITS)
        node = np.int32(0)
        for token in range(token_start[text], token_start[text + 1]):
            word = numbers[token]
            if word < 0:
                node = np.int32(0)
                continue
            node = _step(node, word, automaton)
            phrase = ending[node]
            # Where a phrase was found before, so were all phrases that are suffixes of it.
            while phrase > 0 and not rows[row[phrase], place] & bit:
                rows[row[phrase], place] |= bit
                phrase = ending[fallback[phrase]]
