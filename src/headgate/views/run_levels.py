"""Run a configuration over documents, level by level: only level 1 reads the document.

    document ──► level 1: all patterns that the source serves, in one pass, and their texts
                 level 2: rewritings over tables of level 1
                 level 3: …

Invariant: every view's tuples are those of its pattern over the document, whatever the
configuration (tests/views/test_run_levels.py). With all views on level 1 this is direct evaluation
(`PatternSet`).

All tables of a document are kept until it is finished, because subscribers of a view need its
tuples after the last view that reads it. So rows, cells and the rows that a join reads are limited.
A view beyond a limit is refused for this document, and so are views that read it; all other views
get their tuples. One subscriber's wide pattern does not affect the others.

Cost: about ten nanoseconds for each row of a table and each row that a join reads.
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
"""Cells of all tables of a document: 200 MB."""
ROWS_READ_MAX, ROWS_READ_TOTAL_MAX = 50_000_000, 500_000_000
"""Rows that one join may read (about 1 s), and all joins of a document together (about 10 s)."""
TUPLES_MAX = 4_000_000
"""Tuples of one view in one document: `//*//*//*` over a large document would fill the memory."""
KEPT_MAX = 1 << 22
"""Buffers up to this size are reused for the next document; larger ones are released."""
MARKS = {VAL: Mark.VAL, CONT: Mark.CONT}


@dataclass(frozen=True, slots=True)
class RoomLimits:
    """Limits for one document; `tuples` and `rows_read` are for each view or join."""

    tuples: int = TUPLES_MAX
    cells: int = CELLS_MAX
    rows_read: int = ROWS_READ_MAX
    rows_read_total: int = ROWS_READ_TOTAL_MAX

    def array(self) -> Longs:
        """The limits for the kernels, which lower the last one as they read rows."""
        return np.array([self.tuples, self.cells, self.rows_read, self.rows_read_total], np.int64)


@dataclass(frozen=True, slots=True)
class LevelTimes:
    """Times in seconds: encoding the document, each level, and the texts of level 1."""

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
        """The marked texts of views of level 1. Views of higher levels use the same texts."""
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
    """The tuples of all views for one document."""

    program: LevelProgram
    limits: RoomLimits
    ids: Longs
    rows: Longs
    """[table]: its number of tuples; negative if it was refused (tuple_tables.py)."""
    start: Longs
    cells: Ints
    texts: Mapping[Mark, Texts]
    times: LevelTimes

    def numbers(self, table: int) -> Ints:
        """int32 [tuple, node]: the tuples of a table, as numbers of document nodes."""
        width, begin = int(self.program.width[table]), int(self.start[table])
        count = max(int(self.rows[table]), 0)
        return self.cells[begin : begin + count * width].reshape(count, width)

    def view(self, view: int) -> ViewTuples:
        """The tuples of a view. Raises InvalidValue if it was refused."""
        views = self.program.views
        table = int(views.table[view])
        if self.rows[table] < 0:
            raise InvalidValue(self.reason(view))
        numbers = self.numbers(table)
        mark_range = slice(*views.mark_start[view : view + 2].tolist())
        texts = {
            (column, MARKS[code]): {
                node: self.texts[MARKS[code]][node] for node in set(numbers[:, column].tolist())
            }
            for column, code in views.marks[mark_range].tolist()
        }
        return ViewTuples(self.ids[numbers], texts)

    @cached_property
    def tuples(self) -> Longs:
        """[view]: its number of tuples; 0 if it was refused."""
        return np.maximum(self.rows, 0)[self.program.views.table]

    @cached_property
    def bytes(self) -> Longs:
        """[view]: the size of its tuples in bytes, as `ViewTuples.size_bytes` counts it."""
        val_bytes, cont_bytes = (
            _sizes(self.texts[mark], len(self.ids)) for mark in (Mark.VAL, Mark.CONT)
        )
        program = self.program
        sizes: Longs = held_bytes(
            program.views, program.width, self.rows, self.start, self.cells, val_bytes, cont_bytes
        )
        return sizes

    def refused(self) -> list[int]:
        """The views that were refused."""
        views: list[int] = np.flatnonzero(self.rows[self.program.views.table] < 0).tolist()
        return views

    def reason(self, view: int) -> str:
        """Why a view was refused."""
        if self.rows[self.program.views.table[view]] == TOO_MANY:
            return (
                f"a pattern has more than {self.limits.tuples:,} embeddings in one document, or "
                "takes too long to find them; make it narrower"
            )
        return "a view that it is computed from was refused for this document"


def _sizes(texts: Texts, nodes: int) -> Longs:
    sizes = np.zeros(nodes, np.int64)
    for node, text in texts.items():
        sizes[node] = len(text) if text.isascii() else len(text.encode())
    return sizes


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
        tuples = self._runner.run(document)
        return [tuples.view(number) for number in range(len(self.patterns))]


# Comparing the answers of two configurations.


def differing_views(actual: HeldTuples, expected: HeldTuples) -> list[int]:
    """The views whose tuples or texts differ between two configurations of the same views.

    Both results are for the same document; `expected` has all texts that views mark. Views that
    were refused are not compared; `refused` lists them.
    """
    same: dict[tuple[int, int], bool] = {}
    missing = {mark: _differing_nodes(actual, expected, mark) for mark in MARKS.values()}
    differing = []
    tables = zip(
        actual.program.views.table.tolist(), expected.program.views.table.tolist(), strict=True
    )
    for view, pair in enumerate(tables):
        if pair not in same:
            same[pair] = _same_tuples(actual, expected, *pair)
        if not same[pair] or _marks_one_of(missing, actual, view):
            differing.append(view)
    return differing


def _same_tuples(actual: HeldTuples, expected: HeldTuples, table: int, other: int) -> bool:
    if actual.rows[table] < 0 or expected.rows[other] < 0:
        return True
    if actual.rows[table] != expected.rows[other]:
        return False
    left, right = actual.numbers(table), expected.numbers(other)
    return np.array_equal(left, right) or np.array_equal(_sorted(left), _sorted(right))


def _sorted(numbers: Ints) -> Ints:
    return numbers[np.lexsort(numbers.T)]


def _differing_nodes(actual: HeldTuples, expected: HeldTuples, mark: Mark) -> set[int]:
    return {n for n, text in expected.texts[mark].items() if actual.texts[mark].get(n) != text}


def _marks_one_of(nodes: dict[Mark, set[int]], tuples: HeldTuples, view: int) -> bool:
    if not any(nodes.values()):
        return False
    views = tuples.program.views
    numbers = tuples.numbers(int(views.table[view]))
    mark_range = slice(*views.mark_start[view : view + 2].tolist())
    return any(
        not nodes[MARKS[code]].isdisjoint(numbers[:, column].tolist())
        for column, code in views.marks[mark_range].tolist()
    )


# Kernels: which texts are marked, and how many bytes each view holds.

IDENTIFIER_BYTES = 12
"""The size of an identifier in a message: three numbers of four bytes."""


@nb.njit(nogil=True, cache=True)
def flag_marked(v, level, width, rows, start, cells, flags):  # type: ignore[no-untyped-def]
    """Set in flags[node] the marks (VAL, CONT) that views of this level have at the node."""
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
    """int64 [view]: bytes of its tuples, an identifier for each node of a tuple, each text once."""
    held = np.zeros(v.table.shape[0], np.int64)
    seen = np.full(val_bytes.shape[0], -1, np.int64)
    for view in range(v.table.shape[0]):
        table = v.table[view]
        count = max(rows[table], 0)
        held[view] = IDENTIFIER_BYTES * count * width[table]
        for mark in range(v.mark_start[view], v.mark_start[view + 1]):
            column, kind = v.marks[mark]
            sizes = val_bytes if kind == VAL else cont_bytes
            for line in range(count):
                node = cells[start[table] + line * width[table] + column]
                if seen[node] != mark:
                    seen[node] = mark
                    held[view] += sizes[node]
    return held
