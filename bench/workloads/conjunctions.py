"""Conjunctions of comparisons on 20 integer attributes, after [MBD §6].

A pool of distinct atoms on 20 attributes with values 0 … 999; conjunctions of 2 to 6 pool atoms on
distinct attributes; items that have all attributes, uniform. Pool A has 2,000 atoms, B 5,000.
The mixes:
    U    six kinds, uniform: = < <= > >= and a range
    E    half of the atoms are equalities
    S    as E, and every conjunction has an equality
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.match.batch import Batch
from headgate.model.atoms import Atom, Between, Comparison, Relation
from headgate.model.filters import And, Filter
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

ATTRIBUTES, VALUES = 20, 1_000
POOLS = {"A": 2_000, "B": 5_000}
SCHEMA = Schema(tuple(Attribute(f"a{n}", Type.INT) for n in range(ATTRIBUTES)))
RELATIONS = (
    Relation.EQUAL,
    Relation.LESS,
    Relation.LESS_EQUAL,
    Relation.GREATER,
    Relation.GREATER_EQUAL,
)
RANGE = 5


@dataclass(frozen=True, slots=True)
class Workload:
    pool: list[Atom]
    chosen: np.ndarray
    """For each conjunction the numbers of its atoms, filled up with −1."""

    def filters(self) -> list[Filter]:
        return [
            And(tuple(self.pool[at] for at in line if at >= 0)) for line in self.chosen.tolist()
        ]


def workload(pool: str, mix: str, count: int, *, seed: int = 2026) -> Workload:
    chance = np.random.default_rng([seed, POOLS[pool], "UES".index(mix)])
    keys = _distinct_atoms(chance, POOLS[pool], mix)
    attribute, kind = keys[:, 0], keys[:, 1]
    per_attribute = [np.nonzero(attribute == at)[0] for at in range(ATTRIBUTES)]
    equalities = [np.nonzero((attribute == at) & (kind == 0))[0] for at in range(ATTRIBUTES)]
    chosen = np.full((count, 6), -1, np.int64)
    lengths = chance.integers(2, 7, count)
    columns = np.argsort(chance.random((count, ATTRIBUTES)), axis=1)[:, :6]
    for at in range(ATTRIBUTES):
        where = columns == at
        chosen[where] = chance.choice(per_attribute[at], int(where.sum()))
        if mix == "S":
            first = where[:, 0]
            chosen[first, 0] = chance.choice(equalities[at], int(first.sum()))
    chosen[np.arange(6) >= lengths[:, None]] = -1
    return Workload([_atom(*map(int, key)) for key in keys], chosen)


def batch(size: int, *, seed: int) -> Batch:
    """Items as columns; those who need items make them of it."""
    chance = np.random.default_rng([seed, size])
    values = chance.integers(0, VALUES, (ATTRIBUTES, size))
    there = np.ones(size, bool)
    return Batch(size, {f"a{n}": (values[n], there) for n in range(ATTRIBUTES)})


def items_of(found: Batch, count: int, time) -> list[Item]:  # type: ignore[no-untyped-def]
    return [
        Item(
            str(at), "S", time, {name: int(column[0][at]) for name, column in found.columns.items()}
        )
        for at in range(count)
    ]


def _distinct_atoms(chance: np.random.Generator, count: int, mix: str) -> np.ndarray:
    """(attribute, kind, low, high) of distinct atoms; high only counts for ranges."""
    found = np.zeros((0, 4), np.int64)
    while len(found) < count:
        more = 2 * count
        kind = chance.integers(0, 6, more)
        if mix != "U":
            kind = np.where(chance.random(more) < 0.5, 0, chance.integers(1, 6, more))
        bounds = np.sort(chance.integers(0, VALUES, (more, 2)), axis=1)
        bounds[kind != RANGE, 0] = chance.integers(0, VALUES, int((kind != RANGE).sum()))
        high = np.where(kind == RANGE, bounds[:, 1], 0)
        new = np.stack([chance.integers(0, ATTRIBUTES, more), kind, bounds[:, 0], high], axis=1)
        both = np.concatenate([found, new])
        _, first = np.unique(both, axis=0, return_index=True)
        found = both[np.sort(first)][:count]
    return found


def _atom(attribute: int, kind: int, low: int, high: int) -> Atom:
    name = f"a{attribute}"
    return Between(name, low, high) if kind == RANGE else Comparison(name, RELATIONS[kind], low)
