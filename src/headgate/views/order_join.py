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

from headgate.model.tree_pattern import Axis, ValuePredicate
from headgate.views.encode_views import preorder
from headgate.views.rewriting_kernels import ABOVE, ALL, BELOW, EQUAL
from headgate.views.rewriting_plan import Instance, RewritingPlan

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
