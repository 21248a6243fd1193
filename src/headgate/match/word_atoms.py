"""Atoms on words: `title contains 'rock'`, answered by a table of words (DESIGN.md §5.1).

All words that are asked for on one attribute are in one hash table. A batch is read once, word by
word, and a word that is in the table sets the item's bit in the word's row:

    "Rock in Concert!"  ──►  rock ──► row 17      in ──► –      concert ──► row 4

`contains 'rock concert'` is the conjunction of its words (program.py makes it so). An atom on the
whole item has a table of its own, which all texts of the item are read with.

Texts in ASCII are read by a kernel. In others a word may be folded to other letters, or to several
words; they are read by `model.words`, which decides. Phrases and XML are not dealt with here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.match.batch import Batch, Texts
from headgate.match.kernels import Ints, Words, fill_word_rows, hash_of
from headgate.model.atoms import Atom, Contains
from headgate.model.values import Type
from headgate.model.words import words

Bytes = npt.NDArray[np.uint8]


def is_word(atom: Atom, types: Mapping[str, Type]) -> bool:
    """Whether the atom asks for one word in texts, so that this file can answer it."""
    if not isinstance(atom, Contains) or atom.phrase or len(atom.words) != 1:
        return False
    if atom.attribute is None:
        return Type.XML not in types.values()
    return types.get(atom.attribute) is Type.TEXT


@dataclass(frozen=True, slots=True, eq=False)
class WordAtoms:
    """The words that are asked for on an attribute, or on the whole item."""

    attribute: str | None
    row_of: Mapping[str, int]
    slots: Ints
    """The hash table: the number of a word at or behind its hash, −1 where there is none."""
    word_start: Ints
    word_bytes: Bytes
    word_rows: Ints

    def fill(self, batch: Batch, rows: Words) -> None:
        """Set the bits of these atoms in rows that are zero."""
        columns = batch.texts.values() if self.attribute is None else self._own(batch)
        for texts in columns:
            foreign = fill_word_rows(
                texts.start,
                texts.data,
                self.slots,
                self.word_start,
                self.word_bytes,
                self.word_rows,
                rows,
            )
            for item in np.nonzero(foreign)[0].tolist():
                self._fill_item(item, texts.text(item), rows)

    def _own(self, batch: Batch) -> Sequence[Texts]:
        assert self.attribute is not None
        own = batch.texts.get(self.attribute)
        return () if own is None else (own,)

    def _fill_item(self, item: int, text: str, rows: Words) -> None:
        for word in words(text):
            row = self.row_of.get(word)
            if row is not None:
                rows[row, item >> 6] |= np.uint64(1) << np.uint64(item & 63)


def compile_words(atoms: Iterable[tuple[Atom, int]]) -> list[WordAtoms]:
    """The atoms, each with its row, in one table for each attribute."""
    tables: dict[str | None, dict[str, int]] = {}
    for atom, row in atoms:
        assert isinstance(atom, Contains)
        attribute = None if atom.attribute is None else str(atom.attribute)
        tables.setdefault(attribute, {})[atom.words[0]] = row
    return [_compile(attribute, row_of) for attribute, row_of in tables.items()]


def _compile(attribute: str | None, row_of: dict[str, int]) -> WordAtoms:
    encoded = [word.encode() for word in row_of]
    starts = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    data = np.frombuffer(b"".join(encoded), np.uint8)
    return WordAtoms(
        attribute,
        row_of,
        _hash_table(starts, data),
        starts,
        data,
        np.array(list(row_of.values()), np.int32),
    )


def _hash_table(starts: Ints, data: Bytes) -> Ints:
    """At most half full, its size a power of two; a word stands at the first free slot."""
    count = starts.size - 1
    size = 1 << max(3, (2 * count).bit_length())
    slots = np.full(size, -1, np.int32)
    for word in range(count):
        at = int(hash_of(data, starts[word], starts[word + 1])) & (size - 1)
        while slots[at] >= 0:
            at = (at + 1) & (size - 1)
        slots[at] = word
    return slots
