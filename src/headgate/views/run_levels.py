"""Run a configuration over documents, level by level: only level 1 reads the document.

    document ──► level 1: all patterns that the source serves, in one pass, and their texts
                 level 2: rewritings over tables of level 1
                 level 3: …

Invariant: every view's tuples are those of its pattern over the document, whatever the
configuration (tests/views/test_run_levels.py). With all views on level 1 this is direct evaluation
(`PatternSet`).

All tables of a document are kept until it is done, because a view's subscribers need its tuples
after its last reader. So memory is limited, in rows and in cells, and so are the rows that a join
reads. A view beyond a limit is refused for this document, and so are those that read it; all other
views have their answers. One wide pattern of one subscriber costs the others nothing.

Cost: the rows of the tables and the rows that joins read, some ten nanoseconds each.
Rejected: NumPy tables for each step and each rewriting. They cost 30 µs and 300 µs however small
they are, and most are small.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numba as nb
import numpy as np

from headgate.model.errors import InvalidValue
from headgate.model.tree_pattern import Mark, PatternNode
from headgate.views.document import Document, document_arrays
from headgate.views.level_program import LevelProgram, compile_levels
from headgate.views.pattern_arrays import CONT, VAL, Ints, Longs
from headgate.views.pattern_steps import run_steps
from headgate.views.rewriting_joins import run_joins
from headgate.views.tuple_tables import TOO_MANY, TupleStorage, TupleTables
from headgate.views.view_tuples import Texts, ViewTuples

CELLS_MAX = 50_000_000
"""Of one document's tables: 200 MB."""
LOOKED_MAX, LOOKED_IN_ALL_MAX = 50_000_000, 500_000_000
"""Lines that one join looks at, and all joins of a document: about a second, and ten."""
TUPLES_MAX = 4_000_000
"""Of one view in one document: `//*//*//*` over a large document would fill the memory."""
KEPT_MAX = 1 << 22
"""Room that is kept from document to document: a large one takes its own with it."""
MARKS = {VAL: Mark.VAL, CONT: Mark.CONT}


@dataclass(frozen=True, slots=True)
class RoomLimits:
    tuples: int = TUPLES_MAX
    cells: int = CELLS_MAX
    looked: int = LOOKED_MAX
    looked_in_all: int = LOOKED_IN_ALL_MAX

    def array(self) -> Longs:
        """As kernels want them; the last one is what is left, and they lower it."""
        return np.array([self.tuples, self.cells, self.looked, self.looked_in_all], np.int64)


@dataclass(frozen=True, slots=True)
class LevelTimes:
    """In seconds: taking the document in, each level, and the texts of level 1."""

    document_s: float
    level_s: tuple[float, ...]
    texts_s: float


