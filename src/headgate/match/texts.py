"""Lists of texts, or of any bytes, as two arrays: what a kernel can read and a file can hold.

    start  [0, 4, 4, 7]                 text i is data[start[i] : start[i + 1]]
    data   [r o c k p o p]              here 'rock', '' and 'pop', in UTF-8

UTF-8 is compared byte by byte as its texts are by code point, so sorted texts stay sorted. Half of
a surrogate pair, which JSON lets through, is kept as the three bytes that it would have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.match.bounds import check_starts

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Texts one after the other. In a batch, the first need not begin with the first byte."""

    start: Longs
    data: Bytes

    def __len__(self) -> int:
        return self.start.size - 1

    def encoded(self, at: int) -> bytes:
        return self.data[self.start[at] : self.start[at + 1]].tobytes()

    def text(self, at: int) -> str:
        return self.encoded(at).decode("utf-8", "surrogatepass")

    def check(self, name: str, *, count: int | None = None) -> None:
        """Raise `SnapshotError` where a text would lie outside of the data."""
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
    """The same bytes, never to be written again.

    Numba compiles a kernel once for arrays that can be written and once for those that cannot.
    Arrow's bytes cannot, nor can those of a file; so no others are given to kernels to read.
    """
    data.setflags(write=False)
    return data
