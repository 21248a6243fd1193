"""Perfect merging: several conjunctions become one that matches exactly what they match together.

[MBD §5.2]: candidates are conjunctions that differ in one predicate. Here they differ in one
condition (conditions.py):

    to = 'Paris'   price < 150     ─┐  leave out price: the rest of both is to = 'Paris', and
    to = 'Paris'   price = 150     ─┘  price < 150 or price = 150   is   price <= 150

Candidates are found without comparing pairs, by hashing each conjunction without one condition:

    a b c ──┬─ leave out a ──► key(b c, place of a)
            ├─ leave out b ──► key(a c, place of b)       equal keys ──► one group
            └─ leave out c ──► key(a b, place of c)

The hash of a condition is a random number and that of a set the sum of its members, so leaving one
out is a subtraction. Equal keys are only a hint: the rests are compared before they form a group.

The value sets of a group are united: all of them, if the union can be written as a condition; else
those that touch or overlap; and single values, wherever they are, become an `in` list. A merger can
merge again: rounds are repeated until one changes nothing.

Invariant: P(merger) = P(part 1) ∪ … ∪ P(part n), exactly, on items that conform to the schema.

Cost: each round sorts n · k keys (k conditions each); Python code runs only for groups with a
member that the round before made.

Rejected    The paper's groups, output nodes of one decision diagram with the same children: they
            depend on the order of attributes, because the condition that differs must be the
            topmost. The paper loses 6,076 mergers with a random order; here no order is used.
            All pairs: quadratic. The best set of mergers: NP-complete (§5.1.1); larger groups
            come first instead.
            Words: `contains 'a'` or `contains 'b'` is no atom of the language.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headgate.cover.conditions import ConditionTable, Conjunction
from headgate.cover.value_sets import IN_VALUES_MAX, points_of, union
from headgate.model.filters import Filter
from headgate.model.implies_values import Place
from headgate.model.intervals import LOWEST
from headgate.model.schema import Schema


@dataclass(frozen=True, slots=True)
class Merger:
    """P(filter) ⊇ P(part 1) ∪ … ∪ P(part n); parts are positions in the list of merged filters.

    `degree` is the share of P(filter) that no part matches ([MBD], Definitions 1 and 2); 0 for a
    perfect merger. `imt` is the degree times the probability of the filter: the share of all items
    that are forwarded as false positives.
    """

    filter: Filter
    parts: tuple[int, ...]
    degree: float = 0.0
    imt: float = 0.0


Numbers = npt.NDArray[np.int64]
_GROUP_SEED = 20_061_116


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """Conjunctions that are `rest` and one condition more, all at one place."""

    rest: Conjunction
    members: list[tuple[Conjunction, int]]


def leave_one_out(
    conjunctions: Sequence[Conjunction], conditions: ConditionTable, is_new: npt.NDArray[np.bool_]
) -> Iterator[MergeGroup]:
    """Groups that have a new member, larger ones first. Only values are left out."""
    owners, left_out, keys = _keys(conjunctions, conditions)
    order = np.argsort(keys, kind="stable")
    is_start = np.ones(keys.size, bool)
    is_start[1:] = keys[order[1:]] != keys[order[:-1]]
    starts = np.flatnonzero(is_start)
    sizes = np.diff(np.append(starts, keys.size))
    new_members = np.add.reduceat(is_new[owners[order]], starts) if keys.size else sizes
    chosen = np.flatnonzero((sizes > 1) & (new_members > 0))
    for group in chosen[np.argsort(-sizes[chosen], kind="stable")].tolist():
        entries = order[starts[group] : starts[group] + sizes[group]]
        pairs = zip(owners[entries].tolist(), left_out[entries].tolist(), strict=True)
        yield from _checked([(conjunctions[owner], number) for owner, number in pairs], conditions)


def _keys(
    conjunctions: Sequence[Conjunction], conditions: ConditionTable
) -> tuple[Numbers, Numbers, npt.NDArray[np.uint64]]:
    """For each conjunction and condition in it: the conjunction, the condition, the rest's key."""
    lengths = np.fromiter(map(len, conjunctions), np.int64, len(conjunctions))
    flat = np.fromiter((each for one in conjunctions for each in one), np.int64, lengths.sum())
    owners = np.repeat(np.arange(lengths.size), lengths)
    chance = np.random.default_rng(_GROUP_SEED)
    hash_of = chance.integers(0, 2**64, len(conditions.entries), np.uint64)
    places: dict[Place, int] = {}
    place_of = np.array(
        [places.setdefault(each.place, len(places)) for each in conditions.entries], np.int64
    )
    has_values = np.array([each.values is not None for each in conditions.entries], bool)
    hash_of_place = chance.integers(0, 2**64, len(places), np.uint64)
    sums = np.zeros(lengths.size, np.uint64)
    np.add.at(sums, owners, hash_of[flat])
    keys = sums[owners] - hash_of[flat] + hash_of_place[place_of[flat]]
    has_set = has_values[flat]
    return owners[has_set], flat[has_set], keys[has_set]


def _checked(
    members: list[tuple[Conjunction, int]], conditions: ConditionTable
) -> Iterator[MergeGroup]:
    """Groups of members whose rests are equal; equal keys are only a hint."""
    by_rest: defaultdict[tuple[Conjunction, Place], list[tuple[Conjunction, int]]]
    by_rest = defaultdict(list)
    for conjunction, number in members:
        rest = tuple(each for each in conjunction if each != number)
        by_rest[rest, conditions.entries[number].place].append((conjunction, number))
    for (rest, _), group in by_rest.items():
        if len(group) > 1:
            yield MergeGroup(rest, group)


