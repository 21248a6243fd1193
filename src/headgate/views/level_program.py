"""A configuration of tree patterns as arrays, ready to run level by level ([Delta §2.1, §4.1]).

Level 1 is what the source serves: all its patterns as distinct steps (pattern_steps.py). Each
further level has rewritings, as joins of tables of lower levels (rewriting_joins.py).

    tables    ├ steps, children first ┤ joins of level 2 ┤ joins of level 3 ┤ …
    views     v0 ─► t17    v1 ─► t17    v2 ─► t40       which table has a view's tuples

Views share tables. Equal steps have one table, equal joins of the same tables have one, and a view
that is a copy of another uses the table of that one. Marks do not matter: tables hold identifiers
only, and the text of a node is stored by its identifier. So texts are read from the document once,
for level 1.

Invariant: a view's tuples are those of its pattern over the document (run_levels.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from headgate.model.errors import PlanError
from headgate.model.tree_pattern import Axis, Mark, PatternNode, ValuePredicate
from headgate.views.pattern_arrays import (
    CONT,
    VAL,
    Longs,
    PatternVocabulary,
    encode_views,
    preorder,
)
from headgate.views.rewriting_joins import JoinRows, join_rows
from headgate.views.rewriting_plan import RewritingPlan, rewriting_plan
from headgate.views.view_tuples import marked_nodes

Booleans = npt.NDArray[np.bool_]


class Steps(NamedTuple):
    """Table n is step n."""

    label: Longs  # [step]
    is_root: Booleans  # [step]: only the document's root fits
    predicate_start: Longs  # [step + 1]
    predicates: Longs  # [predicate, column]
    child_start: Longs  # [step + 1]
    child_table: Longs
    child_is_near: Booleans
    """Whether the axis is '/'."""


class Joins(NamedTuple):
    """Join n makes table (number of steps) + n; rewriting_joins.py names the columns."""

    instance_start: Longs  # [join + 1]
    instances: Longs  # [instance, column]
    column_start: Longs  # [instance + 1]
    columns: Longs  # [column of an instance, column]
    edge_start: Longs  # [instance + 1]: the edges that are tested after joining the instance
    edges: Longs
    residual_start: Longs
    residuals: Longs


class ViewTables(NamedTuple):
    """The table and the level of each view, and its marked nodes."""

    table: Longs  # [view]
    level: Longs  # [view]
    mark_start: Longs  # [view + 1]
    marks: Longs  # [mark, column]: the node's place in preorder, VAL or CONT


@dataclass(frozen=True, slots=True, eq=False)
class LevelProgram:
    """A compiled configuration.

    Its arrays are read-only, like those mapped from a file, so Numba compiles kernels only once.
    """

    vocabulary: PatternVocabulary
    valued: Booleans
    """[label]: whether a predicate compares the values of its nodes."""
    steps: Steps
    joins: Joins
    views: ViewTables
    width: Longs  # [table]
    level_start: Longs
    """Where the tables of level 1, 2, … begin, and the end of the last."""

    @property
    def index_slot(self) -> Longs:
        """Where each table's indexes begin: one for each column, and last the one by parents."""
        return np.concatenate([[0], np.cumsum(self.width + 1)])


Arrays = TypeVar("Arrays", Steps, Joins, ViewTables)


def frozen(arrays: Arrays) -> Arrays:
    for array in arrays:
        array.setflags(write=False)
    return arrays


# Compilation.

Step = tuple[str, bool, tuple[ValuePredicate, ...], tuple[tuple[Axis, int], ...]]
"""A label, whether it is the root, predicates, and the steps of the children with their axes."""

Reads = Sequence[Sequence[int]]
"""For each view, the views that it is computed from; none if the source serves it."""

CODE = {Mark.VAL: VAL, Mark.CONT: CONT}


def compile_levels(views: Sequence[PatternNode], reads: Reads | None = None) -> LevelProgram:
    """Compile a configuration. Without `reads` all views are on level 1: direct evaluation."""
    reads = [()] * len(views) if reads is None else reads
    compiling = _Compiling(views, reads, view_levels(reads))
    return compiling.program()


def view_levels(reads: Reads) -> list[int]:
    """The level of each view: 1 from the source, else one more than the highest that it reads."""
    level = [0] * len(reads)
    readers: list[list[int]] = [[] for _ in reads]
    missing = [len(members) for members in reads]
    for view, members in enumerate(reads):
        for member in members:
            readers[member].append(view)
    ready = [view for view, members in enumerate(reads) if not members]
    for view in ready:  # the list grows during the loop
        level[view] = 1 + max((level[each] for each in reads[view]), default=0)
        for reader in readers[view]:
            missing[reader] -= 1
            if not missing[reader]:
                ready.append(reader)
    if len(ready) < len(reads):
        raise PlanError(f"view {level.index(0)} is not fed from the source: there is a cycle")
    return level


