"""What is asked together: parts of the questions of a round, in one message to the child.

round      question 0: rows 0 … 99       question 1: row 100     question 2: rows 101, 102
open       0: 43 … 99                                            2: 101, 102
message    places 0 … 56                                         places 57, 58
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.operators.answers import Rows

Span = tuple[int, int, int]
"""A question, and those of its rows that are open: from one row of the round up to another."""


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A *place* is a row of the message; `positions` says which row of the round it is."""

    spans: list[Span]
    ends: Rows
    positions: Rows

    @staticmethod
    def of(spans: list[Span]) -> Message:
        _, first, end = np.array(spans, np.int32).T
        counts = end - first
        ends = np.cumsum(counts).astype(np.int32)
        positions = np.arange(ends[-1], dtype=np.int32) + np.repeat(end - ends, counts)
        return Message(spans, ends, positions)

    def span_at(self, place: int) -> Span:
        at = int(np.searchsorted(self.ends, place, side="right"))
        return self.spans[min(at, len(self.spans) - 1)]

    def open(self, first: int, last: int | None = None) -> list[Span]:
        """What is asked from one place up to another."""
        last = len(self.positions) if last is None else last
        found: list[Span] = []
        if first < last:
            begin = 0
            for (question, row, _), end in zip(self.spans, self.ends.tolist(), strict=True):
                low, high = max(first, begin), min(last, end)
                if low < high:
                    found.append((question, row + low - begin, row + high - begin))
                begin = end
        return found
