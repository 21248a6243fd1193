"""From joins to groups: which groups a join is in, and with which ranges in each.

    Stocks ⋈ Reviews                  one group of two tables
    Stocks ⋈ Reviews ⋈ Authors        result group             ranges of all three tables
                                      Stocks^Reviews, …        one semijoin per table: ranges of two

**Payloads.** For clients, a table with a payload attribute is two tables ([Select-Joins, Appendix
I]):

    Stocks (Symbol key, PER, Logo payload)          Stocks(Symbol, PER)  ⋈[Symbol]  ⋈ Reviews
    Stocks ⋈[Symbol] Reviews                 ──►    Stocks(Symbol, Logo) ⋈[Symbol]

A logo then goes to a client when its stock enters the selection, and not again whenever the stock
changes. plan/split_payload.py decides which tables are split; `explain` shows the same. Results are
made of unsplit rows. Selections without a join have no clients and are not split.

**Boxes of result groups.** The boxes of a join of many tables are stored as those of two: the first
table is the left side, all others together are the right one, with attributes named by table
number.

    R(a | x)  S(a, b | y)  T(b | z)        left: x        right: 1.y  2.z

Joins of the same tables differ only in their ranges, so the groups of each kind of join are found
once; there may be a million joins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headgate.language.statements import RegisterTable
from headgate.model.filters import TRUE
from headgate.plan.split_payload import Halves, halves_of, is_own_key
from headgate.tables.boxes import SelectedTable, SelectJoin, box_group
from headgate.tables.decompose import choose_semijoins
from headgate.tables.join_groups import JoinedTable, JoinGroup, has_rest
from headgate.tables.stored_boxes import Names, write_boxes

Registered = Mapping[str, RegisterTable]


@dataclass(frozen=True, slots=True)
class SplitJoin:
    """A join as clients hold it: its tables may be halves of registered tables."""

    join: SelectJoin
    tables: Mapping[str, JoinedTable]
    places: Mapping[str, int | None]
    """The position of each table in the join as written; None for a payload table."""


def split_payloads(join: SelectJoin, registered: Registered) -> SplitJoin:
    """The join with payloads as tables of their own where possible; else the same join."""
    on, sides = list(join.on), list[SelectedTable]()
    tables: dict[str, JoinedTable] = {}
    places: dict[str, int | None] = {}
    for place, side in enumerate(join.sides):
        table = JoinedTable.of(registered[side.table])
        halves = _halves(side, join, registered)
        if halves is None:
            sides.append(side)
            tables[side.table] = table
            places[side.table] = place
            continue
        key = halves.key
        on += [name for name in key if name not in on]
        sides += [
            SelectedTable(halves.rest.name, side.ranges, side.rest, _union_of(side.on, key)),
            SelectedTable(halves.payload.name, {}, TRUE, key),
        ]
        for half, position in ((halves.rest, place), (halves.payload, None)):
            tables[half.name] = table.part(half.name, half.attributes)
            places[half.name] = position
    return SplitJoin(SelectJoin(tuple(on), tuple(sides), join.rest), tables, places)


def has_split_payload(side: SelectedTable, join: SelectJoin, registered: Registered) -> bool:
    """Whether a table's payload is a table of its own in a join."""
    return _halves(side, join, registered) is not None


def _halves(side: SelectedTable, join: SelectJoin, registered: Registered) -> Halves | None:
    halves = halves_of(side.table, side.rest, registered)
    if halves is None or not {*side.ranges, *side.on} <= set(halves.rest.attributes):
        return None
    others = {
        str(attribute.name)
        for other_side in join.sides
        if other_side is not side
        for attribute in registered[other_side.table].attributes
    }
    return halves if is_own_key(halves.key, others, join.on) else None


def _union_of(on: tuple[str, ...], key: tuple[str, ...]) -> tuple[str, ...]:
    return *on, *(name for name in key if name not in on)


Column = tuple[int, str] | None


def as_two_tables(join: SelectJoin) -> SelectJoin:
    """The join with all tables but the first as one table."""
    first, *others = join.sides
    ranges = {
        f"{place}.{name}": range_
        for place, side in enumerate(others, 1)
        for name, range_ in side.ranges.items()
    }
    return SelectJoin(join.on, (first, SelectedTable("", ranges)))


