"""Join the views of a rewriting: the order of joins, and the kernel that runs them ([Delta §4.1]).

The first instance is the one with most nodes, because its pattern is the most selective. The next
is always the one with the *lowest link* to the nodes bound so far, since few rows match a node low
in the document:

    EQUAL at b    a column is bound: rows with the same b           as low as b, before a BELOW
    BELOW a       a column is below a bound node: rows below a      as low as a
    ABOVE b       a column is above a bound node                    if there is nothing else
    ALL                                                             all pairs

A structural predicate or a value predicate is tested with the instance that binds its last node.

`run_joins` joins depth first. Each instance has a row of four integers:

    instance   table  way    column  node
    0          t3     ALL                        every row
    1          t7     EQUAL  0       2           rows whose column 0 is node 2 of the query
    2          t9     BELOW  1       0           rows whose column 1 is below node 0 of the query
    3          t2     ABOVE  0       2           rows whose column 0 is above node 2

A row binds some nodes of the query, and must agree with those that are bound already. Intermediate
results are not stored, and no result occurs twice: it determines the row of each instance.
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
    CELLS_LIMIT,
    HIGH,
    LINE,
    READ_LEFT,
    READ_LIMIT,
    ROWS_LIMIT,
    TOO_MANY,
    UNKNOWN,
    TupleStorage,
    fill_by_column,
    first_from,
    grown,
    value_holds,
)

Rows = tuple[tuple[int, ...], ...]
Tables = Mapping[int, int] | Sequence[int]
"""For each view, the table that has its tuples."""


@dataclass(frozen=True, slots=True)
class InstanceRows:
    """An instance as rows for the kernel. Constants below name the columns."""

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
        """The table with the same tuples, if the join only copies it; else None."""
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
        """For each node of the query, its ancestors, the nearest first."""
        for _, parent in preorder(plan.query):
            self.ancestors.append([parent, *self.ancestors[parent]] if parent >= 0 else [])
        self.bound: set[int] = set()

    def rows(self) -> JoinRows:
        waiting, ordered = list(self.plan.instances), list[InstanceRows]()
        while waiting:
            following = max(waiting, key=lambda each: (self._link(each)[0], len(each.goes_to)))
            waiting.remove(following)
            ordered.append(self._instance(following))
        return JoinRows(len(self.ancestors), tuple(ordered))

    def _link(self, instance: Instance) -> tuple[float, tuple[int, int, int]]:
        """The lowest link of an instance: how low it is; its way, column and bound node."""
        best = -2.0, (ALL, 0, 0)
        for column, node in enumerate(instance.goes_to):
            if node in self.bound:
                best = max(best, (len(self.ancestors[node]) + 0.5, (EQUAL, column, node)))
                continue
            above = next((each for each in self.ancestors[node] if each in self.bound), None)
            if above is not None:
                best = max(best, (float(len(self.ancestors[above])), (BELOW, column, above)))
            for bound_node in self.bound:
                if node in self.ancestors[bound_node]:
                    best = max(best, (-1.0, (ABOVE, column, bound_node)))
        return best

    def _instance(self, instance: Instance) -> InstanceRows:
        table, before = self.table[instance.view], set(self.bound)
        way, column, node = self._link(instance)[1]
        columns: list[tuple[int, int]] = []
        for target in instance.goes_to:
            columns.append((target, int(target in self.bound)))
            self.bound.add(target)
        return InstanceRows(
            (table, way, column, node), tuple(columns), self._edges(before), self._residuals(before)
        )

    def _edges(self, before: set[int]) -> Rows:
        edges = []
        for edge in self.plan.edges:
            ends = {edge.below} | ({edge.above} if edge.above >= 0 else set())
            if ends <= self.bound and not ends <= before:
                edges.append((edge.above, edge.below, int(edge.axis is Axis.CHILD)))
        return tuple(edges)

    def _residuals(self, before: set[int]) -> tuple[tuple[int, ValuePredicate], ...]:
        return tuple(
            (each.node, each.predicate)
            for each in self.plan.residuals
            if each.node in self.bound - before
        )


# Kernels.

TABLE, WAY, COLUMN, NODE = range(4)
ALL, EQUAL, BELOW, ABOVE = range(4)
GOES_TO, IS_KNOWN = range(2)
EDGE_ABOVE, EDGE_BELOW, EDGE_IS_NEAR = range(3)
RESIDUAL_NODE = HIGH + 1


@nb.njit(nogil=True, cache=True)
def run_joins(joins, document, tables, storage, first_join, table_range):  # type: ignore[no-untyped-def]
    """Fill the tables table_range[0] … table_range[1] − 1 by joins; returns the storage.

    joins: level_program.Joins, of which join n makes table first_join + n; document: arrays last,
    depth, text_at and number_at by node; tables: TupleTables; storage: TupleStorage.
    """
    rows, start, limits = tables.rows, tables.start, tables.limits
    for table in range(table_range[0], table_range[1]):
        join = table - first_join
        low, high = joins.instance_start[join], joins.instance_start[join + 1]
        start[table] = storage.cells_used
        rows[table] = _rows_before(joins.instances, low, high, rows)
        if rows[table] <= 0:
            continue
        storage = _with_indexes(joins.instances, low, high, tables, storage)
        storage, joined, read = _join(joins, document, low, high, table, tables, storage)
        rows[table] = joined
        limits[READ_LEFT] -= read
        if joined < 0:
            used = start[table]
            storage = TupleStorage(storage.cells, used, storage.keys, storage.keys_used)
    return storage


@nb.njit(nogil=True, cache=True)
def _rows_before(instances, low, high, rows):  # type: ignore[no-untyped-def]
    """0 if a table that is read has no rows, UNKNOWN if one was refused, else 1."""
    before = 1
    for instance in range(low, high):
        read = rows[instances[instance, TABLE]]
        if read == 0:
            return 0
        if read < 0:
            before = UNKNOWN
    return before


@nb.njit(nogil=True, cache=True)
def _with_indexes(instances, low, high, tables, storage):  # type: ignore[no-untyped-def]
    """Build the missing indexes in which instances low … high − 1 look up their rows."""
    cells, used, keys, keys_used = storage
    for instance in range(low, high):
        read, column = instances[instance, TABLE], instances[instance, COLUMN]
        slot, rows = tables.index_slot[read] + column, tables.rows[read]
        if instances[instance, WAY] != ALL and tables.index_start[slot] < 0:
            tables.index_start[slot] = keys_used
            keys = grown(keys, keys_used, rows)
            width = tables.width[read]
            fill_by_column(cells, tables.start[read], rows, width, column, keys, keys_used)
            keys_used += rows
    return TupleStorage(cells, used, keys, keys_used)


@nb.njit(nogil=True, cache=True)
def _join(joins, document, low, high, table, tables, storage):  # type: ignore[no-untyped-def]
    """Join instances low … high − 1 into a table: (storage, its rows or TOO_MANY, rows read)."""
    # Take arrays out of tuples before the loops: Numba counts a reference for each access.
    instances, column_start, columns = joins.instances, joins.column_start, joins.columns
    edge_start, edges, residual_start, residuals = (
        joins.edge_start, joins.edges, joins.residual_start, joins.residuals,
    )  # fmt: skip
    last, depth_of, text_at, number_at = (
        document.last, document.depth, document.text_at, document.number_at,
    )  # fmt: skip
    width, rows, start, index_slot, index_start, limits = tables
    cells, used, keys, keys_used = storage
    size = width[table]
    nodes = np.zeros(size, np.int32)
    place, stop = np.empty(high - low, np.int64), np.empty(high - low, np.int64)
    place[0], stop[0] = 0, rows[instances[low, TABLE]]
    joined, read, depth = 0, 0, 0
    read_max = min(limits[READ_LIMIT], limits[READ_LEFT])
    while depth >= 0:
        if place[depth] >= stop[depth]:
            depth -= 1
            continue
        instance, row = low + depth, place[depth]
        place[depth] += 1
        read += 1
        if read > read_max:
            return TupleStorage(cells, used, keys, keys_used), TOO_MANY, read
        if instances[instance, WAY] != ALL:
            row = keys[row] & LINE
        member = instances[instance, TABLE]
        if not _agrees(columns, column_start[instance], column_start[instance + 1], cells,
                       start[member] + row * width[member], nodes):  # fmt: skip
            continue
        if not _edges_hold(
            edges, edge_start[instance], edge_start[instance + 1], nodes, last, depth_of
        ):
            continue
        if not _values_hold(
            residuals,
            residual_start[instance],
            residual_start[instance + 1],
            nodes,
            text_at,
            number_at,
        ):
            continue
        if instance + 1 < high:
            depth += 1
            place[depth], stop[depth] = _range(
                instances, instance + 1, last, nodes, index_slot, rows, index_start, keys
            )
            continue
        if joined == limits[ROWS_LIMIT] or used + size > limits[CELLS_LIMIT]:
            return TupleStorage(cells, used, keys, keys_used), TOO_MANY, read
        if used + size > cells.shape[0]:
            cells = grown(cells, used, size)
        for node in range(size):
            cells[used + node] = nodes[node]
        used += size
        joined += 1
    return TupleStorage(cells, used, keys, keys_used), joined, read


@nb.njit(nogil=True, cache=True, inline="always")
def _range(instances, instance, last, nodes, index_slot, rows, index_start, keys):  # type: ignore[no-untyped-def]
    """The range of keys in the instance's index whose rows may agree with the bound nodes."""
    table, way = instances[instance, TABLE], instances[instance, WAY]
    first, end = np.int64(0), rows[table]
    if way != ALL:
        first = index_start[index_slot[table] + instances[instance, COLUMN]]
        end += first
        node = nodes[instances[instance, NODE]]
        if way == EQUAL:
            first = first_from(keys, first, end, node)
            end = first_from(keys, first, end, node + 1)
        elif way == BELOW:
            first = first_from(keys, first, end, node + 1)
            end = first_from(keys, first, end, last[node] + 1)
        else:
            end = first_from(keys, first, end, node)
    return first, end