Clusters = list[list[int]]
"""Lists of conditions; the conditions of a list become one."""


def merge_perfect(
    filters: Sequence[Filter], schema: Schema, *, in_values_max: int = IN_VALUES_MAX
) -> list[Merger]:
    """Mergers of two or more parts, which are positions in `filters`.

    No filter is part of two mergers. Equal filters are merged too; filters that no item can
    satisfy are not. With `in_values_max` 1 there are no `in` lists, as in the paper.
    """
    merging = _Merging(ConditionTable(schema, in_values_max))
    merging.read(filters)
    changed = set(merging.parts)
    while changed:
        changed = merging.merge_once(changed)
    mergers = [
        Merger(merging.conditions.filter_of(conjunction), tuple(sorted(parts)))
        for conjunction, parts in merging.parts.items()
        if len(parts) > 1
    ]
    return sorted(mergers, key=lambda merger: merger.parts)


@dataclass(slots=True)
class _Merging:
    """The current conjunctions, each with the positions of its parts."""

    conditions: ConditionTable
    parts: dict[Conjunction, list[int]] = field(default_factory=dict)

    def read(self, filters: Sequence[Filter]) -> None:
        for position, filter_ in enumerate(filters):
            conjunction = self.conditions.read(filter_)
            if conjunction is not None:
                self.parts.setdefault(conjunction, []).append(position)

    def merge_once(self, changed: set[Conjunction]) -> set[Conjunction]:
        """Run one round; returns the new conjunctions.

        A new conjunction is not merged again in the same round, and a conjunction that was merged
        is not in later groups.
        """
        present = list(self.parts)
        is_new = np.array([each in changed for each in present], bool)
        merged: dict[Conjunction, list[int]] = {}
        for group in leave_one_out(present, self.conditions, is_new):
            members = [each for each in group.members if each[0] in self.parts]
            if len(members) > 1:
                self._merge_group(MergeGroup(group.rest, members), merged)
        for conjunction, positions in merged.items():
            self.parts.setdefault(conjunction, []).extend(positions)
        return set(merged)

    def _merge_group(self, group: MergeGroup, merged: dict[Conjunction, list[int]]) -> None:
        owner = {number: conjunction for conjunction, number in group.members}
        for cluster in mergeable([number for _, number in group.members], self.conditions):
            united = self.conditions.union(cluster)
            assert united is not None, "only what can be written is a cluster"
            positions = merged.setdefault(tuple(sorted((*group.rest, united))), [])
            for number in cluster:
                positions += self.parts.pop(owner[number])


def mergeable(numbers: list[int], conditions: ConditionTable) -> Clusters:
    """Clusters of these conditions, all at one place, whose union can be written as atoms."""
    if conditions.union(numbers) is not None:
        return [numbers]
    clusters: Clusters = []
    for touching in _touching(numbers, conditions):
        clusters += (
            [touching] if _can_unite(touching, conditions) else [[number] for number in touching]
        )
    sizes = [_list_size(each, conditions) for each in clusters]
    listed = [each for each, size in zip(clusters, sizes, strict=True) if size is not None]
    others = [each for each, size in zip(clusters, sizes, strict=True) if size is None]
    return [each for each in _packed_lists(listed, conditions) + others if len(each) > 1]


def _can_unite(cluster: list[int], conditions: ConditionTable) -> bool:
    return len(cluster) > 1 and conditions.union(cluster) is not None


def _touching(numbers: list[int], conditions: ConditionTable) -> Clusters:
    """Clusters of conditions whose intervals touch, directly or through others.

    A sweep finds runs of touching intervals; a condition of several intervals links its runs
    (union-find).
    """
    entries = [(interval, n) for n in numbers for interval in conditions.values(n).intervals]
    entries.sort(key=lambda entry: entry[0])
    linked: list[int] = []
    run_of: dict[int, int] = {}
    end = LOWEST
    for (low, high), number in entries:
        if not linked or end < low:
            linked.append(len(linked))
            end = high
        end = max(end, high)
        before = run_of.setdefault(number, len(linked) - 1)
        linked[_root(linked, len(linked) - 1)] = _root(linked, before)
    clusters: dict[int, list[int]] = {}
    for number, run in run_of.items():
        clusters.setdefault(_root(linked, run), []).append(number)
    return list(clusters.values())


def _root(linked: list[int], run: int) -> int:
    while linked[run] != run:
        linked[run] = linked[linked[run]]
        run = linked[run]
    return run


def _packed_lists(clusters: Clusters, conditions: ConditionTable) -> Clusters:
    """Clusters of single values, packed in order into lists of at most `in_values_max` values."""
    packed: Clusters = []
    room = 0
    for cluster in clusters:
        size = _list_size(cluster, conditions)
        assert size is not None
        if size > room:
            packed.append([])
            room = conditions.in_values_max
        packed[-1] += cluster
        room -= size
    return packed


def _list_size(cluster: list[int], conditions: ConditionTable) -> int | None:
    """How many values an `in` would need; None if they are too many or not finite."""
    first, limit = cluster[0], conditions.in_values_max
    united = union(conditions.values(number) for number in cluster)
    points = points_of(united, conditions.entries[first].place, conditions.type_at(first), limit)
    return None if points is None else len(points)
