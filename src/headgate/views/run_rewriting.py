"""Run one rewriting on the tuples of its views for one document, without the document (§4.1).

A site that is fed by other sites does this. Instances are joined one after the other: on equal
identifiers where they share a node of the query, otherwise structurally, by the range of numbers
below an ancestor, and by all pairs only if neither is possible. Structural and value predicates are
tested as soon as their nodes are bound (rewriting_joins.py).

Invariant: the tuples are those of evaluating the query itself over the document.

    compiled = CompiledRewriting(plan)          compile once
    compiled.run({view: its tuples, …})         run for each document
    run_rewriting(plan, {view: tuples, …})      compile and run

run_levels.py runs many rewritings in one process with the same kernels, on shared tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from headgate.model.errors import InvalidValue
from headgate.model.tree_pattern import Mark
from headgate.views.document import DEPTH, LAST, NUMBER, value_places
from headgate.views.level_program import compiled_joins, frozen_longs
from headgate.views.pattern_arrays import Ints, Longs, PatternVocabulary
from headgate.views.rewriting_joins import join_rows, run_joins
from headgate.views.rewriting_plan import RewritingPlan
from headgate.views.run_levels import TUPLES_MAX, RoomLimits
from headgate.views.tuple_tables import NO_VALUE, TupleStorage, TupleTables
from headgate.views.view_tuples import Texts, ViewTuples

NUMBERS_MAX = 1 << 26
"""The limit of node numbers. Tuples may come from another site, and kernels do not check bounds."""

Held = Mapping[int, ViewTuples]
"""The tuples of views for one document, by view number; all views of the plan must be present."""


class Identifiers(NamedTuple):
    """The properties of document nodes that tuples contain, by node number."""

    last: Ints
    depth: Ints
    text_at: Longs
    number_at: Longs


def run_rewriting(plan: RewritingPlan, tuples: Held) -> ViewTuples:
    """The tuples of the query from those of its views."""
    return CompiledRewriting(plan).run(tuples)


class CompiledRewriting:
    """A plan, ready to run. Any number of threads may use it."""

    def __init__(self, plan: RewritingPlan) -> None:
        self.plan = plan
        self.views = sorted({each.view for each in plan.instances})
        rows = join_rows(plan, {view: table for table, view in enumerate(self.views)})
        self._vocabulary = PatternVocabulary()
        self._vocabulary.learn([plan.query])
        self._joins = compiled_joins([rows], self._vocabulary)
        self._width = rows.width

    def run(self, tuples: Held) -> ViewTuples:
        given = [tuples[view].ids for view in self.views]
        ids = np.concatenate([each.reshape(-1, 3) for each in given])
        highest = int(ids[:, NUMBER].max(initial=-1))
        if highest >= NUMBERS_MAX or int(ids[:, NUMBER].min(initial=0)) < 0:
            raise InvalidValue(
                f"a tuple has a node number outside 0 … {NUMBERS_MAX - 1:,}; "
                "the site that sent it is at fault"
            )
        last, depth = np.zeros((2, 1 + highest), np.int32)
        last[ids[:, NUMBER]], depth[ids[:, NUMBER]] = ids[:, LAST], ids[:, DEPTH]
        numbers = self._joined(given, ids, Identifiers(last, depth, *self._places(tuples, last)))
        tuple_ids = np.stack([numbers, last[numbers], depth[numbers]], axis=2).astype(np.int64)
        return ViewTuples(
            tuple_ids, {key: self._texts(*key, numbers, tuples) for key in self.plan.texts}
        )

    def _joined(self, given: list[Longs], ids: Longs, arrays: Identifiers) -> Ints:
        """int32 [tuple, node]: the numbers of the query's nodes."""
        tables = len(given)
        width = frozen_longs([*(each.shape[1] for each in given), self._width])
        rows = np.array([*map(len, given), 0], np.int64)
        start = np.concatenate([[0], np.cumsum(rows[:-1] * width[:-1])])
        index_slot = np.concatenate([[0], np.cumsum(width + 1)])
        index_start = np.full(index_slot[-1], -1, np.int64)
        all_tables = TupleTables(width, rows, start, index_slot, index_start, RoomLimits().array())
        cells, keys = ids[:, NUMBER].astype(np.int32), np.empty(max(len(ids), 1), np.int64)
        storage = TupleStorage(cells, len(cells), keys, 0)
        cells, used, _, _ = run_joins(
            self._joins, arrays, all_tables, storage, tables, (tables, tables + 1)
        )
        if rows[tables] < 0:
            raise InvalidValue(
                f"a rewriting has more than {TUPLES_MAX:,} tuples in one document, or takes too "
                "long to find them; make the pattern narrower"
            )
        joined: Ints = cells[start[tables] : used].reshape(-1, self._width)
        return joined

    def _places(self, tuples: Held, like: Ints) -> tuple[Longs, Longs]:
        """The positions of the values that residual predicates compare (document.value_places)."""
        text_at, number_at = np.full((2, len(like)), NO_VALUE, np.int64)
        for residual in self.plan.residuals:
            for number, text in self._texts_of(residual.value, Mark.VAL, tuples).items():
                text_at[number], number_at[number] = value_places(text, self._vocabulary)
        return text_at, number_at

    def _texts_of(self, place: tuple[int, int], mark: Mark, tuples: Held) -> Texts:
        instance, node = place
        return tuples[self.plan.instances[instance].view].texts[node, mark]

    def _texts(self, node: int, mark: Mark, numbers: Ints, tuples: Held) -> Texts:
        texts = self._texts_of(self.plan.texts[node, mark], mark, tuples)
        return {number: texts[number] for number in set(numbers[:, node].tolist())}
