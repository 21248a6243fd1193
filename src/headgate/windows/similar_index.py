"""From words to the similar items of a window: `title similar(0.7) window.title`.

A prefix filter (Chaudhuri, Ganti, Kaushik 2006), as in match/similar_atoms.py, here for a window
that changes. All words have one order, the rarest first. Of a set of n words the rarest n − least +
1 are in the index, where `least` is the least number of words that a similar set has in common with
it; two similar sets share one of these words. Each candidate is then counted word by word, unless
the sizes of the two sets already differ too much.

    word   rarest first = highest number first       new words get the next number: they are rare
    head[word] ──► entry ──► entry ──► …             a chain of rows, the newest first
    words[word_start[row] : word_start[row + 1]]     the words of a row, the rarest first

The order stays fixed while rows come, so that a new row costs only its words. When the window has
doubled, or half of it has expired, words are renumbered by frequency, and unused words are
dropped: memory is proportional to the window, whatever words arrive.

Several predicates may share an index: it is built for the lowest of their thresholds, whose
prefixes contain those of the others. The words of a primary item are extracted once per step
(`PrimaryWords`).

Invariant: exactly the rows with `len(a & b) / len(a | b) >= threshold` in floats. Cost per lookup:
the chains of its prefix, and the words of each candidate with a similar number of words.

Rejected: one vocabulary for all windows (it never shrinks); positions within the prefix (they prune
what the sizes mostly prune already); MinHash (it is approximate).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from headgate.match.bit_rows import Longs
from headgate.model.items import Item
from headgate.model.text import words, xml_text
from headgate.model.values import Kind, Value, Xml, kind_of
from headgate.windows.find_pairs import (
    Pairs,
    SimilarScratch,
    TextLookups,
    WindowBounds,
    WordIndex,
    count_entries,
    find_pairs,
    find_similar,
    link_rows,
    link_rows_by_word,
    renumber_words,
)
from headgate.windows.growing_array import GrowingArray

Words = frozenset[str]


class PrimaryWords:
    """The words of primary items, extracted once per step."""

    def __init__(self) -> None:
        self._cache: dict[tuple[int, str | None], tuple[Mapping[str, Value], Words]] = {}

    def of(self, item: Item, attribute: str | None) -> Words:
        """As `primary_words`."""
        # Keeping a reference to the attributes keeps their id() from being reused.
        key = id(item.attributes), attribute
        entry = self._cache.get(key)
        if entry is None:
            entry = self._cache[key] = item.attributes, primary_words(item, attribute)
        return entry[1]

    def forget(self) -> None:
        self._cache.clear()


def primary_words(item: Item, attribute: str | None) -> Words:
    """The words that model/evaluate.py takes for `similar`; links are not text."""
    names: Iterable[str] = item.attributes if attribute is None else [attribute]
    values = (item.attributes.get(name) for name in names)
    return frozenset(
        word
        for value in values
        if isinstance(value, str) and kind_of(value) in (Kind.TEXT, Kind.XML)
        for word in words(xml_text(value) if isinstance(value, Xml) else value)
    )


FEW_ROWS = 1_024
"""A window is ordered by rarity for the first time when it has so many rows."""


class SimilarIndex:
    """The words of one attribute of the rows of a window."""

    def __init__(self, attribute: str, threshold: float) -> None:
        self.attribute = attribute
        self.threshold = threshold
        self.walked = np.zeros(2, np.int64)
        """The numbers of entries walked, and of rows counted word by word."""
        self._numbers: dict[str, int] = {}
        self._rows = 0
        self._ordered_rows = FEW_ROWS // 2
        self._word_start = GrowingArray(np.int64)
        self._word_start.extend(0, 1)
        self._words = GrowingArray(np.int32)
        self._mark = np.zeros(1, np.int64)
        self._row_seen = GrowingArray(np.int64)
        self._forget_entries()

    def insert(self, values: Sequence[Value | None]) -> None:
        """Add rows with these values of the attribute."""
        for value in values:
            numbers = self._numbers_of(window_words(value))
            self._words.extend(numbers, len(numbers))
            self._word_start.extend(self._words.size, 1)
        self._rows += len(values)
        if self._rows >= 2 * self._ordered_rows:
            self.keep(np.arange(self._rows))
        else:
            self._link()

    def lower_threshold(self, threshold: float) -> None:
        """Serve lookups from this threshold on too."""
        if threshold < self.threshold:
            self.threshold = threshold
            self._forget_entries()
            self._link()

    def keep(self, rows: Longs) -> None:
        """Keep only these rows, renumbered from 0, and order words by rarity."""
        start, word_numbers = self._word_start.filled, self._words.filled
        lengths = start[rows + 1] - start[rows]
        holders = np.zeros(self._rows + 1, bool)
        holders[rows] = True
        used_numbers = (
            word_numbers[np.repeat(holders[:-1], np.diff(start))]
            if word_numbers.size
            else word_numbers
        )
        uses = np.bincount(used_numbers, minlength=len(self._numbers))
        order = np.lexsort((np.arange(uses.size), -uses))
        new_number = np.empty(uses.size, np.int32)
        new_number[order] = np.arange(uses.size, dtype=np.int32)
        new_start, new_words = np.empty(rows.size + 1, np.int64), np.empty(lengths.sum(), np.int32)
        renumber_words(rows, start, word_numbers, new_number, new_start, new_words)
        used_words = int(np.count_nonzero(uses))
        renamed = ((word, int(new_number[number])) for word, number in self._numbers.items())
        self._numbers = {word: number for word, number in renamed if number < used_words}
        self._word_start.replace(new_start)
        self._words.replace(new_words)
        self._rows = rows.size
        self._ordered_rows = max(rows.size, FEW_ROWS // 2)
        self._forget_entries()
        self._link()

    def find(
        self, texts: Sequence[frozenset[str]], threshold: float, bounds: WindowBounds
    ) -> Pairs:
        """For each lookup, which is a set of words, the rows that are similar enough."""
        numbers_of_texts = [self._known_numbers(each) for each in texts]
        starts = np.zeros(len(numbers_of_texts) + 1, np.int64)
        np.cumsum([len(each) for each in numbers_of_texts], out=starts[1:])
        return find_pairs(
            find_similar,
            bounds,
            TextLookups(
                threshold,
                starts,
                np.array([number for numbers in numbers_of_texts for number in numbers], np.int64),
                np.array([len(text) for text in texts], np.int64),
            ),
            WordIndex(self._head.array, self._entries, self._word_start.array, self._words.array),
            SimilarScratch(self._word_seen.array, self._row_seen.array, self._mark, self.walked),
        )

    def _known_numbers(self, text: frozenset[str]) -> list[int]:
        numbers = self._numbers
        return sorted((numbers[word] for word in text if word in numbers), reverse=True)

    def _numbers_of(self, text: frozenset[str]) -> list[int]:
        numbers = self._numbers
        # In order of the words, as the order of a set is not the same in every process.
        new = sorted(word for word in text if word not in numbers)
        for word in new:
            numbers[word] = len(numbers)
        return sorted((numbers[word] for word in text), reverse=True)

    def _forget_entries(self) -> None:
        self._linked = 0
        self._used = 0
        self._head = GrowingArray(np.int32, fill=-1)
        self._entries = np.empty((0, 4), np.int32)
        self._word_seen = GrowingArray(np.int64)

    def _link(self) -> None:
        """Add the rows that are not yet in the chains."""
        start, flat, lowest = self._word_start.array, self._words.array, self.threshold
        count = count_entries(self._linked, self._rows, start, lowest)
        self._head.reserve(len(self._numbers))
        self._word_seen.reserve(len(self._numbers))
        self._row_seen.reserve(self._rows)
        head = self._head.array
        if self._used + count > len(self._entries):
            grown = np.empty((max(self._used + count, 2 * self._used), 4), np.int32)
            grown[: self._used] = self._entries[: self._used]
            self._entries = grown
        if self._linked:
            first, entries = self._linked, self._entries
            link_rows(first, self._rows, start, flat, lowest, head, entries, self._used)
        else:
            link_rows_by_word(self._rows, start, flat, lowest, head, self._entries)
        self._used += count
        self._linked = self._rows


def window_words(value: Value | None) -> frozenset[str]:
    """The words of `window.attribute` as in model/evaluate.py: of any text, markup included."""
    return frozenset(words(value)) if isinstance(value, str) else frozenset()
