"""Small numbers for byte strings: keys of rows and join values, as many as a table has.

    b"ACME" → 0    b"GOOG" → 1    b"IBM" → 2        code c is data[start[c] : start[c + 1]]
    slots  [−1, 1, −1, 0, 2, …]                     open addressing, at most half full

Law: equal strings have one code, different ones different codes, and a code never changes. Strings
are compared byte by byte, so two with the same hash are not mistaken for each other. Whoever sends
rows chooses their keys, so the hash begins with a secret of the process (match/hash_tables.py);
codes and slots are never written to a file.

Cost: about 30 ns for a short string, no object for any of them. A string is never forgotten:
whoever uses the codes makes them anew when most are of no use any more (`table.py`).

Rejected: a dictionary of Python's, for which every string first has to become an object, and which
is filled one by one whenever a state is restored.
"""

from __future__ import annotations

import numpy as np

from headgate.match.hash_tables import PROCESS_MIX
from headgate.match.texts import Bytes, Texts
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.byte_kernels import Codes, fill, intern_all

SLOTS_MIN = 64


class ByteCodes:
    def __init__(self) -> None:
        self._slots: Longs = np.full(SLOTS_MIN, -1, np.int64)
        self._start: Longs = np.zeros(SLOTS_MIN, np.int64)
        self._data: Bytes = np.zeros(SLOTS_MIN, np.uint8)
        self._count: Longs = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return int(self._count[0])

    @property
    def arrays(self) -> Codes:
        """Valid until the next `reserve`."""
        return Codes(self._slots, self._start, self._data, self._count, PROCESS_MIX)

    @property
    def texts(self) -> Texts:
        """All strings, by code."""
        count = len(self)
        return Texts(self._start[: count + 1], self._data[: self._start[count]])

    def reserve(self, texts: Texts) -> None:
        """Have room for all of these, new or not."""
        count = len(self)
        more = count + len(texts)
        if more + 1 > len(self._start):
            self._start = np.concatenate([self._start, np.zeros(more, np.int64)])
        bytes_ = int(self._start[count] + texts.start[-1] - texts.start[0])
        if bytes_ > len(self._data):
            self._data = np.concatenate([self._data, np.zeros(bytes_, np.uint8)])
        if 2 * more > len(self._slots):
            self._slots = np.full(1 << (2 * more).bit_length(), -1, np.int64)
            fill(self.arrays)

    def codes_of(self, texts: Texts) -> Longs:
        """The code of each string; those that have none get one."""
        self.reserve(texts)
        out = np.empty(len(texts), np.int64)
        intern_all(self.arrays, texts.start, texts.data, out)
        return out
