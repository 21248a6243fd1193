"""What an order of evaluation is: a table arranged to its liking, and a rule for what comes next.

    order            clauses are visited     predicates of a clause       next
    order_naive      as they came            as written                   clause by clause
    order_sequential as they came            as written                   all of an undecided clause
    order_sub_order  by savings, in a path   least selective for its      first open of the first
                                             cost first                   undecided clause
    order_adaptive   –                       –                            decides most for its cost

Law: whatever the order, the matches are the same. An order decides only what is asked, and stops
when every clause is decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from headgate.match.kernels import Ints
from headgate.operators.order_estimates import Estimates
from headgate.operators.order_lanes import Lanes
from headgate.operators.order_table import ClauseTable, Floats

NextNodes = Callable[[Ints], tuple[Ints, Ints]]
"""From lanes to what they ask next: pairs of a lane and a node, by lane. A lane that has nothing
more to ask is in no pair."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """`visit` has the clauses in the order of visit; nothing if it is that of the table."""

    table: ClauseTable
    visit: Ints | None
    begin: Callable[[Lanes], NextNodes]


class Order(Protocol):
    def arrange(self, table: ClauseTable, estimates: Estimates) -> Arrangement: ...


def clause_by_clause(kernel: Callable[..., Ints]) -> Callable[[Lanes], NextNodes]:
    """The rule of a kernel that goes through the clauses of a lane, and knows how far it is."""

    def begin(lanes: Lanes) -> NextNodes:
        place = lanes.lane_start[:-1].copy()
        clauses = (lanes.lane_start, lanes.shifts, lanes.edge_start, lanes.edges)
        return lambda some: one_each(
            some, kernel(some, place, *clauses, lanes.answers, lanes.verdicts)
        )

    return begin


def one_each(lanes: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """The pairs of lanes that ask one node each, or none, which is −1."""
    going_on = nodes >= 0
    return lanes[going_on], nodes[going_on]


def sort_literals(table: ClauseTable, key: Floats) -> ClauseTable:
    """The table with the literals of every clause sorted by their keys, then by predicate."""
    clause = np.repeat(np.arange(table.clause_count), table.lengths)
    order = np.lexsort((table.predicates, key, clause))
    counts = np.diff(table.test_start)[order]
    starts = np.zeros(counts.size + 1, np.int32)
    np.cumsum(counts, out=starts[1:])
    tests = np.repeat(table.test_start[:-1][order] - starts[:-1], counts) + np.arange(starts[-1])
    return replace(
        table,
        predicates=table.predicates[order],
        wants=table.wants[order],
        test_start=starts,
        test_columns=table.test_columns[tests],
        test_relations=table.test_relations[tests],
        test_constants=table.test_constants[tests],
    )
