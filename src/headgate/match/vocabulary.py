"""The words that occur in atoms, and texts as the numbers of these words: one pass for all atoms.

    "Rock in Concert!"  ──►  [17, −1, 4]        rock is word 17, concert word 4, in is unknown

`contains`, phrases and `similar` on one attribute share a vocabulary, and so one reading of its
column. Atoms on the whole item share another one, with which all texts of an item are read.

*Hash tables* are one array of slots: the number of a key at or after its hash, −1 where no key is.

    slots  [−1, 4, 0, −1, 2, …]     size a power of two, at most half full, open addressing

A look-up ends at the first free slot. The keys themselves are stored elsewhere and compared, so two
keys with one hash are never confused.

*Hostile keys.* Subscribers choose the keys, and this file is public: somebody could register
100,000 words that all fall into one run of slots, and every item would pay for it. So the hash has
a seed, and the table takes the first seed with which no run is much longer than chance makes it
(about 5.2 ln n slots at half load). Keys would have to collide under all seeds. The same keys give
the same table, so a stored program keeps its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numba as nb
import numpy as np

from headgate.match.bit_rows import Ints, Longs, Words
from headgate.match.bounds import check_slots, refuse_unless
from headgate.match.characters import character_arrays
from headgate.match.text_kernels import TokenArrays, WordTable, hash_texts, read_words
from headgate.match.texts import TextColumn, Texts, texts_of, texts_of_items

SEEDS = 16


def build_slots(count: int, hashes_of: Callable[[np.uint64, Words], None]) -> tuple[Ints, int]:
    """The hash table of keys 0 … count − 1, and its seed.

    `hashes_of(seed, hashes)` writes the hash of each key.
    """
    hashes = np.empty(count, np.uint64)
    size = 1 << max(3, (2 * count).bit_length())
    for seed in range(SEEDS):
        hashes_of(np.uint64(seed), hashes)
        slots = np.full(size, -1, np.int32)
        run_max = 64 + 16 * count.bit_length() if seed < SEEDS - 1 else size
        if fill_slots(hashes, slots, run_max):
            return slots, seed
    raise AssertionError("the last seed is taken whatever its runs")


def check_seed(name: str, seed: int) -> None:
    refuse_unless(0 <= seed < SEEDS, name, f"{seed} is no seed")


@nb.njit(nogil=True, cache=True)
def fill_slots(hashes: Words, slots: Ints, run_max: int) -> bool:
    """Put each key at the first free slot; false if a run of used slots becomes too long."""
    size = slots.shape[0]
    for key in range(hashes.shape[0]):
        slot, steps = np.int64(hashes[key] & np.uint64(size - 1)), 0
        while slots[slot] >= 0:
            slot, steps = (slot + 1) & (size - 1), steps + 1
            if steps > run_max:
                return False
        slots[slot] = key
    run = 0
    for place in range(2 * size):  # a run may continue from the last slot to the first
        run = run + 1 if slots[place & (size - 1)] >= 0 else 0
        if run > run_max:
            return False
    return True


_NO_PLACES = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class TokenColumn:
    """The words of a batch: those of text t are numbers[start[t] : start[t + 1]].

    Item i has the texts from i × parts on. Word w is texts.data[places[2w] : places[2w + 1]],
    spelled as in the text; `places` is empty unless it was requested.
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

    def read(self, columns: Sequence[TextColumn], *, with_places: bool) -> TokenColumn:
        """The words of these columns, of which there is at least one."""
        texts = texts_of_items(columns)
        # A word has at least a byte and one between it and the next; a cluster has three bytes.
        room = (int(texts.start[-1] - texts.start[0]) + len(texts)) // 2
        numbers = np.empty(room, np.int32)
        places = np.empty(2 * room, np.int64) if with_places else _NO_PLACES
        start = np.empty(len(texts) + 1, np.int64)
        words = self.words
        table = WordTable(np.uint64(self.seed), self.slots, words.start, words.data)
        tokens = TokenArrays(start, numbers, places)
        # As plain tuples, which Numba takes faster (walks.py).
        read_words(tuple(texts.arrays), tuple(character_arrays()), tuple(table), tuple(tokens))
        return TokenColumn(len(columns), start, numbers, texts, places)

    def check(self) -> None:
        """Raise `SnapshotError` where a stored place is out of its bounds."""
        self.words.check("words")
        check_slots("slots", self.slots, len(self.words))
        check_seed("seed", self.seed)


def build_vocabulary(words: Iterable[str]) -> Vocabulary:
    """The vocabulary of these words, which are distinct and folded."""
    texts = texts_of(words)
    slots, seed = build_slots(
        len(texts), lambda seed, hashes: hash_texts(texts.arrays, seed, hashes)
    )
    return Vocabulary(texts, slots, seed)
