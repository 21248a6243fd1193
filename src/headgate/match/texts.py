"""Texts as arrays, and a column of texts with the forms of it that atoms look at.

    start  [0, 4, 4, 7]                 text i is data[start[i] : start[i + 1]]
    data   [r o c k p o p]              here 'rock', '' and 'pop', in UTF-8

Bytes of UTF-8 compare as the texts do by code point, so sorted texts stay sorted. Half of a
surrogate pair, which JSON allows, is kept as the three bytes that it would have.

A `TextColumn` has these forms, each computed once for a batch:

    raw ──► texts             XML without its tags                           matches
              ├──► folded     as model/text.py defines it                    starts with
              └──► readable   where a kernel can find the words              contains, similar
        ──► compared          bytes that compare as the values do            =, <, in

Invariant: the form of a text depends on this text alone, and `model` defines it. Kernels compute it
from tables (fold_kernels.py); only a text with a character that is younger than the tables is
folded by model/text.py itself.

Texts in ASCII are readable as they are; if a column has others, the folded form is read instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from headgate.match.bounds import check_starts
from headgate.match.characters import character_arrays
from headgate.match.fold_kernels import SCRATCH_MORE, SCRATCH_PER_BYTE, fold_texts
from headgate.match.link_forms import ordered_link
from headgate.match.text_kernels import TextArrays, copy_texts
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
    def is_ascii(self) -> bool:
        start, data = self.texts.start, self.texts.data
        return int(data[start[0] : start[-1]].max(initial=0)) < 128

    @cached_property
    def folded(self) -> Texts:
        return fold_all(self.texts)

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


def fold_all(texts: Texts) -> Texts:
    """Each text folded, as model/text.py does it."""
    source, characters = tuple(texts.arrays), character_arrays()
    start, is_young = np.zeros(len(texts) + 1, np.int64), np.zeros(len(texts), bool)
    size = int(texts.start[-1] - texts.start[0])
    data = np.empty(size + size // 16 + 256, np.uint8)
    longest = int(np.diff(texts.start).max(initial=0))
    room = SCRATCH_PER_BYTE * longest + SCRATCH_MORE
    scratch = np.empty(room, np.int32), np.empty(room, np.int32)
    done = fold_texts(source, 0, characters, scratch, (start, data), is_young)
    while done < len(texts):  # what is longer when it is folded needs more room
        data = np.concatenate([data, np.empty_like(data)])
        done = fold_texts(source, done, characters, scratch, (start, data), is_young)
    folded = Texts(start, frozen(data[: start[-1]]))
    if not is_young.any():
        return folded
    return texts_of(
        fold(texts.text(at)) if is_young[at] else folded.encoded(at) for at in range(len(texts))
    )


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