@nb.njit(nogil=True, cache=True, inline="always")
def _agrees(columns, first, end, cells, begin, nodes):  # type: ignore[no-untyped-def]
    """Bind the nodes of a row; returns whether it agrees with the nodes bound before."""
    agrees = True
    for column in range(first, end):
        number, node = cells[begin + column - first], columns[column, GOES_TO]
        if not columns[column, IS_KNOWN]:
            nodes[node] = number
        elif nodes[node] != number:
            agrees = False
            break
    return agrees


@nb.njit(nogil=True, cache=True, inline="always")
def _edges_hold(edges, first, end, nodes, last, depth):  # type: ignore[no-untyped-def]
    hold = True
    for edge in range(first, end):
        below = nodes[edges[edge, EDGE_BELOW]]
        if edges[edge, EDGE_ABOVE] < 0:
            hold = depth[below] == 0
        else:
            above = nodes[edges[edge, EDGE_ABOVE]]
            hold = above < below <= last[above]
            if hold and edges[edge, EDGE_IS_NEAR]:
                hold = depth[above] + 1 == depth[below]
        if not hold:
            break
    return hold


@nb.njit(nogil=True, cache=True, inline="always")
def _values_hold(residuals, first, end, nodes, text_at, number_at):  # type: ignore[no-untyped-def]
    hold = True
    for residual in range(first, end):
        number = nodes[residuals[residual, RESIDUAL_NODE]]
        hold = value_holds(residuals, residual, text_at[number], number_at[number])
        if not hold:
            break
    return hold
