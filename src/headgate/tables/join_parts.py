"""What a join of tables is in each of its groups (`join_groups.py`).

    Stocks ⋈ Reviews                  one group of two tables
    Stocks ⋈ Reviews ⋈ Authors        whole                    ranges of all three
                                      Stocks^Reviews           ranges of two, and so on

What joins of the same tables have in common is found once: which groups they are in, and which of
their sides make the ranges there. There may be a million of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headgate.model.filters import TRUE
from headgate.tables.choose_semijoins import semijoins_of
from headgate.tables.compile_boxes import SelectedTable, SelectJoin
from headgate.tables.join_groups import JoinedTable, JoinGroup
from headgate.tables.payload_apart import ApartJoin, Registered, is_cut, payload_apart
from headgate.tables.whole_boxes import as_two_tables


@dataclass(frozen=True, slots=True)
class JoinPart:
    """A join in one group; `boxed` has the ranges, as of a join of two tables."""

    group: JoinGroup
    boxed: SelectJoin


@dataclass(frozen=True, slots=True)
class _Pair:
    """A group of two tables, and for each the place of its side in the join; None for a payload,
    on which nobody has a range."""

    group: JoinGroup
    places: tuple[int | None, int | None]

    def part(self, join: SelectJoin) -> JoinPart:
        sides = tuple(
            SelectedTable(table.name, {} if place is None else join.sides[place].ranges)
            for table, place in zip(self.group.tables, self.places, strict=True)
        )
        return JoinPart(self.group, SelectJoin(self.group.on, sides))


@dataclass(frozen=True, slots=True)
class _Shape:
    whole: JoinGroup | None
    pairs: tuple[_Pair, ...]


@dataclass(frozen=True, slots=True)
class JoinParts:
    registered: Registered
    _shapes: dict[tuple[object, ...], _Shape] = field(default_factory=dict)

    def of(self, join: SelectJoin) -> Iterator[JoinPart]:
        """Nothing if the join is empty."""
        if join.is_empty:
            return
        cut = (side.rest == TRUE or is_cut(side, join, self.registered) for side in join.sides)
        alike = *join.signature, *cut
        shape = self._shapes.get(alike)
        if shape is None:
            shape = self._shapes[alike] = self._shape(join)
        if shape.whole is not None:
            yield JoinPart(shape.whole, as_two_tables(join))
        yield from (pair.part(join) for pair in shape.pairs)

    def _shape(self, join: SelectJoin) -> _Shape:
        apart = payload_apart(join, self.registered)
        tables = tuple(JoinedTable.of(self.registered[side.table]) for side in join.sides)
        if len(apart.join.sides) == 2:
            return _Shape(None, (_Pair(JoinGroup(tables, join.on), (0, 1)),))
        return _Shape(JoinGroup(tables, join.on, is_whole=True), tuple(_semijoins(apart)))


def _semijoins(apart: ApartJoin) -> Iterator[_Pair]:
    for table, form in semijoins_of(apart).items():
        names = form.edge.left, form.edge.right
        left, right = (apart.tables[name] for name in names)
        group = JoinGroup((left, right), form.edge.on, base=names.index(table))
        yield _Pair(group, (apart.places[left.name], apart.places[right.name]))
