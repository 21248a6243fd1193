"""Atoms on words: `contains`, phrases and `similar`, all from one reading of the text.

The words in the atoms on one attribute form one vocabulary. A batch is read once, as a list of word
numbers (vocabulary.py):

    "Rock in Concert!"  ──►  [17, −1, 4]  ──►  rows of `contains 'rock'` and `contains 'concert'`
                                          ──►  phrase_atoms.py       rock concert, in concert, …
                                          ──►  similar_atoms.py      rock in concert tonight, …

`contains 'rock concert'` is the conjunction of its words (conjunctions.py makes it so), and
`contains '東京 rock'` that of a phrase and a word. Atoms on the whole item have a vocabulary of
their own, with which all texts of the item are read, each by itself: a phrase lies within one text,
while similarity and single words refer to all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numba as nb
import numpy as np

from headgate.match.batch import Batch
from headgate.match.bit_rows import LOW_BITS, ONE, Ints, Words
from headgate.match.bounds import check_indices
from headgate.match.phrase_atoms import PhraseAtoms, compile_phrases
from headgate.match.similar_atoms import SimilarAtoms, compile_similar
from headgate.match.texts import TEXT_TYPES
from headgate.match.vocabulary import Vocabulary, build_vocabulary
from headgate.model.atoms import Contains, Similar, WindowAttribute


@dataclass(frozen=True, slots=True, eq=False)
class WordAtoms:
    """The atoms on the words of an attribute, or of the whole item."""

    attribute: str | None
    vocabulary: Vocabulary
    word_rows: Ints
    """For each word the row of its `contains` atom, or −1."""
    phrases: PhraseAtoms | None
    similar: SimilarAtoms | None

    def fill(self, batch: Batch, rows: Words, muted: frozenset[int] = frozenset()) -> None:
        """Set the bits of these atoms in rows that are zero. Muted rows of `similar` stay zero; the
        others cost next to nothing."""
        columns = batch.columns_of(self.attribute, *TEXT_TYPES)
        if not columns:
            return
        tokens = self.vocabulary.read(columns, with_places=self.similar is not None)
        fill_word_rows(tokens.parts, tokens.start, tokens.numbers, self.word_rows, rows)
        if self.phrases is not None:
            self.phrases.fill(tokens, rows)
        if self.similar is not None:
            self.similar.fill(tokens, rows, muted)

    def take_costs(self) -> dict[int, int]:
        """The CPU time of `similar` in ns since the last call, by row."""
        return {} if self.similar is None else self.similar.take_costs()

    def check(self, row_count: int) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""
        self.vocabulary.check()
        count = len(self.vocabulary.words)
        check_indices("word_rows", self.word_rows, row_count, least=-1, length=count)
        for part in (self.phrases, self.similar):
            if part is not None:
                part.check(count, row_count)


@nb.njit(nogil=True, cache=True)
def fill_word_rows(parts, token_start, numbers, word_rows, rows):  # type: ignore[no-untyped-def]
    """Set the bits of the words that occur; text t is one of item t // parts.

    In: token_start int64 [texts + 1], numbers int32, word_rows int32 [words]. Out: rows uint64.
    """
    for text in range(token_start.shape[0] - 1):
        item = text // parts
        place, bit = item >> 6, ONE << (np.uint64(item) & LOW_BITS)
        for token in range(token_start[text], token_start[text + 1]):
            if numbers[token] >= 0 and word_rows[numbers[token]] >= 0:
                rows[word_rows[numbers[token]], place] |= bit


@dataclass(slots=True)
class _WordAtomBuilder:
    """The atoms on one attribute, with words numbered in the order of their first use."""

    numbers: dict[str, int] = field(default_factory=dict)
    row_of: dict[int, int] = field(default_factory=dict)
    phrases: list[tuple[list[int], int]] = field(default_factory=list)
    similar: list[tuple[list[int], float, int]] = field(default_factory=list)

    def add(self, atom: Contains | Similar, row: int) -> None:
        assert not isinstance(atom.words, WindowAttribute), "that is for window joins"
        words = [self.numbers.setdefault(word, len(self.numbers)) for word in atom.words]
        match atom:
            case Similar():
                self.similar.append((words, atom.threshold, row))
            case Contains(phrase=True):
                self.phrases.append((words, row))
            case Contains():
                assert len(words) == 1, "conjunctions.py makes a conjunction of several words"
                self.row_of[words[0]] = row

    def compiled(self, attribute: str | None) -> WordAtoms:
        count = len(self.numbers)
        word_rows = np.full(count, -1, np.int32)
        word_rows[list(self.row_of)] = list(self.row_of.values())
        return WordAtoms(
            attribute,
            build_vocabulary(self.numbers),
            word_rows,
            compile_phrases(self.phrases, count),
            compile_similar(self.similar, count),
        )


def compile_words(atoms: Iterable[tuple[Contains | Similar, int]]) -> list[WordAtoms]:
    """The atoms, each with its row, in one group for each attribute."""
    builders: dict[str | None, _WordAtomBuilder] = {}
    for atom, row in atoms:
        name = None if atom.attribute is None else str(atom.attribute)
        builders.setdefault(name, _WordAtomBuilder()).add(atom, row)
    return [builder.compiled(name) for name, builder in builders.items()]
