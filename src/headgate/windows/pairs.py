"""Questions to a window and what they find: pairs of a question and a row.

A question's *bounds* are those of the window at the moment of the primary item that asks: the rows
with low < time ≤ high that had arrived by `latest`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from headgate.match.kernels import Longs

ROOM = 4_096


class Bounds(NamedTuple):
    """For each question; `times` and `arrived` are those of the window's rows."""

    low: Longs
    high: Longs
    latest: Longs
    times: Longs
    arrived: Longs

    def some(self, questions: Longs) -> Bounds:
        """The bounds of these questions only."""
        low, high, latest = (each[questions] for each in self[:3])
        return Bounds(low, high, latest, self.times, self.arrived)

    def hold(self, questions: Longs, rows: Longs) -> Pairs:
        """Those of the pairs whose row is within the bounds of the question."""
        times = self.times[rows]
        within = (self.low[questions] < times) & (times <= self.high[questions])
        within &= self.arrived[rows] <= self.latest[questions]
        return Pairs(questions[within], rows[within])


class Pairs(NamedTuple):
    questions: Longs
    rows: Longs


def find_pairs(kernel: Callable[..., tuple[int, int]], bounds: Bounds, *arguments: object) -> Pairs:
    """What a `find` kernel of join_kernels.py finds, in as much room as it needs."""
    count, first, room = bounds.low.size, 0, ROOM
    found: list[Pairs] = []
    while first < count:
        questions, rows = np.empty(room, np.int64), np.empty(room, np.int64)
        following, used = kernel(first, questions, rows, *bounds, *arguments)
        found.append(Pairs(questions[:used], rows[:used]))
        if following == first:
            room *= 4
        first = following
    return found[0] if len(found) == 1 else joined(found)


def joined(found: list[Pairs]) -> Pairs:
    """All pairs one after the other."""
    none = np.empty(0, np.int64)
    return Pairs(
        np.concatenate([none, *(each.questions for each in found)]),
        np.concatenate([none, *(each.rows for each in found)]),
    )


def distinct(found: list[Pairs], rows: int) -> Pairs:
    """The pairs that several ways have found, each once."""
    if len(found) == 1:
        return found[0]
    all_found = joined(found)
    codes = np.unique(all_found.questions * max(rows, 1) + all_found.rows)
    return Pairs(*np.divmod(codes, max(rows, 1)))
