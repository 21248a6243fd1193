"""Generated subscriptions and table changes for select-joins ([Select-Joins §6, Table 2]).

A subscription selects a range of table R and a range of table S, and receives their join:

    subscriptions   the centres of ranges come from two normal distributions for each table; a width
                    below 1 is drawn again; bounds may lie outside the domain
    join values     100, of which 70 occur in S, so that 70 % of the insertions into R join; how
                    often each occurs in S follows Zipf's law with exponent 0.8
    values          drawn around one mean for each join value, whole numbers in [0, 100,000]
    events          an insertion into R together with the deletion of the oldest row of R, which
                    keeps R at its size; both tables are filled before the first event

The benchmarks use these functions with frozen arguments: add parameters, but never change which
numbers the same arguments draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.boxes import Boxes
from headgate.tables.changes import JoinChange
from headgate.tables.messages import JoinSide

DOMAIN = 100_000
JOIN_VALUES, JOINING_SHARE, ZIPF = 100, 0.7, 0.8
PAYLOAD = bytes(100)
"""The payload of a row: 100 bytes."""


def subscriptions(count: int, *, overlap: int = 0, seed: int = 2026) -> Boxes:
    """Generated subscriptions. A larger `overlap`, the x of Fig. 19, moves the centres closer."""
    chance = np.random.default_rng([seed, count])
    a_spread, c_spread = (13_000 - 2 * overlap, 7_500 - overlap) if overlap else (10_000, 6_000)
    low, high = np.empty((count, 2)), np.empty((count, 2))
    tables = (
        ((30_000, 70_000), a_spread, (20_000, 5_000)),
        ((15_000, 85_000), c_spread, (6_000, 5_000)),
    )
    for table, (means, spread, width) in enumerate(tables):
        centers = chance.choice(means, count) + chance.normal(0, spread, count)
        widths = chance.normal(*width, count)
        while (widths < 1).any():
            too_narrow = widths < 1
            widths[too_narrow] = chance.normal(*width, int(too_narrow.sum()))
        low[:, table] = np.round(centers - widths / 2)
        high[:, table] = np.round(centers + widths / 2)
    return Boxes(np.arange(count), low, high)


@dataclass(frozen=True, slots=True, eq=False)
class JoinEvents:
    """The values of all rows; rows of R are inserted in order and deleted in order."""

    r_join: Longs
    r_value: Floats
    s_join: Longs
    s_value: Floats
    r_size: int

    def filling(self) -> Iterator[JoinChange]:
        """All rows of S and the first rows of R."""
        for number, (join, value) in enumerate(zip(self.s_join, self.s_value, strict=True)):
            yield JoinChange(JoinSide.RIGHT, (number,), (int(join),), (float(value),), PAYLOAD)
        for number in range(self.r_size):
            yield self._insertion(number)

    def batch(self, first: int, count: int) -> list[JoinChange]:
        """Events from `first` on: each is an insertion and the deletion of the oldest row."""
        changes = []
        for event in range(first, first + count):
            changes.append(self._insertion(self.r_size + event))
            changes.append(JoinChange(JoinSide.LEFT, (event,)))
        return changes

    def _insertion(self, number: int) -> JoinChange:
        join, value = int(self.r_join[number]), float(self.r_value[number])
        return JoinChange(JoinSide.LEFT, (number,), (join,), (value,), PAYLOAD)


def events(
    count: int, *, r_size: int = 16_000, s_size: int = 5_100, seed: int = 2026
) -> JoinEvents:
    chance = np.random.default_rng([seed, r_size, s_size])
    weights = np.zeros(JOIN_VALUES)
    joining = int(JOINING_SHARE * JOIN_VALUES)
    weights[:joining] = np.arange(1, joining + 1) ** -ZIPF
    s_join = np.repeat(np.arange(JOIN_VALUES), shares(weights, s_size))
    r_join = chance.integers(0, JOIN_VALUES, r_size + count)
    r_mean = chance.choice([25_000, 75_000], JOIN_VALUES) + chance.normal(0, 3_000, JOIN_VALUES)
    s_mean = chance.normal(50_000, 10_000, JOIN_VALUES)
    r_value = chance.normal(r_mean[r_join], 8_000)
    s_value = chance.normal(s_mean[s_join], 3_000)
    return JoinEvents(r_join, in_domain(r_value), s_join, in_domain(s_value), r_size)


def shares(weights: Floats, total: int) -> Longs:
    """Whole numbers in proportion to the weights that add up to the total."""
    edges = np.round(np.cumsum(weights) / weights.sum() * total).astype(np.int64)
    counts: Longs = np.diff(edges, prepend=0)
    return counts


def in_domain(values: Floats) -> Floats:
    return np.clip(np.round(values), 0, DOMAIN)
