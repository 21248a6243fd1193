"""Run a rewriting over what its views hold of one document: no document is needed (delta.txt §4.1).

Instances are joined one after the other: by equal identifiers where they share a node of the query,
otherwise structurally, by the range of numbers below an ancestor; by all pairs only if neither is
possible. Structural and value predicates are tested as soon as their nodes are there.

Law: the tuples are those of evaluating the query itself over the document.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from headgate.model.match_pattern import holds
from headgate.model.tree_pattern import Axis, Mark
from headgate.views.document import DEPTH, LAST, NUMBER
from headgate.views.encode_views import Longs, preorder
from headgate.views.join_ranges import join_ranges
from headgate.views.rewriting_plan import Edge, Residual, RewritingPlan
from headgate.views.view_tuples import ViewTuples

Booleans = npt.NDArray[np.bool_]


def run_rewriting(plan: RewritingPlan, tuples: Mapping[int, ViewTuples]) -> ViewTuples:
    """The tuples of the query from those of its views."""
    return _Run(plan, tuples).tuples()


class _Run:
    """The join so far: an identifier for each line and each node of the query that is known."""

    def __init__(self, plan: RewritingPlan, tuples: Mapping[int, ViewTuples]) -> None:
        self.plan, self.views = plan, tuples
        self.nodes = preorder(plan.query)
        self.ancestors = self._ancestors()

    def tuples(self) -> ViewTuples:
        waiting = list(range(len(self.plan.instances)))
        self.known: set[int] = set()
        self.table = np.zeros((1, len(self.nodes), 3), np.int64)
        while waiting:
            number = max(waiting, key=self._nearness)
            waiting.remove(number)
            self._join(self._relation(number), set(self.plan.instances[number].goes_to))
        table = np.unique(self.table, axis=0) if len(self.table) else self.table
        return ViewTuples(table, {key: self._texts(*key, table) for key in self.plan.texts})

    def _nearness(self, number: int) -> int:
        """How an instance can be joined to what is there: 2 by equality, 1 structurally, 0 not."""
        nodes = set(self.plan.instances[number].goes_to)
        if nodes & self.known:
            return 2
        return int(self._related(nodes) is not None)

    def _related(self, nodes: set[int]) -> tuple[int, int] | None:
        """A known node and a new one of which one is an ancestor of the other."""
        for known in sorted(self.known):
            for new in sorted(nodes):
                if known in self.ancestors[new] or new in self.ancestors[known]:
                    return known, new
        return None

    def _ancestors(self) -> list[set[int]]:
        found: list[set[int]] = []
        for _, parent in self.nodes:
            found.append(found[parent] | {parent} if parent >= 0 else set())
        return found

    def _relation(self, number: int) -> Longs:
        """The tuples of an instance, each at the nodes of the query where it goes."""
        instance = self.plan.instances[number]
        ids = self.views[instance.view].ids
        table = np.zeros((len(ids), len(self.nodes), 3), np.int64)
        is_same = np.ones(len(ids), np.bool_)
        for n, m in enumerate(instance.goes_to):
            if m in instance.goes_to[:n]:  # two nodes of the view go to one of the query
                is_same &= table[:, m, NUMBER] == ids[:, n, NUMBER]
            table[:, m] = ids[:, n]
        return table[is_same]

    def _join(self, right: Longs, nodes: set[int]) -> None:
        shared, related = sorted(nodes & self.known), self._related(nodes)
        if shared:
            left_line, right_line = _equal(self.table[:, shared, NUMBER], right[:, shared, NUMBER])
        elif related is not None:
            known, new = related
            if known in self.ancestors[new]:
                left_line, right_line = _below(self.table[:, known], right[:, new])
            else:
                right_line, left_line = _below(right[:, new], self.table[:, known])
        else:
            low = np.zeros(len(self.table), np.int64)
            left_line, right_line = join_ranges(low, low + len(right))
        table = self.table[left_line]
        table[:, sorted(nodes)] = right[right_line][:, sorted(nodes)]
        before, self.known = self.known, self.known | nodes
        self.table = self._tested(table, self.known - before)

    def _tested(self, table: Longs, new: set[int]) -> Longs:
        """The lines that satisfy all predicates whose last node has just come."""
        for edge in self.plan.edges:
            ends = {edge.below} | ({edge.above} if edge.above >= 0 else set())
            if ends & new and ends <= self.known:
                table = table[_edge_holds(edge, table)]
        for residual in self.plan.residuals:
            if residual.node in new:
                table = table[self._value_holds(residual, table)]
        return table

    def _value_holds(self, residual: Residual, table: Longs) -> Booleans:
        # Not every number is in this view: one that is not will find no partner there anyway.
        texts = self._texts_at(residual.value)
        numbers = table[:, residual.node, NUMBER].tolist()
        answers = {
            each: each in texts and holds(residual.predicate, texts[each]) for each in set(numbers)
        }
        return np.array([answers[each] for each in numbers], np.bool_)

    def _texts_at(self, place: tuple[int, int]) -> dict[int, str]:
        instance, node = place
        return self.views[self.plan.instances[instance].view].texts[node, Mark.VAL]

    def _texts(self, node: int, mark: Mark, table: Longs) -> dict[int, str]:
        instance, at = self.plan.texts[node, mark]
        texts = self.views[self.plan.instances[instance].view].texts[at, mark]
        return {number: texts[number] for number in np.unique(table[:, node, NUMBER]).tolist()}


def _equal(left: Longs, right: Longs) -> tuple[Longs, Longs]:
    """The pairs of lines that are equal in all columns."""
    _, keys = np.unique(np.concatenate([left, right]), axis=0, return_inverse=True)
    left_key, right_key = keys.reshape(-1)[: len(left)], keys.reshape(-1)[len(left) :]
    order = np.argsort(right_key, kind="stable")
    low = np.searchsorted(right_key[order], left_key)
    line, place = join_ranges(low, np.searchsorted(right_key[order], left_key, "right"))
    return line, order[place]


def _below(above: Longs, below: Longs) -> tuple[Longs, Longs]:
    """The pairs of an identifier and one below it."""
    order = np.argsort(below[:, NUMBER], kind="stable")
    numbers = below[order, NUMBER]
    low = np.searchsorted(numbers, above[:, NUMBER], "right")
    line, place = join_ranges(low, np.searchsorted(numbers, above[:, LAST], "right"))
    return line, order[place]


def _edge_holds(edge: Edge, table: Longs) -> Booleans:
    below = table[:, edge.below]
    if edge.above < 0:
        is_root: Booleans = below[:, DEPTH] == 0
        return is_root
    above = table[:, edge.above]
    is_below: Booleans = (above[:, NUMBER] < below[:, NUMBER]) & (
        below[:, NUMBER] <= above[:, LAST]
    )
    if edge.axis is Axis.CHILD:
        is_below &= above[:, DEPTH] + 1 == below[:, DEPTH]
    return is_below
