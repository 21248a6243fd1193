"""Texts as arrays, and a column of texts with the forms of it that atoms look at.

    start  [0, 4, 4, 7]                 text i is data[start[i] : start[i + 1]]
    data   [r o c k p o p]              here 'rock', '' and 'pop', in UTF-8

Bytes of UTF-8 compare as the texts do by code point, so sorted texts stay sorted. Half of a
surrogate pair, which JSON allows, is kept as the three bytes that it would have.

A `TextColumn` has these forms, each computed once for a batch:

    raw ──► texts             XML without its tags                           matches
              ├──► folded     as model/text.py folds them                    starts with
              └──► readable   where a kernel can find the words              contains, similar
        ──► compared          bytes that compare as the values do            =, <, in

Invariant: the form of a text depends on this text alone, and `model` defines it. ASCII is folded by
a kernel. *Pieces* that are not ASCII are folded by `model.text.fold`: each distinct piece of a
column once, together with the ASCII character before it, which an accent may belong to. That is
correct because no character combines with an ASCII character after it: if all parts but the first
begin with an ASCII character, folding the parts gives the folded text. So 'it’s' costs one
look-up.

Texts in ASCII are readable as they are; if a column has others, the folded form is read instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from headgate.match.bounds import check_starts
from headgate.match.link_forms import ordered_link
from headgate.match.text_kernels import (
    PROCESS_MIX,
    TextArrays,
    copy_texts,
    find_pieces,
    fold_texts,
    number_pieces,
)
from headgate.model.text import fold, xml_text
from headgate.model.values import Type

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Texts in one array of bytes. In a batch, the first need not begin with the first byte."""

    start: Longs
    data: Bytes

    @property
    def arrays(self) -> TextArrays:
        """The texts as the kernels take them."""
        return TextArrays(self.start, self.data)

    def __len__(self) -> int:
        return self.start.size - 1

    def encoded(self, number: int) -> bytes:
        return self.data[self.start[number] : self.start[number + 1]].tobytes()

    def text(self, number: int) -> str:
        return self.encoded(number).decode("utf-8", "surrogatepass")

    def check(self, name: str, *, count: int | None = None) -> None:
        """Raise `SnapshotError` if a text would lie outside of the data."""
        check_starts(name, self.start, self.data.size, parts=count)


def texts_of(values: Iterable[str | bytes]) -> Texts:
    """These texts, in this order."""
    encoded = [
        value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
        for value in values
    ]
    start = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(each) for each in encoded], out=start[1:])
    return Texts(start, np.frombuffer(b"".join(encoded), np.uint8))


def frozen(data: Bytes) -> Bytes:
    """The same array, made read-only.

    Numba compiles a kernel once for writable and once for read-only arrays. Bytes of Arrow and of
    files are read-only, so all bytes that kernels read are made so.
    """
    data.setflags(write=False)
    return data


Mask = npt.NDArray[np.bool_]
TEXT_TYPES = (Type.TEXT, Type.XML)
NO_LETTERS = frozen(np.zeros(0, np.uint8))
PIECES_AT_ONCE = 64
"""How many pieces are folded by one call: more would not fit into the CPU cache."""


@dataclass(frozen=True, eq=False)  # no slots: cached properties need a dictionary
class TextColumn:
    """The values of a text, XML, link or bytes attribute; a missing one is empty and not valid."""

    raw: Texts
    valid: Mask
    type: Type

    @cached_property
    def texts(self) -> Texts:
        if self.type is not Type.XML:
            return self.raw
        # A document without text is an empty text, and so is a missing document.
        return texts_of(
            xml_text(self.raw.text(at)) if self.valid[at] else "" for at in range(len(self.raw))
        )

    @cached_property
    def pieces(self) -> Longs:
        """Begin and end of each piece that is not ASCII."""
        bounds = np.empty(0, np.int64)
        count = find_pieces(self.texts.arrays, bounds)
        if count:
            bounds = np.empty(2 * count, np.int64)
            find_pieces(self.texts.arrays, bounds)
        return bounds

    @property
    def is_ascii(self) -> bool:
        return not self.pieces.size

    @cached_property
    def folded(self) -> Texts:
        texts, pieces = self.texts, self.pieces
        numbers, distinct = self._distinct_pieces()
        folded_pieces = texts_of(
            fold_pieces([each.decode("utf-8", "surrogatepass") for each in distinct])
        )
        size = int(texts.start[-1] - texts.start[0] + np.diff(folded_pieces.start)[numbers].sum())
        start, data = np.empty(texts.start.size, np.int64), np.empty(size, np.uint8)
        fold_texts(texts.arrays, pieces, numbers, folded_pieces.arrays, TextArrays(start, data))
        return Texts(start, frozen(data[: start[-1]]))

    def _distinct_pieces(self) -> tuple[Longs, list[bytes]]:
        """The distinct pieces, and which one of them each piece is."""
        data, pieces = self.texts.data, self.pieces
        numbers, first = np.empty((2, pieces.size // 2), np.int64)
        table = np.full(1 << pieces.size.bit_length(), -1, np.int64)
        count = number_pieces(data, pieces, PROCESS_MIX, table, numbers, first)
        places = pieces.reshape(-1, 2)[first[:count]].tolist()
        return numbers, [data[begin:end].tobytes() for begin, end in places]

    @property
    def readable(self) -> Texts:
        return self.texts if self.is_ascii else self.folded

    @cached_property
    def compared(self) -> Texts:
        if self.type is Type.BYTES:
            return self.raw
        if self.type is Type.LINK:
            links = [self.raw.encoded(at) for at in range(len(self.raw))]
            keys = {each: ordered_link(each.decode("utf-8", "surrogatepass")) for each in {*links}}
            return texts_of(keys[each] for each in links)
        return self.folded


def fold_pieces(pieces: Sequence[str]) -> list[str]:
    """Each piece folded, with the space that it begins or ends with. No piece has a NUL in it."""
    folded: list[str] = []
    for first in range(0, len(pieces), PIECES_AT_ONCE):
        joined = "\0".join(["", *pieces[first : first + PIECES_AT_ONCE], ""])
        folded += fold(joined).split("\0")[1:-1]
    return folded


def texts_of_items(columns: Sequence[TextColumn]) -> Texts:
    """The readable texts of all columns, item by item: those of item i begin at i × columns."""
    parts = [column.readable for column in columns]
    if len(parts) == 1:
        return parts[0]
    lengths = np.stack([np.diff(texts.start) for texts in parts], axis=1)
    start = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths.reshape(-1), out=start[1:])
    data = np.empty(int(start[-1]), np.uint8)
    for part, texts in enumerate(parts):
        copy_texts(texts.arrays, data, start[part :: len(parts)])
    return Texts(start, frozen(data))


@cache
def letter_bits() -> Bytes:
    """A bit for each code point: whether it is part of a word, as model/text.py defines it."""
    bits = [chr(code).isalnum() for code in range(0x110000)]
    return frozen(np.packbits(bits, bitorder="little"))