class LevelRunner:
    """Runs one program over any number of documents, by one thread at a time."""

    def __init__(
        self,
        program: LevelProgram,
        limits: RoomLimits | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.program, self._clock = program, clock
        self.limits = limits or RoomLimits()
        self._index_slot = program.index_slot
        self._cells, self._keys = 1 << 12, np.empty(1 << 12, np.int64)

    def run(self, document: Document) -> HeldTuples:
        began = self._clock()
        program = self.program
        arrays = document_arrays(document, program.vocabulary, program.valued.tolist())
        rows, start = np.zeros((2, len(program.width)), np.int64)
        index_start = np.full(self._index_slot[-1], -1, np.int64)
        tables = TupleTables(
            program.width, rows, start, self._index_slot, index_start, self.limits.array()
        )
        storage = TupleStorage(np.empty(self._cells, np.int32), 0, self._keys, 0)
        times_s = [self._clock()]
        storage = run_steps(program.steps, arrays, tables, storage)
        times_s.append(self._clock())
        steps = len(program.steps.label)
        for first, end in zip(program.level_start[1:-1], program.level_start[2:], strict=True):
            storage = run_joins(program.joins, arrays, tables, storage, steps, (first, end))
            times_s.append(self._clock())
        cells, used, keys, _ = storage
        if max(used, len(keys)) <= KEPT_MAX:
            self._keys, self._cells = keys, max(self._cells, used)
        texts = self._texts(document, rows, start, cells)
        times = LevelTimes(
            times_s[0] - began, tuple(np.diff(times_s).tolist()), self._clock() - times_s[-1]
        )
        return HeldTuples(
            program, self.limits, document.ids, rows, start, cells[:used], texts, times
        )

    def _texts(
        self, document: Document, rows: Longs, start: Longs, cells: Ints
    ) -> dict[Mark, Texts]:
        """The texts that views of level 1 have; what others have comes from there."""
        flags = np.zeros(len(document.labels), np.int64)
        flag_marked(self.program.views, 1, self.program.width, rows, start, cells, flags)
        return {
            mark: {
                node: document.marked(node, mark) for node in np.flatnonzero(flags & code).tolist()
            }
            for code, mark in MARKS.items()
        }


@dataclass(frozen=True, eq=False)
class HeldTuples:
    """What all views hold of one document."""

    program: LevelProgram
    limits: RoomLimits
    ids: Longs
    rows: Longs
    """Of each table, how many tuples; below zero if it was refused (table_kernels.py)."""
    start: Longs
    cells: Ints
    texts: Mapping[Mark, Texts]
    times: LevelTimes

    def numbers(self, table: int) -> Ints:
        """The tuples of a table, as numbers of nodes."""
        width, begin = int(self.program.width[table]), int(self.start[table])
        count = max(int(self.rows[table]), 0)
        return self.cells[begin : begin + count * width].reshape(count, width)

    def view(self, view: int) -> ViewTuples:
        """The tuples of a view; an error if it was refused."""
        views = self.program.views
        table = int(views.table[view])
        if self.rows[table] < 0:
            raise InvalidValue(self.reason(view))
        numbers = self.numbers(table)
        own = slice(*views.mark_start[view : view + 2].tolist())
        texts = {
            (column, MARKS[code]): {
                node: self.texts[MARKS[code]][node] for node in set(numbers[:, column].tolist())
            }
            for column, code in views.marks[own].tolist()
        }
        return ViewTuples(self.ids[numbers], texts)

    @cached_property
    def tuples(self) -> Longs:
        """Of each view, how many tuples; 0 of those that are refused."""
        return np.maximum(self.rows, 0)[self.program.views.table]

    @cached_property
    def bytes(self) -> Longs:
        """Of each view, how much it holds, as view_tuples.py counts it."""
        val_bytes, cont_bytes = (
            _sizes(self.texts[mark], len(self.ids)) for mark in (Mark.VAL, Mark.CONT)
        )
        program = self.program
        found: Longs = held_bytes(
            program.views, program.width, self.rows, self.start, self.cells, val_bytes, cont_bytes
        )
        return found

    def refused(self) -> list[int]:
        """The views that have no answer."""
        found: list[int] = np.flatnonzero(self.rows[self.program.views.table] < 0).tolist()
        return found

    def reason(self, view: int) -> str:
        """Why a view is refused."""
        if self.rows[self.program.views.table[view]] == TOO_MANY:
            return (
                f"a pattern has more than {self.limits.tuples:,} embeddings in one document, or "
                "takes too long to find them; make it narrower"
            )
        return "what it is computed from was refused in this document"


def _sizes(texts: Texts, nodes: int) -> Longs:
    found = np.zeros(nodes, np.int64)
    for node, text in texts.items():
        found[node] = len(text) if text.isascii() else len(text.encode())
    return found


# Direct evaluation: a level program in which all views are of level 1.


class PatternSet:
    """Patterns, compiled together. One thread at a time."""

    def __init__(self, patterns: Sequence[PatternNode], limits: RoomLimits | None = None) -> None:
        self.patterns = list(patterns)
        self._runner = LevelRunner(compile_levels(self.patterns), limits)

    @property
    def steps(self) -> range:
        """The numbers of the distinct steps."""
        return range(len(self._runner.program.steps.label))

    def evaluate(self, document: Document) -> list[ViewTuples]:
        """The tuples of each pattern, in the order of the patterns."""
        held = self._runner.run(document)
        return [held.view(number) for number in range(len(self.patterns))]


# Comparing the answers of two configurations.


def differing_views(one: HeldTuples, judge: HeldTuples) -> list[int]:
    """The views that have other tuples or other texts in one than in the judge's answer.

    Both are of the same views over the same document; the judge has all texts that views mark. A
    view that was refused has no answer to compare: `refused` tells it.
    """
    same: dict[tuple[int, int], bool] = {}
    missing = {mark: _differing_nodes(one, judge, mark) for mark in MARKS.values()}
    found = []
    tables = zip(one.program.views.table.tolist(), judge.program.views.table.tolist(), strict=True)
    for view, pair in enumerate(tables):
        if pair not in same:
            same[pair] = _same_tuples(one, judge, *pair)
        if not same[pair] or _marks_one_of(missing, one, view):
            found.append(view)
    return found


def _same_tuples(one: HeldTuples, judge: HeldTuples, table: int, other: int) -> bool:
    if one.rows[table] < 0 or judge.rows[other] < 0:
        return True
    if one.rows[table] != judge.rows[other]:
        return False
    left, right = one.numbers(table), judge.numbers(other)
    return np.array_equal(left, right) or np.array_equal(_sorted(left), _sorted(right))


def _sorted(numbers: Ints) -> Ints:
    return numbers[np.lexsort(numbers.T)]


def _differing_nodes(one: HeldTuples, judge: HeldTuples, mark: Mark) -> set[int]:
    return {n for n, text in judge.texts[mark].items() if one.texts[mark].get(n) != text}


def _marks_one_of(nodes: dict[Mark, set[int]], held: HeldTuples, view: int) -> bool:
    if not any(nodes.values()):
        return False
    views = held.program.views
    numbers = held.numbers(int(views.table[view]))
    own = slice(*views.mark_start[view : view + 2].tolist())
    return any(
        not nodes[MARKS[code]].isdisjoint(numbers[:, column].tolist())
        for column, code in views.marks[own].tolist()
    )


# Kernels: which texts are marked, and how many bytes each view holds.

IDENTIFIER_BYTES = 12
"""To send: three numbers of four bytes."""


@nb.njit(nogil=True, cache=True)
def flag_marked(v, level, width, rows, start, cells, flags):  # type: ignore[no-untyped-def]
    """Of each node, which of its texts a view of this level has."""
    for view in range(v.table.shape[0]):
        table = v.table[view]
        if v.level[view] != level:
            continue
        for mark in range(v.mark_start[view], v.mark_start[view + 1]):
            column, kind = v.marks[mark]
            for line in range(rows[table]):
                flags[cells[start[table] + line * width[table] + column]] |= kind


@nb.njit(nogil=True, cache=True)
def held_bytes(v, width, rows, start, cells, val_bytes, cont_bytes):  # type: ignore[no-untyped-def]
    """How much each view holds: an identifier for each node of each tuple, and each text once."""
    found = np.zeros(v.table.shape[0], np.int64)
    seen = np.full(val_bytes.shape[0], -1, np.int64)
    for view in range(v.table.shape[0]):
        table = v.table[view]
        count = max(rows[table], 0)
        found[view] = IDENTIFIER_BYTES * count * width[table]
        for mark in range(v.mark_start[view], v.mark_start[view + 1]):
            column, kind = v.marks[mark]
            sizes = val_bytes if kind == VAL else cont_bytes
            for line in range(count):
                node = cells[start[table] + line * width[table] + column]
                if seen[node] != mark:
                    seen[node] = mark
                    found[view] += sizes[node]
    return found
