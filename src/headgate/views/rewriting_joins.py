"""In which order a rewriting joins its instances, and how each finds its lines.

The first instance is the one with most nodes: it has the narrowest pattern. Then comes the one with
the *lowest link* to what is known, as few lines go with a node that lies low in the document:

    EQUAL at b    a column is known: lines with the same b        as low as b, and before a BELOW
    BELOW a       a column is below a known node: lines below a   as low as a
    ABOVE b       a column is above a known node                  if there is nothing else
    ALL                                                           all pairs

A structural predicate or a value predicate is tested with the instance that brings its last node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numba as nb
import numpy as np

from headgate.model.tree_pattern import Axis, ValuePredicate
from headgate.views.pattern_arrays import preorder
from headgate.views.rewriting_plan import Instance, RewritingPlan
from headgate.views.tuple_tables import (
    HIGH,
    LINE,
    TOO_MANY,
    UNKNOWN,
    fill_by_column,
    first_from,
    grown,
    value_holds,
)

Rows = tuple[tuple[int, ...], ...]
Tables = Mapping[int, int] | Sequence[int]
"""Of each view, which table has its tuples."""


@dataclass(frozen=True, slots=True)
class InstanceRows:
    """An instance as rows for the kernel, which names their columns."""

    head: tuple[int, int, int, int]
    columns: Rows
    edges: Rows
    residuals: tuple[tuple[int, ValuePredicate], ...]


@dataclass(frozen=True, slots=True)
class JoinRows:
    """Two rewritings with the same rows give the same tuples."""

    width: int
    instances: tuple[InstanceRows, ...]

    def same_table(self) -> int | None:
        """The table that has these tuples already, if nothing is left to do."""
        only = self.instances[0]
        is_all = len(self.instances) == 1 and not only.edges and not only.residuals
        in_order = tuple((node, 0) for node in range(self.width))
        return only.head[0] if is_all and only.columns == in_order else None


def join_rows(plan: RewritingPlan, table: Tables) -> JoinRows:
    """The plan as rows."""
    return _Ordering(plan, table).rows()


class _Ordering:
    def __init__(self, plan: RewritingPlan, table: Tables) -> None:
        self.plan, self.table = plan, table
        self.ancestors: list[list[int]] = []
        """Of each node of the query, the nearest first."""
        for _, parent in preorder(plan.query):
            self.ancestors.append([parent, *self.ancestors[parent]] if parent >= 0 else [])
        self.known: set[int] = set()

    def rows(self) -> JoinRows:
        waiting, found = list(self.plan.instances), list[InstanceRows]()
        while waiting:
            following = max(waiting, key=lambda each: (self._link(each)[0], len(each.goes_to)))
            waiting.remove(following)
            found.append(self._instance(following))
        return JoinRows(len(self.ancestors), tuple(found))

    def _link(self, instance: Instance) -> tuple[float, tuple[int, int, int]]:
        """The lowest link of an instance: how low, and way, column and known node."""
        best = -2.0, (ALL, 0, 0)
        for column, node in enumerate(instance.goes_to):
            if node in self.known:
                best = max(best, (len(self.ancestors[node]) + 0.5, (EQUAL, column, node)))
                continue
            above = next((each for each in self.ancestors[node] if each in self.known), None)
            if above is not None:
                best = max(best, (float(len(self.ancestors[above])), (BELOW, column, above)))
            for known in self.known:
                if node in self.ancestors[known]:
                    best = max(best, (-1.0, (ABOVE, column, known)))
        return best

    def _instance(self, instance: Instance) -> InstanceRows:
        table, before = self.table[instance.view], set(self.known)
        way, column, node = self._link(instance)[1]
        columns: list[tuple[int, int]] = []
        for each in instance.goes_to:
            columns.append((each, int(each in self.known)))
            self.known.add(each)
        return InstanceRows(
            (table, way, column, node), tuple(columns), self._edges(before), self._residuals(before)
        )

    def _edges(self, before: set[int]) -> Rows:
        found = []
        for edge in self.plan.edges:
            ends = {edge.below} | ({edge.above} if edge.above >= 0 else set())
            if ends <= self.known and not ends <= before:
                found.append((edge.above, edge.below, int(edge.axis is Axis.CHILD)))
        return tuple(found)

    def _residuals(self, before: set[int]) -> tuple[tuple[int, ValuePredicate], ...]:
        return tuple(
            (each.node, each.predicate)
            for each in self.plan.residuals
            if each.node in self.known - before
        )


# === part: headgate.views.rewriting_joins
# The hot loop over rewritings: each a join of tables, depth first (run_levels.py).
#
#     instance   table  way    column  node        how its lines are found, given what is known
#     0          t3     ALL                        every line
#     1          t7     EQUAL  0       2           lines whose column 0 is what node 2 of the query
# is
#     2          t9     BELOW  1       0           lines whose column 1 is below node 0 of the query
#     3          t2     ABOVE  0       2           lines whose column 0 is above node 2
#
# A line gives some nodes of the query, and must agree on those that are known. What can be tested
# with an instance's nodes is tested when it comes. Nothing between is stored, and no line comes
# twice: a line of the query says for each instance which of its lines it was.

TABLE, WAY, COLUMN, NODE = range(4)
ALL, EQUAL, BELOW, ABOVE = range(4)
GOES_TO, IS_KNOWN = range(2)
EDGE_ABOVE, EDGE_BELOW, EDGE_IS_NEAR = range(3)
RESIDUAL_NODE = HIGH + 1


@nb.njit(nogil=True, cache=True)
def run_joins(  # type: ignore[no-untyped-def]
    j, d, first, end, steps, width, slot, rows, start, index_at, cells, used, keys, kept, limits
):
    """The tables first … end, of which `steps` are before all joins; as run_steps gives them.

    The third limit is that of lines which are looked at for one table. The last one is what is left
    for all tables of the document, and falls.
    """
    for table in range(first, end):
        join = table - steps
        low, high = j.instance_start[join], j.instance_start[join + 1]
        start[table] = used
        rows[table] = _before(j.instances, low, high, rows)
        if rows[table] <= 0:
            continue
        for at in range(low, high):
            read, column = j.instances[at, TABLE], j.instances[at, COLUMN]
            if j.instances[at, WAY] != ALL and index_at[slot[read] + column] < 0:
                index_at[slot[read] + column] = kept
                keys = grown(keys, kept, rows[read])
                fill_by_column(cells, start[read], rows[read], width[read], column, keys, kept)
                kept += rows[read]
        cells, used, found, looked = _join(
            j, d, low, high, width[table], width, slot, rows, start, index_at, cells, used, keys,
            limits,
        )  # fmt: skip
        rows[table] = found
        limits[3] -= looked
        if found < 0:
            used = start[table]
    return cells, used, keys, kept


@nb.njit(nogil=True, cache=True)
def _before(instances, low, high, rows):  # type: ignore[no-untyped-def]
    found = 1
    for at in range(low, high):
        lines = rows[instances[at, TABLE]]
        if lines == 0:
            return 0
        if lines < 0:
            found = UNKNOWN
    return found


@nb.njit(nogil=True, cache=True)
def _join(  # type: ignore[no-untyped-def]
    j, d, low, high, size, width, slot, rows, start, index_at, cells, used, keys, limits
):
    # What is taken out of a tuple within a loop is counted as a reference each time.
    instances, column_start, columns = j.instances, j.column_start, j.columns
    edge_start, edges, residual_start, residuals = (
        j.edge_start, j.edges, j.residual_start, j.residuals,
    )  # fmt: skip
    last, depth_of, text_at, number_at = d.last, d.depth, d.text_at, d.number_at
    nodes = np.zeros(size, np.int32)
    place, stop = np.empty(high - low, np.int64), np.empty(high - low, np.int64)
    place[0], stop[0] = 0, rows[instances[low, TABLE]]
    found, looked, depth = 0, 0, 0
    most = min(limits[2], limits[3])
    while depth >= 0:
        if place[depth] >= stop[depth]:
            depth -= 1
            continue
        at, line = low + depth, place[depth]
        place[depth] += 1
        looked += 1
        if looked > most:
            return cells, used, TOO_MANY, looked
        if instances[at, WAY] != ALL:
            line = keys[line] & LINE
        table = instances[at, TABLE]
        if not _agrees(columns, column_start[at], column_start[at + 1], cells,
                       start[table] + line * width[table], nodes):  # fmt: skip
            continue
        if not _edges_hold(edges, edge_start[at], edge_start[at + 1], nodes, last, depth_of):
            continue
        if not _values_hold(
            residuals, residual_start[at], residual_start[at + 1], nodes, text_at, number_at
        ):
            continue
        if at + 1 < high:
            depth += 1
            place[depth], stop[depth] = _range(
                instances, at + 1, last, nodes, slot, rows, index_at, keys
            )
            continue
        if found == limits[0] or used + size > limits[1]:
            return cells, used, TOO_MANY, looked
        if used + size > cells.shape[0]:
            cells = grown(cells, used, size)
        for node in range(size):
            cells[used + node] = nodes[node]
        used += size
        found += 1
    return cells, used, found, looked


@nb.njit(nogil=True, cache=True, inline="always")
def _range(instances, at, last, nodes, slot, rows, index_at, keys):  # type: ignore[no-untyped-def]
    """Where in an instance's index the lines are that may agree with what is known."""
    table, way = instances[at, TABLE], instances[at, WAY]
    first, end = np.int64(0), rows[table]
    if way != ALL:
        first = index_at[slot[table] + instances[at, COLUMN]]
        end += first
        known = nodes[instances[at, NODE]]
        if way == EQUAL:
            first = first_from(keys, first, end, known)
            end = first_from(keys, first, end, known + 1)
        elif way == BELOW:
            first = first_from(keys, first, end, known + 1)
            end = first_from(keys, first, end, last[known] + 1)
        else:
            end = first_from(keys, first, end, known)
    return first, end


