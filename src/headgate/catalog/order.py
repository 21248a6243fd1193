"""In which order the statements of a script are applied, so that feeds may be written in any order.

    drop X     a drop acts where it stands: it parts the script into segments
    ───────
    create A from B      within a segment, what is defined comes before what is built on it,
    create B from C      and otherwise in the script's order: here B, A, then the subscription
    subscribe to A

Where the definitions of a segment are built on each other in a circle there is no such order, and
the circle is printed: `feed cycle: A → B → A`. The cost is that of sorting.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import get_args

from headgate.catalog.dependencies import names_in_ranges, names_used
from headgate.catalog.kinds import DefiningStatement
from headgate.catalog.outcome import mark_statement
from headgate.language.statements import CreateFeed, Drop, Statement
from headgate.model.errors import FeedCycle

_DEFINITIONS = get_args(DefiningStatement)
_TOLD_MAX = 20


def order(statements: Sequence[Statement]) -> Iterator[int]:
    """The indices of the statements, in the order in which to apply them."""
    segment: list[int] = []
    for index, statement in enumerate(statements):
        if isinstance(statement, Drop):
            yield from _order_segment(statements, segment)
            yield index
            segment = []
        else:
            segment.append(index)
    yield from _order_segment(statements, segment)


def _order_segment(statements: Sequence[Statement], segment: list[int]) -> Iterator[int]:
    defining = {
        index: statement
        for index in segment
        if isinstance(statement := statements[index], _DEFINITIONS)
    }
    yield from _definitions_first_needed_first(defining)
    yield from (index for index in segment if index not in defining)


def _definitions_first_needed_first(defining: dict[int, DefiningStatement]) -> Iterator[int]:
    """A heap of those that are ready keeps the script's order wherever it may be kept."""
    sorter = TopologicalSorter(_needs(defining))
    try:
        sorter.prepare()
    except CycleError as error:
        raise _feed_cycle(error.args[1], defining) from None
    ready = list(sorter.get_ready())
    heapq.heapify(ready)
    while ready:
        index = heapq.heappop(ready)
        yield index
        sorter.done(index)
        for each in sorter.get_ready():
            heapq.heappush(ready, each)


def _needs(defining: dict[int, DefiningStatement]) -> dict[int, set[int]]:
    """For each definition, the others that must come before it."""
    first: dict[str, int] = {}
    for index, statement in defining.items():
        first.setdefault(statement.name, index)
    # A range with an open end takes in what sources there are; feeds so named are not awaited.
    sources = {each.name for each in defining.values() if not isinstance(each, CreateFeed)}
    needs: dict[int, set[int]] = {}
    for index, statement in defining.items():
        needs[index] = {first[name] for name in names_used(statement) if name in first}
        if isinstance(statement, CreateFeed):
            in_ranges = names_in_ranges(statement, sources)
            needs[index].update(first[name] for name in in_ranges if name in first)
        # The second definition of a name is the one that is wrong, so it must not come first.
        if first[statement.name] != index:
            needs[index].add(first[statement.name])
    return needs


def _feed_cycle(cycle: list[int], defining: dict[int, DefiningStatement]) -> FeedCycle:
    """Each of the cycle is needed by the next. It is told from its first statement on, by use."""
    circle = cycle[:0:-1]
    start = circle.index(min(circle))
    told = circle[start:] + circle[: start + 1]
    names = [defining[index].name for index in told]
    if len(names) > _TOLD_MAX:
        names[_TOLD_MAX // 2 : -_TOLD_MAX // 2] = [f"… {len(names) - _TOLD_MAX:,} more …"]
    error = FeedCycle(f"feed cycle: {' → '.join(names)}; a feed cannot be defined through itself")
    mark_statement(error, told[0] + 1)
    return error
