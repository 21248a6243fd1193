"""Atoms on phrases: `title contains phrase 'rock concert'`, all found in one walk over the words.

The phrases on an attribute are an automaton over the numbers of words (Aho and Corasick, 1975). A
node is what some phrase begins with; reading a word leads from a node to the one that is longer by
it, or falls back to the longest end of what was read that is a node too:

    rock ──► concert ──► hall        "rock concert tonight": rock, rock concert, then back to
    concert ──► tonight              concert, on to concert tonight; both phrases are found

Law: after each word the node is the longest end of the text so far that a phrase begins with. A
phrase lies within one text: every text begins at the root, and an unknown word leads back there.

Cost: one look-up for each word and one for each step back, of which there are no more than words;
then one step for each phrase that is found for the first time in an item. So no text makes it
slow, not even 'a a a …' against the phrases 'a', 'a a', 'a a a' and so on.

    root ─ first[word] ─► node              the words that phrases begin with: an array
    node ─ slots(node, word) ─► node + …    all other steps: a hash table

Rejected: a list of phrases for their rarest word, each checked word by word: common words that are
the rarest of some phrase have long lists. A walk from each word on: quadratic for 'a a a …'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headgate.match.bounds import check_indices, check_length, check_slots, refuse_unless
from headgate.match.hash_tables import build_slots, check_seed
from headgate.match.kernels import Ints, Words
from headgate.match.phrase_kernels import fill_phrase_rows, find_fallbacks, hash_steps
from headgate.match.vocabulary import Tokens


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

    def fill(self, tokens: Tokens, rows: Words) -> None:
        """Set the bits of these atoms in rows that are zero."""
        fill_phrase_rows(
            tokens.parts,
            tokens.start,
            tokens.numbers,
            self.first,
            np.uint64(self.seed),
            self.slots,
            self.parent,
            self.word,
            self.fallback,
            self.ending,
            self.row,
            rows,
        )

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
        whole = self.ending[self.ending > 0]
        refuse_unless(bool((self.row[whole] >= 0).all()), "ending", "it names what is no phrase")


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
    find_fallbacks(first, np.uint64(seed), slots, parent, word, row, fallback, ending)
    return PhraseAtoms(first, seed, slots, parent, word, fallback, ending, row)


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
