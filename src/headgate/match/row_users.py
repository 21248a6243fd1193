"""Which subscriptions use a row of a program: who pays for an atom, and whether anybody needs it.

    node_row    a  b  c  b  d         the users of b: all ends at or below a node with b
    node_end    .  0  1  .  2         ──► ends 0, 1, 2 ──► their subscriptions

A derived row (`or`, `not`) uses its operands, so its users are theirs. Cost: one pass over the
nodes, of `users_of_row` for each row that is asked for, of `needed_rows` for all rows together.

What several share, each pays an equal part of (`shared_costs`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from headgate.match.bit_rows import Ints
from headgate.match.program import Program

Flags = npt.NDArray[np.bool_]
SHARED_BY_MAX = 1_000
"""What more feeds share is charged to nobody: none of them could save it."""
COST_US_MIN = 100
"""A feed that took less in a task or step is not reported."""


def users_of_row(program: Program, row: int) -> Ints:
    """The subscriptions, ascending, whose answer may depend on this row."""
    forest = program.forest
    at_nodes = np.flatnonzero(np.isin(forest.node_row, _rows_above(program, row)))
    steps = np.zeros(forest.node_row.size + 1, np.int64)
    np.add.at(steps, at_nodes, 1)
    np.add.at(steps, forest.node_skip[at_nodes], -1)
    is_below = np.cumsum(steps)[:-1] > 0
    ends = forest.node_end[is_below & (forest.node_end >= 0)]
    is_used = np.zeros(forest.end_start.size - 1, np.bool_)
    is_used[ends] = True
    return np.unique(forest.subscriptions[np.repeat(is_used, np.diff(forest.end_start))])


def needed_rows(program: Program, is_live: Flags) -> Flags:
    """Which rows the subscriptions use for which is_live [subscriptions] is true, by row."""
    forest = program.forest
    live_before = np.concatenate(([0], np.cumsum(is_live[forest.subscriptions])))
    ends_live = live_before[forest.end_start[1:]] > live_before[forest.end_start[:-1]]
    at_node = np.zeros(forest.node_row.size, np.int64)
    has_end = forest.node_end >= 0
    at_node[has_end] = ends_live[forest.node_end[has_end]]
    ends_before = np.concatenate(([0], np.cumsum(at_node)))
    is_used = ends_before[forest.node_skip] > ends_before[:-1]
    needed = np.zeros(program.row_count, np.bool_)
    needed[forest.node_row[is_used]] = True
    start = program.operand_start
    for number in range(program.derived_operators.size - 1, -1, -1):
        if needed[program.atom_count + number]:
            needed[program.operands[start[number] : start[number + 1]]] = True
    return needed


def _rows_above(program: Program, row: int) -> list[int]:
    """The row, and all derived rows that are computed from it."""
    rows = {row}
    operands, start = program.operands, program.operand_start
    if row in operands:
        # A derived row has earlier rows as operands only.
        for number in range(program.derived_operators.size):
            if not rows.isdisjoint(operands[start[number] : start[number + 1]].tolist()):
                rows.add(program.atom_count + number)
    return sorted(rows)


def shared_costs(spent: Iterable[tuple[Sequence[int], int]]) -> dict[str, int]:
    """CPU time in µs by feed, from feeds that share some ns each."""
    spent_ns: Counter[int] = Counter()
    for feeds, cpu_ns in spent:
        for feed in feeds:
            spent_ns[feed] += cpu_ns // len(feeds)
    return {
        str(feed): ns // 1_000 for feed, ns in sorted(spent_ns.items()) if ns >= 1_000 * COST_US_MIN
    }
