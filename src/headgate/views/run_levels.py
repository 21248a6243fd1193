"""Run a configuration over documents, level by level: who reads a view needs no document.

    document ──► level 1: all patterns that the source serves, in one pass, and their texts
                 level 2: rewritings over tables of level 1
                 level 3: …

Law: every view's tuples are those of its pattern over the document, whatever the configuration
(tests/views/test_run_levels.py). All views of level 1 is direct evaluation, by the same kernels.

The tables of a document lie in one room and go with it: a view's tuples are wanted after its last
reader has had them, as they are its subscribers'. So the room is limited, in lines and in cells,
and so are the lines that a join looks at. A view that goes beyond is refused for this document, and
so are those that read it; all others have what is theirs. One wide pattern of one subscriber costs
the others nothing.

Cost: what the tables hold and what joins look at, some ten nanoseconds for a line.
Rejected: tables of NumPy for each step and each rewriting, which cost 30 µs and 300 µs to handle
however small they are, and most are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headgate.model.errors import InvalidValue
from headgate.model.tree_pattern import Mark
from headgate.views.document import Document
from headgate.views.document_arrays import document_arrays
from headgate.views.encode_views import Ints, Longs
from headgate.views.level_program import LevelProgram
from headgate.views.mark_kernels import flag_marked, held_bytes
from headgate.views.pattern_kernels import CONT, VAL
from headgate.views.rewriting_kernels import run_joins
from headgate.views.step_kernels import run_steps
from headgate.views.table_kernels import TOO_MANY
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
        self._slot = program.slot
        self._cells, self._keys = 1 << 12, np.empty(1 << 12, np.int64)

    def run(self, document: Document) -> HeldTuples:
        began = self._clock()
        program, slot = self.program, self._slot
        arrays = document_arrays(document, program.vocabulary, program.valued.tolist())
        rows, start = np.zeros((2, len(program.width)), np.int64)
        cells, used, keys, kept = np.empty(self._cells, np.int32), 0, self._keys, 0
        room = program.width, slot, rows, start, np.full(slot[-1], -1, np.int64)
        limits = self.limits.array()
        moments = [self._clock()]
        cells, used, keys, kept = run_steps(
            program.steps, arrays, *room, cells, used, keys, kept, limits
        )
        moments.append(self._clock())
        steps = len(program.steps.label)
        for first, end in zip(program.level_start[1:-1], program.level_start[2:], strict=True):
            cells, used, keys, kept = run_joins(
                program.joins, arrays, first, end, steps, *room, cells, used, keys, kept, limits,
            )  # fmt: skip
            moments.append(self._clock())
        if max(used, len(keys)) <= KEPT_MAX:
            self._keys, self._cells = keys, max(self._cells, used)
        texts = self._texts(document, rows, start, cells)
        times = LevelTimes(
            moments[0] - began, tuple(np.diff(moments).tolist()), self._clock() - moments[-1]
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