class _Compiling:
    def __init__(self, views: Sequence[PatternNode], reads: Reads, level: Sequence[int]) -> None:
        self.views, self.reads, self.level = views, reads, level
        self.steps: dict[Step, int] = {}
        self.joins: dict[JoinRows, int] = {}
        self.plans: dict[tuple[PatternNode, ...], RewritingPlan] = {}
        self.table = [0] * len(views)
        self.width: list[int] = []

    def program(self) -> LevelProgram:
        vocabulary = PatternVocabulary()
        vocabulary.learn(self.views)
        levels: list[list[int]] = [[] for _ in range(max(self.level, default=1))]
        for view, level in enumerate(self.level):
            levels[level - 1].append(view)
        for view in levels[0]:
            pattern = self.views[view]
            self.table[view] = self._step(pattern, is_root=pattern.axis is Axis.CHILD)
        level_start = [0, len(self.width)]
        for level_views in levels[1:]:
            for view in level_views:
                self.table[view] = self._join(view)
            level_start.append(len(self.width))
        return LevelProgram(
            vocabulary,
            self._valued(vocabulary),
            frozen(_compiled_steps(self.steps, vocabulary)),
            compiled_joins(self.joins, vocabulary),
            frozen(self._view_tables()),
            frozen_longs(self.width),
            frozen_longs(level_start),
        )

    def _step(self, node: PatternNode, *, is_root: bool = False) -> int:
        children = tuple((child.axis, self._step(child)) for child in node.children)
        step = (node.label, is_root, node.predicates, children)
        if step not in self.steps:
            self.steps[step] = len(self.width)
            self.width.append(1 + sum(self.width[child] for _, child in children))
        return self.steps[step]

    def _join(self, view: int) -> int:
        rows = join_rows(self._plan(view), self.table)
        if (same := rows.same_table()) is not None:
            return same
        if rows not in self.joins:
            self.joins[rows] = len(self.width)
            self.width.append(rows.width)
        return self.joins[rows]

    def _plan(self, view: int) -> RewritingPlan:
        """The plan of a view. Equal patterns share a plan, which is then renumbered."""
        members = self.reads[view]
        key = (self.views[view], *(self.views[each] for each in members))
        if key not in self.plans:
            self.plans[key] = rewriting_plan(self.views[view], dict(enumerate(key[1:])))
        return self.plans[key].renumbered(members)

    def _valued(self, vocabulary: PatternVocabulary) -> Booleans:
        is_valued = np.zeros(len(vocabulary.labels), np.bool_)
        for view in self.views:
            for node, _ in preorder(view):
                if node.predicates:
                    is_valued[vocabulary.label(node.label)] = True
        return is_valued

    def _view_tables(self) -> ViewTables:
        marked = [[(at, CODE[mark]) for at, mark in marked_nodes(view)] for view in self.views]
        return ViewTables(
            np.array(self.table, np.int64),
            np.array(self.level, np.int64),
            _starts(map(len, marked)),
            _table((row for own in marked for row in own), 2),
        )


def _compiled_steps(steps: Iterable[Step], vocabulary: PatternVocabulary) -> Steps:
    rows = list(steps)
    children = [child for *_, below in rows for child in below]
    return Steps(
        np.array([vocabulary.label(label) for label, *_ in rows], np.int64),
        np.array([is_root for _, is_root, _, _ in rows], np.bool_),
        _starts(len(tests) for _, _, tests, _ in rows),
        _encoded([each for _, _, tests, _ in rows for each in tests], vocabulary),
        _starts(len(below) for *_, below in rows),
        np.array([child for _, child in children], np.int64),
        np.array([axis is Axis.CHILD for axis, _ in children], np.bool_),
    )


def compiled_joins(joins: Iterable[JoinRows], vocabulary: PatternVocabulary) -> Joins:
    all_rows = list(joins)
    instances = [each for rows in all_rows for each in rows.instances]
    residuals = [residual for each in instances for residual in each.residuals]
    nodes = np.array([[node] for node, _ in residuals], np.int64).reshape(-1, 1)
    predicates = _encoded([predicate for _, predicate in residuals], vocabulary)
    compiled = Joins(
        _starts(len(rows.instances) for rows in all_rows),
        _table((each.head for each in instances), 4),
        _starts(len(each.columns) for each in instances),
        _table((row for each in instances for row in each.columns), 2),
        _starts(len(each.edges) for each in instances),
        _table((row for each in instances for row in each.edges), 3),
        _starts(len(each.residuals) for each in instances),
        np.concatenate([predicates, nodes], axis=1),
    )
    return frozen(compiled)


def frozen_longs(numbers: Sequence[int]) -> Longs:
    array = np.array(numbers, np.int64)
    array.setflags(write=False)
    return array


def _encoded(predicates: Sequence[ValuePredicate], vocabulary: PatternVocabulary) -> Longs:
    """Predicates as rows of integers."""
    alone = [PatternNode("*", predicates=(each,)) for each in predicates]
    return encode_views(alone, vocabulary).predicates


def _starts(sizes: Iterable[int]) -> Longs:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _table(rows: Iterable[tuple[int, ...]], columns: int) -> Longs:
    return np.array(list(rows), np.int64).reshape(-1, columns)
