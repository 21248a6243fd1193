"""Perfect merging: several conjunctions become one that matches exactly what they match together.

[MBD §5.2]: candidates are conjunctions that differ in one predicate. Here they differ in one
condition (conditions.py), and are found by leaving out each condition in turn (leave_one_out.py):

    to = 'Paris'   price < 150     ─┐  leave out price: the rest of both is to = 'Paris', and
    to = 'Paris'   price = 150     ─┘  price < 150 or price = 150   is   price <= 150

The value sets of a group are united: all of them, if that can be written; else those that touch or
overlap; and single values, wherever they are, become an `in`. A merger can merge again: rounds are
repeated until one changes nothing.

Law: P(merger) = P(part 1) ∪ … ∪ P(part n), exactly, on items that keep to the schema.

Cost: each round sorts n · k keys (k conditions each), and loops over the groups that have a member
made by the round before.

Rejected    The paper's groups, output nodes of one decision diagram with the same children: they
            depend on the order of attributes, as what differs must be the diagram's topmost
            condition. The paper loses 6,076 mergers with a random order; here no order is used.
            All pairs: quadratic. The best set of mergers: NP-complete (§5.1.1); larger groups
            come first instead.
            Words: `contains 'a'` or `contains 'b'` is no atom of the language.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.cover.conditions import Conditions, Conjunction
from headgate.cover.leave_one_out import Group, leave_one_out
from headgate.cover.merger import Merger
from headgate.cover.place_values import IN_VALUES_MAX, points_of, union
from headgate.model.filters import Filter
from headgate.model.intervals import LOWEST
from headgate.model.schema import Schema

Clusters = list[list[int]]
"""Lists of the conditions that become one, each."""


def merge_perfect(
    filters: Sequence[Filter], schema: Schema, *, in_values_max: int = IN_VALUES_MAX
) -> list[Merger]:
    """Mergers of two parts and more, no part in two of them; what is in none stays as it is.

    Parts are positions in `filters`. Equal filters are merged too. Those that no item can satisfy
    are left alone. With `in_values_max` 1 there are no lists, as in the paper.
    """
    merging = _Merging(Conditions(schema, in_values_max))
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
    """The conjunctions that there are at present, each with the positions of its parts."""

    conditions: Conditions
    parts: dict[Conjunction, list[int]] = field(default_factory=dict)

    def read(self, filters: Sequence[Filter]) -> None:
        for position, filter_ in enumerate(filters):
            conjunction = self.conditions.read(filter_)
            if conjunction is not None:
                self.parts.setdefault(conjunction, []).append(position)

    def merge_once(self, changed: set[Conjunction]) -> set[Conjunction]:
        """One round; the conjunctions that it made.

        What a round makes is no part of another merger in the same round, and what is merged is
        gone for the groups that come later.
        """
        present = list(self.parts)
        is_new = np.array([each in changed for each in present], bool)
        made: dict[Conjunction, list[int]] = {}
        for group in leave_one_out(present, self.conditions, is_new):
            members = [each for each in group.members if each[0] in self.parts]
            if len(members) > 1:
                self._merge_group(Group(group.rest, members), made)
        for conjunction, positions in made.items():
            self.parts.setdefault(conjunction, []).extend(positions)
        return set(made)

    def _merge_group(self, group: Group, made: dict[Conjunction, list[int]]) -> None:
        owner = {number: conjunction for conjunction, number in group.members}
        for cluster in mergeable([number for _, number in group.members], self.conditions):
            united = self.conditions.union(cluster)
            assert united is not None, "only what can be written is a cluster"
            positions = made.setdefault(tuple(sorted((*group.rest, united))), [])
            for number in cluster:
                positions += self.parts.pop(owner[number])


def mergeable(numbers: list[int], conditions: Conditions) -> Clusters:
    """Which of these conditions, all at one place, unite to something that can be written."""
    if conditions.union(numbers) is not None:
        return [numbers]
    clusters: Clusters = []
    for each in _touching(numbers, conditions):
        clusters += [each] if _can_unite(each, conditions) else [[number] for number in each]
    sizes = [_list_size(each, conditions) for each in clusters]
    listed = [each for each, size in zip(clusters, sizes, strict=True) if size is not None]
    others = [each for each, size in zip(clusters, sizes, strict=True) if size is None]
    return [each for each in _packed_lists(listed, conditions) + others if len(each) > 1]


def _can_unite(cluster: list[int], conditions: Conditions) -> bool:
    return len(cluster) > 1 and conditions.union(cluster) is not None


def _touching(numbers: list[int], conditions: Conditions) -> Clusters:
    """Conditions whose intervals touch, or are linked by others that touch both.

    A sweep makes runs of intervals that touch, and a condition of several intervals links its runs.
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


def _root(linked: list[int], at: int) -> int:
    while linked[at] != at:
        linked[at] = linked[linked[at]]
        at = linked[at]
    return at


def _packed_lists(clusters: Clusters, conditions: Conditions) -> Clusters:
    """Clusters that are single values, few enough to be listed together, in the order given."""
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


def _list_size(cluster: list[int], conditions: Conditions) -> int | None:
    """How many values an `in` would need, or None where they are too many."""
    first, limit = cluster[0], conditions.in_values_max
    united = union(conditions.values(number) for number in cluster)
    points = points_of(united, conditions.known[first].place, conditions.type_at(first), limit)
    return None if points is None else len(points)