@nb.njit(nogil=True, cache=True, inline="always")
def _agrees(columns, first, end, cells, begin, nodes):  # type: ignore[no-untyped-def]
    """Put a line's nodes to what is known; whether it agrees with that."""
    agrees = True
    for each in range(first, end):
        number, node = cells[begin + each - first], columns[each, GOES_TO]
        if not columns[each, IS_KNOWN]:
            nodes[node] = number
        elif nodes[node] != number:
            agrees = False
            break
    return agrees


@nb.njit(nogil=True, cache=True, inline="always")
def _edges_hold(edges, first, end, nodes, last, depth):  # type: ignore[no-untyped-def]
    hold = True
    for each in range(first, end):
        below = nodes[edges[each, EDGE_BELOW]]
        if edges[each, EDGE_ABOVE] < 0:
            hold = depth[below] == 0
        else:
            above = nodes[edges[each, EDGE_ABOVE]]
            hold = above < below <= last[above]
            if hold and edges[each, EDGE_IS_NEAR]:
                hold = depth[above] + 1 == depth[below]
        if not hold:
            break
    return hold


@nb.njit(nogil=True, cache=True, inline="always")
def _values_hold(residuals, first, end, nodes, text_at, number_at):  # type: ignore[no-untyped-def]
    hold = True
    for each in range(first, end):
        number = nodes[residuals[each, RESIDUAL_NODE]]
        hold = value_holds(residuals, each, text_at[number], number_at[number])
        if not hold:
            break
    return hold
