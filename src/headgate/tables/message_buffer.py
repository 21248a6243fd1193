"""Messages as arrays, and the buffer that kernels write them to.

A message is one row of `header` (int64, columns below) and a stretch of `numbers` (float64) that
begins at its START: its region.

    numbers   the tuple that must be selected | tuples that must not be | pairs of the skyline

A change, as kernels take it, is a row (kind, side, join value, new slot, old slot) of int64.

Kernels do not allocate: before each change they check the free space for the most it can write, and
return what is needed; the caller enlarges the buffer and continues.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.tables.box_tree_kernels import Floats, Longs

INSERT, DELETE, REPLACE = 0, 1, 2
# Columns of a change.
KIND, SIDE, JOIN, NEW, OLD = range(5)
# Columns of a message's header.
OF_CHANGE, MESSAGE_KIND, ROW_SIDE, OWN_SIDE, SLOT, PARTNER, NUMBER, REPLACES = range(8)
START, EXCLUDED, PAIRS, HEADER = range(8, 12)
SPACE_MIN = 1_024


class MessageArrays(NamedTuple):
    """The arrays of a buffer, as kernels write to them."""

    header: Longs  # [message, HEADER]
    numbers: Floats
    used: Longs  # [2]: messages and numbers


class MessageHead(NamedTuple):
    """The header of a message; −1 means none."""

    change: int  # the position of the change in its batch
    kind: int
    row_side: int  # the table of the row that is sent
    own_side: int  # the table of the tuple that must be selected
    slot: int  # the row that is sent
    partner: int  # a row of the other table that is sent with it
    number: int  # the version number of the row
    replaces: int  # the version that a client drops when it gets this one


@dataclass(slots=True)
class MessageBuffer:
    """The messages of one batch. It grows, and is reused for the next batch."""

    header: Longs = field(default_factory=lambda: np.empty((SPACE_MIN, HEADER), np.int64))
    numbers: Floats = field(default_factory=lambda: np.empty(SPACE_MIN))
    marks: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(SPACE_MIN, np.bool_))
    """Working memory: one mark per row of a join value."""
    used: Longs = field(default_factory=lambda: np.zeros(2, np.int64))

    @property
    def arrays(self) -> MessageArrays:
        return MessageArrays(self.header, self.numbers, self.used)

    def make_space(self, needs: Longs) -> None:
        """Grow by what a kernel needs: messages, numbers, (places of an index), marks."""
        messages, numbers, _, marks = needs[:4].tolist()
        if self.used[0] + messages > len(self.header):
            more_headers = np.empty((len(self.header) + messages, HEADER), np.int64)
            self.header = np.concatenate([self.header, more_headers])
        if self.used[1] + numbers > len(self.numbers):
            more_numbers = np.empty(len(self.numbers) + numbers)
            self.numbers = np.concatenate([self.numbers, more_numbers])
        if marks > len(self.marks):
            self.marks = np.empty(2 * marks, np.bool_)

    def written(self) -> tuple[Longs, Floats]:
        """Copies of the headers and numbers that were written."""
        return self.header[: self.used[0]].copy(), self.numbers[: self.used[1]].copy()


@nb.njit(nogil=True, cache=True)
def start_message(out, head):  # type: ignore[no-untyped-def]
    """Append a header (out: MessageArrays, head: MessageHead) and return it; its numbers follow."""
    line = out.header[out.used[0]]
    line[OF_CHANGE], line[MESSAGE_KIND] = head.change, head.kind
    line[ROW_SIDE], line[OWN_SIDE] = head.row_side, head.own_side
    line[SLOT], line[PARTNER] = head.slot, head.partner
    line[NUMBER], line[REPLACES] = head.number, head.replaces
    line[START], line[EXCLUDED], line[PAIRS] = out.used[1], 0, 0
    out.used[0] += 1
    return line


@nb.njit(nogil=True, cache=True)
def put_selected(out, line, values, excluded):  # type: ignore[no-untyped-def]
    """Append the tuple that must be selected (float64, [attribute]), and those that must not be
    (float64, [tuple, attribute])."""
    used = out.used[1]
    for d in range(values.shape[0]):
        out.numbers[used], used = values[d], used + 1
    for e in range(excluded.shape[0]):
        for d in range(values.shape[0]):
            out.numbers[used], used = excluded[e, d], used + 1
    line[EXCLUDED] = excluded.shape[0]
    out.used[1] = used


@nb.njit(nogil=True, cache=True)
def put_row_pair(out, line, values):  # type: ignore[no-untyped-def]
    """Append the pair (x, x) for a row's values, as the only pair."""
    used = out.used[1]
    for _ in range(2):
        for d in range(values.shape[0]):
            out.numbers[used], used = values[d], used + 1
    line[PAIRS] = 1
    out.used[1] = used
