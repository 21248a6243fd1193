"""Many patterns over one document in one pass, each distinct step once (delta.txt §4.1, §5.5).

Subtrees of patterns that ask for the same are one *step*, whatever their marks (canonical.py puts
children in the order in which most are the same). The table of a step has a line for each way to
embed its subtree, with the numbers of the nodes. Steps are computed children first, so that each
finds the tables of its children ready:

    //item[name]/mailbox/mail      mail ─► mailbox[mail] ─► item[name][mailbox[mail]]
    //item[name {val}]             name ─────────────────► item[name]

A table is sorted by the number of its topmost node. What lies below a node is a range of numbers,
hence of lines; children by '/' are those of the range whose parent it is, a range in the order of
parents. So each child is joined by two binary searches for all lines at once.

Law: the tuples are those of evaluate_naive. An element's text is asked for only where a predicate
or a mark needs it, and once for all patterns.

Cost: the sum of the tables, which is what the views hold, and no more than the patterns ask for: a
table is reduced to lines that have all their children before it is multiplied. What is too large is
refused (join_ranges.py), as documents come from strangers. Rejected: one XPath for each view, which
cannot return tuples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headgate.model.match_pattern import holds
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate
from headgate.views.document import LAST, Document
from headgate.views.encode_views import Longs
from headgate.views.join_ranges import join_ranges
from headgate.views.view_tuples import Texts, ViewTuples, marked_nodes

Step = tuple[str, tuple[ValuePredicate, ...], tuple[tuple[Axis, int], ...]]
"""A label, predicates, and the numbers of the children's steps with their axes."""


class PatternSet:
    """Patterns, their distinct steps numbered with children before parents."""

    def __init__(self, patterns: Sequence[PatternNode]) -> None:
        self.patterns = list(patterns)
        self._number_of: dict[Step, int] = {}
        self.tops = [self._step(pattern) for pattern in self.patterns]
        self.widths = _widths(self.steps)
        self.marked = [marked_nodes(pattern) for pattern in self.patterns]

    @property
    def steps(self) -> list[Step]:
        return list(self._number_of)

    def _step(self, node: PatternNode) -> int:
        children = tuple((child.axis, self._step(child)) for child in node.children)
        step = (node.label, node.predicates, children)
        return self._number_of.setdefault(step, len(self._number_of))

    def evaluate(self, document: Document) -> list[ViewTuples]:
        """The tuples of each pattern, in the order of the patterns."""
        return _Evaluation(self, document).tuples()


class _Evaluation:
    def __init__(self, patterns: PatternSet, document: Document) -> None:
        self.patterns, self.document = patterns, document
        numbers: dict[str, list[int]] = {}
        for number, label in enumerate(document.labels):
            numbers.setdefault(label, []).append(number)
            if not label.startswith("@"):
                numbers.setdefault("*", []).append(number)
        self.numbers = {label: np.array(each, np.int64) for label, each in numbers.items()}
        self.texts: dict[Mark, Texts] = {Mark.VAL: {}, Mark.CONT: {}}
        self.tables: list[Longs] = []
        self.by_parent: dict[int, tuple[Longs, Longs]] = {}

    def tuples(self) -> list[ViewTuples]:
        for step, width in zip(self.patterns.steps, self.patterns.widths, strict=True):
            self.tables.append(self._table(step, width))
        return [self._view(number) for number in range(len(self.patterns.patterns))]

    def _view(self, number: int) -> ViewTuples:
        table = self.tables[self.patterns.tops[number]]
        if self.patterns.patterns[number].axis is Axis.CHILD:
            table = table[: table[:, 0].searchsorted(0, "right")]
        texts = {
            (at, mark): {n: self._text(n, mark) for n in set(table[:, at].tolist())}
            for at, mark in self.patterns.marked[number]
        }
        return ViewTuples(self.document.ids[table], texts)

    def _text(self, number: int, mark: Mark) -> str:
        known = self.texts[mark]
        if number not in known:
            known[number] = self.document.marked(number, mark)
        return known[number]

    def _table(self, step: Step, width: int) -> Longs:
        """The lines of a step, sorted by their first column."""
        label, predicates, children = step
        tops = self.numbers.get(label, _NOTHING)
        if not all(len(self.tables[child]) for _, child in children):
            tops = _NOTHING
        for axis, child in children if len(children) > 1 else ():
            low, high, _ = self._lines_below(tops, axis, child)
            tops = tops[high > low]
        if predicates and len(tops):
            tops = tops[[self._holds(number, predicates) for number in tops.tolist()]]
        if not len(tops):
            return np.empty((0, width), np.int64)
        table = tops[:, None]
        for axis, child in children:
            low, high, below = self._lines_below(table[:, 0], axis, child)
            line, place = join_ranges(low, high)
            table = np.concatenate([table[line], below[place]], axis=1)
        return table

    def _holds(self, number: int, predicates: tuple[ValuePredicate, ...]) -> bool:
        text = self._text(number, Mark.VAL)
        return all(holds(each, text) for each in predicates)

    def _lines_below(self, tops: Longs, axis: Axis, child: int) -> tuple[Longs, Longs, Longs]:
        """Of each node the range of lines of the child's table, in the order that makes it one."""
        if axis is Axis.DESCENDANT:
            table = self.tables[child]
            last = self.document.ids[tops, LAST]
            low = table[:, 0].searchsorted(tops, "right")
            return low, table[:, 0].searchsorted(last, "right"), table
        if child not in self.by_parent:
            table = self.tables[child]
            parents = self.document.parent[table[:, 0]]
            order = np.argsort(parents, kind="stable")
            self.by_parent[child] = parents[order], table[order]
        parents, table = self.by_parent[child]
        return parents.searchsorted(tops), parents.searchsorted(tops, "right"), table


_NOTHING: Longs = np.empty(0, np.int64)


def _widths(steps: Sequence[Step]) -> list[int]:
    """How many nodes the subtree of each step has."""
    widths: list[int] = []
    for _, _, children in steps:
        widths.append(1 + sum(widths[child] for _, child in children))
    return widths
