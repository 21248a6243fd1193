"""Groups of conjunctions that differ in one condition, found without comparing pairs.

    a b c ──┬─ leave out a ──► key(b c, place of a)
            ├─ leave out b ──► key(a c, place of b)       equal keys ──► one group
            └─ leave out c ──► key(a b, place of c)

A condition's hash is a random number, a set's hash is their sum, so leaving one out is a
subtraction. Equal keys are a hint: the rests are compared before a group is believed, so that
nobody can make conjunctions merge by choosing their hashes.

Cost: a sort of n · k keys; Python sees only groups of two and more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.cover.conditions import Conditions, Conjunction
from headgate.model.implies_values import Place

Longs = npt.NDArray[np.int64]
_SEED = 20_061_116


@dataclass(frozen=True, slots=True)
class Group:
    """Conjunctions that are `rest` and one condition more, all at one place."""

    rest: Conjunction
    members: list[tuple[Conjunction, int]]


def leave_one_out(
    conjunctions: Sequence[Conjunction], conditions: Conditions, is_new: npt.NDArray[np.bool_]
) -> Iterator[Group]:
    """Groups that have a new member, larger ones first. Only values are left out."""
    owners, left_out, keys = _keys(conjunctions, conditions)
    order = np.argsort(keys, kind="stable")
    is_start = np.ones(keys.size, bool)
    is_start[1:] = keys[order[1:]] != keys[order[:-1]]
    starts = np.flatnonzero(is_start)
    sizes = np.diff(np.append(starts, keys.size))
    new_members = np.add.reduceat(is_new[owners[order]], starts) if keys.size else sizes
    wanted = np.flatnonzero((sizes > 1) & (new_members > 0))
    for at in wanted[np.argsort(-sizes[wanted], kind="stable")].tolist():
        entries = order[starts[at] : starts[at] + sizes[at]]
        pairs = zip(owners[entries].tolist(), left_out[entries].tolist(), strict=True)
        yield from _checked([(conjunctions[owner], number) for owner, number in pairs], conditions)


def _keys(
    conjunctions: Sequence[Conjunction], conditions: Conditions
) -> tuple[Longs, Longs, npt.NDArray[np.uint64]]:
    """For each conjunction and condition in it: the conjunction, the condition, the rest's key."""
    lengths = np.fromiter(map(len, conjunctions), np.int64, len(conjunctions))
    flat = np.fromiter((each for one in conjunctions for each in one), np.int64, lengths.sum())
    owners = np.repeat(np.arange(lengths.size), lengths)
    chance = np.random.default_rng(_SEED)
    hash_of = chance.integers(0, 2**64, len(conditions.known), np.uint64)
    places: dict[Place, int] = {}
    place_of = np.array(
        [places.setdefault(each.place, len(places)) for each in conditions.known], np.int64
    )
    has_values = np.array([each.values is not None for each in conditions.known], bool)
    hash_of_place = chance.integers(0, 2**64, len(places), np.uint64)
    sums = np.zeros(lengths.size, np.uint64)
    np.add.at(sums, owners, hash_of[flat])
    keys = sums[owners] - hash_of[flat] + hash_of_place[place_of[flat]]
    kept = has_values[flat]
    return owners[kept], flat[kept], keys[kept]


def _checked(members: list[tuple[Conjunction, int]], conditions: Conditions) -> Iterator[Group]:
    """The members by what their rests really are."""
    found: defaultdict[tuple[Conjunction, Place], list[tuple[Conjunction, int]]]
    found = defaultdict(list)
    for conjunction, number in members:
        rest = tuple(each for each in conjunction if each != number)
        found[rest, conditions.known[number].place].append((conjunction, number))
    for (rest, _), group in found.items():
        if len(group) > 1:
            yield Group(rest, group)
