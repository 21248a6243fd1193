"""The words that atoms ask for, and texts as the numbers of these words: one pass for all of them.

    "Rock in Concert!"  ──►  [17, −1, 4]        rock is word 17, concert word 4, in is unknown

`contains`, phrases and `similar` on one attribute share a vocabulary, and so one reading of its
column; atoms on the whole item share another, with which all texts of an item are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from headgate.match.bounds import check_slots
from headgate.match.hash_tables import build_slots, check_seed
from headgate.match.kernels import Ints, Longs
from headgate.match.text_columns import NO_LETTERS, TextColumn, letter_bits, texts_of_items
from headgate.match.text_kernels import hash_texts, read_words
from headgate.match.texts import Texts, texts_of

_NO_PLACES = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """The words of a batch: those of text t are numbers[start[t] : start[t + 1]].

    Item i has the texts from i × parts on. The places of unknown words are known if asked for:
    word w is texts.data[places[2w] : places[2w + 1]], spelled as in the text.
    """

    parts: int
    start: Longs
    numbers: Ints
    texts: Texts
    places: Longs


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Distinct folded words, each known by its place in the list."""

    words: Texts
    slots: Ints
    seed: int

    def read(self, columns: Sequence[TextColumn], *, with_places: bool) -> Tokens:
        """The words of these columns, which are not none."""
        texts = texts_of_items(columns)
        letters = NO_LETTERS if all(each.is_ascii for each in columns) else letter_bits()
        # A word needs a byte, and another one between it and the next.
        room = (int(texts.start[-1] - texts.start[0]) + len(texts)) // 2
        numbers = np.empty(room, np.int32)
        places = np.empty(2 * room, np.int64) if with_places else _NO_PLACES
        start = np.empty(len(texts) + 1, np.int64)
        seed, words = np.uint64(self.seed), self.words
        arrays = self.slots, words.start, words.data, start, numbers, places
        read_words(texts.start, texts.data, letters, seed, *arrays)
        return Tokens(len(columns), start, numbers, texts, places)

    def check(self) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""
        self.words.check("words")
        check_slots("slots", self.slots, len(self.words))
        check_seed("seed", self.seed)


def build_vocabulary(words: Iterable[str]) -> Vocabulary:
    """The vocabulary of these words, which are distinct and folded."""
    texts = texts_of(words)
    slots, seed = build_slots(
        len(texts), lambda seed, hashes: hash_texts(texts.start, texts.data, seed, hashes)
    )
    return Vocabulary(texts, slots, seed)
