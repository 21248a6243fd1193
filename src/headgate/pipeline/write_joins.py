"""The subscriptions of table joins as files, one for each group of joins that come alike.

A join of two tables is in one group. A join of more, or one with payloads apart, is in one whole
group, for results, and in a group of semijoins for each of its tables, for clients
(`join_groups.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headgate.join.select.compile_boxes import SelectJoin, box_group
from headgate.join.select.stored_boxes import write_boxes
from headgate.pipeline.choose_semijoins import semijoins_of
from headgate.pipeline.join_groups import JoinedTable, JoinGroup, has_rest
from headgate.pipeline.payload_apart import Registered, payload_apart
from headgate.pipeline.whole_boxes import as_two_tables


@dataclass(frozen=True, slots=True)
class JoinPart:
    """What a join is in one group: `join` says which tables, `boxed` has the ranges."""

    join: SelectJoin
    boxed: SelectJoin
    tables: Mapping[str, JoinedTable]
    base: int | None = None
    is_whole: bool = False

    @property
    def alike(self) -> tuple[object, ...]:
        """What the parts of one group have in common."""
        return *self.join.signature, self.base, self.is_whole

    @property
    def group(self) -> JoinGroup:
        joined = tuple(self.tables[side.table] for side in self.join.sides)
        return JoinGroup(joined, self.join.on, self.base, self.is_whole)


def write_joins(
    folder: Path, joins: Mapping[int, Sequence[SelectJoin]], registered: Registered
) -> tuple[tuple[JoinGroup, str], ...]:
    """The groups of the joins of feeds, given by number, each with the name of its file."""
    groups: dict[tuple[object, ...], list[tuple[int, bool, JoinPart]]] = {}
    for feed, own in joins.items():
        for join in own:
            for part in parts_of(join, registered):
                groups.setdefault(part.alike, []).append((feed, has_rest(join), part))
    written: list[tuple[JoinGroup, str]] = []
    for some in groups.values():
        boxes = box_group(range(len(some)), [part.boxed for _, _, part in some])
        feeds = np.array([feed for feed, _, _ in some], np.int32)
        tested = np.array([is_tested for _, is_tested, _ in some], np.int32)
        path = write_boxes(folder, boxes, feeds, tested)
        written.append((some[0][2].group, path.name))
    return tuple(written)


def parts_of(join: SelectJoin, registered: Registered) -> Iterator[JoinPart]:
    """What a join is in each of its groups; nothing if it is empty."""
    if join.is_empty:
        return
    apart = payload_apart(join, registered)
    if len(apart.join.sides) == 2:
        yield JoinPart(join, join, apart.tables)
        return
    whole = {side.table: JoinedTable.of(registered[side.table]) for side in join.sides}
    yield JoinPart(join, as_two_tables(join), whole, is_whole=True)
    side_of = {side.table: side for side in apart.join.sides}
    for table, form in semijoins_of(apart).items():
        edge = form.edge
        pair = SelectJoin(edge.on, (side_of[edge.left], side_of[edge.right]))
        base = (edge.left, edge.right).index(table)
        yield JoinPart(pair, pair, apart.tables, base=base)
