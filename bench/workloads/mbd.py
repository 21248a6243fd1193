"""Subscriptions, publications and advertisements after [MBD §6]. Frozen: never edited.

The paper draws 200,000 subscriptions over twenty pre-ordered attributes with integer values, set A
on 2,000 distinct predicates and set B on 5,000; covering takes away about 75 % of A and 45 % of B.
It leaves the rest open, and says that the range of values, the number of predicates and the
operators were varied to get there. What was chosen here takes away 75 % and 44 %:

    values        0 … 19 in A, 0 … 49 in B. With five operators on twenty attributes that is exactly
                  2,000 and 5,000 predicates to draw from. It is the only difference between the
                  sets.
    operators     = for 97 % of the predicates, and < <= > >= for the rest. An inequality covers
                  much: with 4 % of them covering takes 77 % of A and 51 % of B, with a half of them
                  95 % and 94 %, and the number of distinct predicates makes no difference.
    attributes    Zipf's law with exponent 2 on their order, none twice in a subscription. With 1.5
                  fewer subscriptions speak about the same attributes: 61 % and 28 %.
    constants     Zipf's law with exponent 0.55, in another random order for each attribute. Uniform
                  ones give 72 % and 33 %.
    length        3 to 5 predicates, uniform. From 2 on the short ones cover 98 % and 95 %.
    publications  all attributes, uniform over the values, as in the paper.
    advertised    conjunctions of two ranges, each of a quarter of the values, on two of the five
                  most popular attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.match.batch import Batch, batch_of_arrow
from headgate.model.atoms import Atom, Between, Comparison, Relation
from headgate.model.filters import And, Filter
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

ATTRIBUTES = 20
VALUES = {"A": 20, "B": 50}
LENGTHS = 3, 5
EQUAL_SHARE = 0.97
ATTRIBUTE_EXPONENT, CONSTANT_EXPONENT = 2.0, 0.55
RELATIONS = (
    Relation.EQUAL,
    Relation.LESS,
    Relation.LESS_EQUAL,
    Relation.GREATER,
    Relation.GREATER_EQUAL,
)
SCHEMA = Schema(tuple(Attribute(f"a{n}", Type.INT) for n in range(ATTRIBUTES)))


@dataclass(frozen=True, slots=True, eq=False)
class Subscriptions:
    """For each subscription and predicate: attribute, place in RELATIONS and constant; attribute −1
    fills up."""

    attribute: np.ndarray
    relation: np.ndarray
    constant: np.ndarray

    def filters(self) -> list[Filter]:
        atoms: dict[tuple[int, int, int], Atom] = {}
        found: list[Filter] = []
        arrays = self.attribute.tolist(), self.relation.tolist(), self.constant.tolist()
        for line in zip(*arrays, strict=True):
            parts = []
            for key in zip(*line, strict=True):
                if key[0] >= 0:
                    if key not in atoms:
                        atoms[key] = Comparison(f"a{key[0]}", RELATIONS[key[1]], key[2])
                    parts.append(atoms[key])
            found.append(And(tuple(parts)))
        return found

    def distinct_predicates(self) -> int:
        used = self.attribute >= 0
        keys = np.stack([self.attribute[used], self.relation[used], self.constant[used]])
        return len(np.unique(keys, axis=1).T)


def subscriptions(pool: str, count: int, *, seed: int = 2026) -> Subscriptions:
    value_count = VALUES[pool]
    chance = np.random.default_rng([seed, value_count])
    shortest, longest = LENGTHS
    shape = count, longest
    # The attributes with the greatest of weight · exponential noise are a sample without
    # replacement (Gumbel's trick).
    popularity = -ATTRIBUTE_EXPONENT * np.log(np.arange(1, ATTRIBUTES + 1))
    noisy = popularity + chance.gumbel(size=(count, ATTRIBUTES))
    attribute = np.argsort(-noisy, axis=1)[:, :longest]
    attribute[np.arange(longest) >= chance.integers(shortest, longest + 1, count)[:, None]] = -1
    others = (1 - EQUAL_SHARE) / (len(RELATIONS) - 1)
    relation = chance.choice(len(RELATIONS), shape, p=[EQUAL_SHARE] + [others] * 4)
    weights = np.arange(1, value_count + 1) ** -CONSTANT_EXPONENT
    by_popularity = np.argsort(chance.random((ATTRIBUTES, value_count)), axis=1)
    drawn = chance.choice(value_count, shape, p=weights / weights.sum())
    constant = by_popularity[attribute, drawn]
    constant += (RELATIONS.index(Relation.LESS) == relation).astype(np.int64)
    constant -= (RELATIONS.index(Relation.GREATER) == relation).astype(np.int64)
    return Subscriptions(attribute, relation, constant)


def publications(pool: str, count: int, *, seed: int) -> np.ndarray:
    """[attribute, publication]"""
    chance = np.random.default_rng([seed, count, VALUES[pool]])
    return chance.integers(0, VALUES[pool], (ATTRIBUTES, count))


def batch_of(values: np.ndarray) -> Batch:
    columns = [pa.array(values[n]) for n in range(ATTRIBUTES)]
    return batch_of_arrow(pa.record_batch(columns, list(SCHEMA.names)), SCHEMA)


def advertisements(pool: str, count: int, *, seed: int = 2026) -> list[Filter]:
    """Ranges of a quarter of the values, on two of the five most popular attributes each."""
    chance = np.random.default_rng([seed, VALUES[pool], count])
    width = VALUES[pool] // 4
    found: list[Filter] = []
    for _ in range(count):
        chosen = chance.choice(5, 2, replace=False)
        low = chance.integers(0, VALUES[pool] - width, 2)
        ranges = zip(chosen.tolist(), low.tolist(), strict=True)
        found.append(And(tuple(Between(f"a{at}", each, each + width - 1) for at, each in ranges)))
    return found
