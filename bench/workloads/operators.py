"""Subscriptions and events after [Operators §5.2, Table 1]. Frozen: never edited.

The paper draws predicates with a popularity (uniform in [0, 1], or Zipf's law by rank), then
subscriptions of 3 to 5 (up to 11) distinct predicates, each chosen in proportion to its popularity,
and events of which each matches 0.2 % of the subscriptions on average. It says nothing about how
the selectivities of predicates differ. What was chosen here:

    selectivity   u ** k, with u uniform in [0, 1] and independent of popularity. k is the number
                  for which the drawn subscriptions have the paper's ratio of matches on average:
                  about 5, so that most predicates are seldom true, and a few nearly always. Equal
                  selectivities would leave Sub-Order nothing to sort its chains by.
    events        each predicate is true or false by itself (§3: "uncorrelated").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.model.atoms import Call
from headgate.model.filters import And
from headgate.operators.orders.clause_table import ClauseTable, OperatorSubscriptions

LENGTH_MIN = 3
MATCH_RATIO = 0.002

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of a figure; an exponent of None is uniform popularity."""

    subscriptions: int
    predicates: int
    exponent: float | None = 1.0
    length_max: int = 5


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    table: ClauseTable
    selectivity: Floats
    popularity: Floats

    def events(self, count: int, *, seed: int) -> npt.NDArray[np.bool_]:
        """[event, predicate]"""
        chance = np.random.default_rng([seed, count, self.selectivity.size])
        return chance.random((count, self.selectivity.size)) < self.selectivity


def workload(setting: Setting, *, seed: int = 2007, equal: bool = False) -> Workload:
    """The subscriptions as a table; `equal` gives all predicates the same selectivity."""
    chance = np.random.default_rng([seed, setting.subscriptions, setting.predicates])
    popularity = _popularity(setting, chance)
    lengths = chance.integers(LENGTH_MIN, setting.length_max + 1, setting.subscriptions)
    drawn = _distinct(popularity, (setting.subscriptions, setting.length_max), chance)
    calls = [Call("p", (number,)) for number in range(setting.predicates)]
    subscriptions = OperatorSubscriptions()
    for call in calls:
        subscriptions.predicates.number(call)
    for name, (line, length) in enumerate(zip(drawn.tolist(), lengths.tolist(), strict=True)):
        subscriptions.add(name, And(tuple(calls[number] for number in line[:length])))
    table = subscriptions.table()
    base = np.full(setting.predicates, 0.5) if equal else chance.random(setting.predicates)
    return Workload(table, base ** _exponent(np.log(base), table), popularity)


def _popularity(setting: Setting, chance: np.random.Generator) -> Floats:
    if setting.exponent is None:
        weights = chance.random(setting.predicates)
    else:
        weights = np.arange(1, setting.predicates + 1) ** -setting.exponent
        chance.shuffle(weights)  # so that the number of a predicate tells nothing about it
    return weights / weights.sum()


def _distinct(
    popularity: Floats, shape: tuple[int, int], chance: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Each line without repetitions: what was drawn already in its line is drawn again."""
    steps = np.cumsum(popularity)
    drawn = np.searchsorted(steps, chance.random(shape) * steps[-1])
    while True:
        order = np.argsort(drawn, axis=1, kind="stable")
        ordered = np.take_along_axis(drawn, order, axis=1)
        again = np.zeros(shape, np.bool_)
        np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
        if not again.any():
            return drawn
        drawn[again] = np.searchsorted(steps, chance.random(int(again.sum())) * steps[-1])


def _exponent(logarithms: Floats, table: ClauseTable) -> float:
    """The k for which the mean probability to match is MATCH_RATIO."""
    sums = np.add.reduceat(logarithms[table.predicates], table.clause_start[:-1])
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.exp(middle * sums).mean() > MATCH_RATIO else (low, middle)
    return low