def attributes_by_table(attributes: tuple[Names, Names], tables: int) -> tuple[Names, ...]:
    """The restricted attributes of each table.

    >>> attributes_by_table((("x",), ("1.y", "1.z", "2.y")), 3)
    (('x',), ('y', 'z'), ('y',))
    """
    names: list[list[str]] = [[] for _ in range(tables)]
    for column in columns_of_boxes(attributes):
        if column is not None:
            names[column[0]].append(column[1])
    return tuple(map(tuple, names))


def columns_of_boxes(attributes: tuple[Names, Names]) -> list[Column]:
    """The table and attribute of each column of the boxes; None for a side without attributes."""
    left, right = attributes
    parts = [each.split(".", 1) for each in right]
    first: list[Column] = [(0, name) for name in left]
    others: list[Column] = [(int(place), name) for place, name in parts]
    return (first or [None]) + (others or [None])


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A join in one group; `boxed` has its ranges there, as a join of two tables."""

    group: JoinGroup
    boxed: SelectJoin


@dataclass(frozen=True, slots=True)
class _PairGroup:
    """A group of two tables, and the position of each in the join; None for a payload table, which
    has no ranges."""

    group: JoinGroup
    places: tuple[int | None, int | None]

    def part(self, join: SelectJoin) -> GroupMember:
        sides = tuple(
            SelectedTable(table.name, {} if place is None else join.sides[place].ranges)
            for table, place in zip(self.group.tables, self.places, strict=True)
        )
        return GroupMember(self.group, SelectJoin(self.group.on, sides))


@dataclass(frozen=True, slots=True)
class _JoinGroups:
    results: JoinGroup | None
    pairs: tuple[_PairGroup, ...]


@dataclass(frozen=True, slots=True)
class GroupAssigner:
    """Finds the groups of joins, once for each kind of join."""

    registered: Registered
    _groups_by_kind: dict[tuple[object, ...], _JoinGroups] = field(default_factory=dict)

    def of(self, join: SelectJoin) -> Iterator[GroupMember]:
        """The groups of a join; none if one of its ranges is empty."""
        if join.is_empty:
            return
        is_split = (
            side.rest == TRUE or has_split_payload(side, join, self.registered)
            for side in join.sides
        )
        key = *join.signature, *is_split
        groups = self._groups_by_kind.get(key)
        if groups is None:
            groups = self._groups_by_kind[key] = self._groups_of(join)
        if groups.results is not None:
            yield GroupMember(groups.results, as_two_tables(join))
        yield from (pair.part(join) for pair in groups.pairs)

    def _groups_of(self, join: SelectJoin) -> _JoinGroups:
        split = split_payloads(join, self.registered)
        tables = tuple(JoinedTable.of(self.registered[side.table]) for side in join.sides)
        if len(split.join.sides) == 2:
            return _JoinGroups(None, (_PairGroup(JoinGroup(tables, join.on), (0, 1)),))
        return _JoinGroups(
            JoinGroup(tables, join.on, is_for_results=True), tuple(_semijoins(split))
        )


def _semijoins(split: SplitJoin) -> Iterator[_PairGroup]:
    for table, form in choose_semijoins(split.join, split.tables).items():
        names = form.edge.left, form.edge.right
        left, right = (split.tables[name] for name in names)
        group = JoinGroup((left, right), form.edge.on, base=names.index(table))
        yield _PairGroup(group, (split.places[left.name], split.places[right.name]))


def write_joins(
    folder: Path, joins: Mapping[int, Sequence[SelectJoin]], registered: Registered
) -> tuple[tuple[JoinGroup, str], ...]:
    """Write the subscriptions of joins, by feed number, one file per group; return the groups with
    the names of their files."""
    parts = GroupAssigner(registered)
    groups: dict[str, list[tuple[int, bool, GroupMember]]] = {}
    for feed, feed_joins in joins.items():
        for join in feed_joins:
            is_tested = has_rest(join)
            for part in parts.of(join):
                groups.setdefault(part.group.name, []).append((feed, is_tested, part))
    written: list[tuple[JoinGroup, str]] = []
    for members in groups.values():
        boxes = box_group(range(len(members)), [part.boxed for _, _, part in members])
        feeds = np.array([feed for feed, _, _ in members], np.int32)
        tested = np.array([is_tested for _, is_tested, _ in members], np.int32)
        path = write_boxes(folder, boxes, feeds, tested)
        written.append((members[0][2].group, path.name))
    return tuple(written)
