"""Subscriptions and events after [Select-Joins §6, JoinSide 2]. Frozen: never edited.

The paper leaves some of it open; what was chosen here:

    subscriptions   half of the centers from either normal distribution, for either table by itself;
    a
                    width below 1 is drawn again. Bounds may lie outside the domain.
    join values     100. 70 of them have S tuples, so that 70 % of insertions into R join; how many
                    follows Zipf's law with exponent 0.8. Insertions into R take all join values
                    alike often.
    N₁, N₂          drawn once for each join value; a stock's ratios are near each other, and so are
                    its ratings. Values are whole numbers in [0, 100,000].
    events          an insertion into R, together with the deletion of the oldest tuple of R, which
                    keeps R at its size. The database is filled before the first event.
    payload         100 bytes in each tuple; a number counts four bytes.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headgate.tables.boxes import Boxes
from headgate.tables.changes import JoinChange
from headgate.tables.messages import JoinSide

DOMAIN = 100_000
JOIN_VALUES, JOINING_SHARE, ZIPF = 100, 0.7, 0.8
PAYLOAD = bytes(100)


def subscriptions(count: int, *, overlap: int = 0, seed: int = 2026) -> Boxes:
    """`overlap` is the x of Fig. 19: centers lie closer together."""
    chance = np.random.default_rng([seed, count])
    a_spread, c_spread = (13_000 - 2 * overlap, 7_500 - overlap) if overlap else (10_000, 6_000)
    low, high = np.empty((count, 2)), np.empty((count, 2))
    tables = (
        ((30_000, 70_000), a_spread, (20_000, 5_000)),
        ((15_000, 85_000), c_spread, (6_000, 5_000)),
    )
    for at, (means, spread, width) in enumerate(tables):
        centers = chance.choice(means, count) + chance.normal(0, spread, count)
        widths = chance.normal(*width, count)
        while (widths < 1).any():
            again = widths < 1
            widths[again] = chance.normal(*width, int(again.sum()))
        low[:, at], high[:, at] = np.round(centers - widths / 2), np.round(centers + widths / 2)
    return Boxes(np.arange(count), low, high)


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Values by tuple; tuples of R are inserted in order, and leave in order."""

    r_join: np.ndarray
    r_value: np.ndarray
    s_join: np.ndarray
    s_value: np.ndarray
    r_size: int

    def filling(self) -> Iterator[JoinChange]:
        """S, and the first tuples of R."""
        for number, (join, value) in enumerate(zip(self.s_join, self.s_value, strict=True)):
            yield JoinChange(JoinSide.RIGHT, (number,), (int(join),), (float(value),), PAYLOAD)
        for number in range(self.r_size):
            yield self._insertion(number)

    def batch(self, first: int, count: int) -> list[JoinChange]:
        """Events from `first` on: each an insertion and the deletion of the oldest."""
        found = []
        for event in range(first, first + count):
            found.append(self._insertion(self.r_size + event))
            found.append(JoinChange(JoinSide.LEFT, (event,)))
        return found

    def _insertion(self, number: int) -> JoinChange:
        join, value = int(self.r_join[number]), float(self.r_value[number])
        return JoinChange(JoinSide.LEFT, (number,), (join,), (value,), PAYLOAD)


def events(count: int, *, r_size: int = 16_000, s_size: int = 5_100, seed: int = 2026) -> Events:
    chance = np.random.default_rng([seed, r_size, s_size])
    weights = np.zeros(JOIN_VALUES)
    joining = int(JOINING_SHARE * JOIN_VALUES)
    weights[:joining] = np.arange(1, joining + 1) ** -ZIPF
    s_join = np.repeat(np.arange(JOIN_VALUES), _shares(weights, s_size))
    r_join = chance.integers(0, JOIN_VALUES, r_size + count)
    r_mean = chance.choice([25_000, 75_000], JOIN_VALUES) + chance.normal(0, 3_000, JOIN_VALUES)
    s_mean = chance.normal(50_000, 10_000, JOIN_VALUES)
    r_value = chance.normal(r_mean[r_join], 8_000)
    s_value = chance.normal(s_mean[s_join], 3_000)
    return Events(r_join, _in_domain(r_value), s_join, _in_domain(s_value), r_size)


def stock_events(path: Path, count: int, *, seed: int = 2026) -> Events:
    """Real price-to-earning ratios of 100 stocks, mapped to the domain; ratings are made up.

    The file has one day and no ratings. The seven months before are a random walk that ends
    there, with steps of two per cent. 70 stocks have ratings (1 to 5, most 3 or 4), 2,300 in all,
    mapped and perturbed as in the paper.
    """
    chance = np.random.default_rng([seed, count])
    with path.open(encoding="utf-8", newline="") as file:
        ratios = [
            float(row["Price/Earnings"]) for row in csv.DictReader(file) if row["Price/Earnings"]
        ]
    chosen = chance.choice(np.clip(np.array(ratios), 0, 100), JOIN_VALUES, replace=False)
    r_size = JOIN_VALUES * 7 * 21
    total = r_size + count
    r_join = np.arange(total) % JOIN_VALUES
    days = -(-total // JOIN_VALUES)
    walk = np.cumsum(chance.normal(0, 0.02, (days, JOIN_VALUES)), axis=0)
    r_value = (chosen * np.exp(walk - walk[-1])).ravel()[:total] / 100 * DOMAIN
    weights = np.zeros(JOIN_VALUES)
    weights[: int(JOINING_SHARE * JOIN_VALUES)] = 1
    s_join = np.repeat(np.arange(JOIN_VALUES), _shares(weights, 2_300))
    ratings = chance.choice([1, 2, 3, 4, 5], JOIN_VALUES, p=[0.05, 0.1, 0.4, 0.3, 0.15])
    s_value = (chance.normal(ratings[s_join], 0.5) - 1) / 4 * DOMAIN
    return Events(r_join, _in_domain(r_value), s_join, _in_domain(s_value), r_size)


def _shares(weights: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers in proportion to the weights that add up to the total."""
    edges = np.round(np.cumsum(weights) / weights.sum() * total).astype(np.int64)
    return np.diff(edges, prepend=0)


def _in_domain(values: np.ndarray) -> np.ndarray:
    return np.clip(np.round(values), 0, DOMAIN)
