"""What ranges do not say of a join of tables, tested on its results before they are delivered.

    $s[PER > 45 and Name contains 'x'] and $r[Rating > 6]      ranges: PER, Rating     rest: Name

The rest of a filter is not in the files that workers map: it is planned when the first result of
its feed comes, and kept. Most joins have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from headgate.match.item_columns import FEEDS, FEEDS_FIELD, INNER, INNER_FIELD, items_of_batch
from headgate.model.evaluate import matches
from headgate.model.items import Item
from headgate.plan.algebra import Plan
from headgate.tables.boxes import MISSING
from headgate.tables.compile_boxes import SelectJoin, number_of
from headgate.tables.join_groups import JoinGroup, split_plan

KEPT_MAX = 100_000


@dataclass(slots=True)
class ResultTests:
    """For one thread. `plans` gives the plans of feeds by number, as far as they are there."""

    plans: Callable[[Sequence[int]], Mapping[int, Plan]]
    _joins: dict[int, Sequence[SelectJoin]] = field(default_factory=dict)

    def tested(self, results: pa.Table, group: JoinGroup) -> pa.Table:
        """The results with those feeds that have them for sure; without those that none has."""
        inner = results.column(INNER).to_pylist()
        if not any(inner):
            return results
        self._learn({feed for own in inner for feed in own})
        feeds = results.column(FEEDS).to_pylist()
        items = [
            item
            for batch in results.combine_chunks().to_batches()
            for item in items_of_batch(batch, group.schema)
        ]
        for item, known, asked in zip(items, feeds, inner, strict=True):
            known += [feed for feed in asked if self._has(feed, item, group)]
            known.sort()
        none: list[list[int]] = [[] for _ in feeds]
        for wanted, values in ((FEEDS_FIELD, feeds), (INNER_FIELD, none)):
            at = results.schema.get_field_index(wanted.name)
            results = results.set_column(at, wanted, pa.array(values, wanted.type))
        return results.filter(pa.array([bool(each) for each in feeds]))

    def _has(self, feed: int, item: Item, group: JoinGroup) -> bool:
        tables = tuple(table.name for table in group.tables)
        joins = (each for each in self._joins.get(feed, ()) if each.signature == (tables, group.on))
        return any(_satisfies(join, item, group) for join in joins)

    def _learn(self, feeds: set[int]) -> None:
        missing = sorted(feeds - self._joins.keys())
        if missing and len(self._joins) > KEPT_MAX:
            self._joins.clear()
        if missing:
            found = self.plans(missing)
            self._joins |= {feed: split_plan(plan).joins for feed, plan in found.items()}


def _satisfies(join: SelectJoin, item: Item, group: JoinGroup) -> bool:
    """All of it, ranges too: which of a feed's joins has found the item is not known."""
    if not matches(join.rest, item):
        return False
    for side, names in zip(join.sides, group.names, strict=True):
        own = {
            name: item.attributes[named]
            for name, named in names.items()
            if named in item.attributes
        }
        if not matches(side.rest, replace(item, attributes=own)):
            return False
        for name, (low, high) in side.ranges.items():
            number = number_of(own.get(name))
            if not low <= (MISSING if number is None else number) <= high:
                return False
    return True
