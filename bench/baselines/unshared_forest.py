"""The naive plan as a forest, in which each filter has a chain of nodes of its own; and walks."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from headgate.factor.clause_sets import ClauseSets
from headgate.match.batch import Batch
from headgate.match.forest import Forest
from headgate.match.program import Program, words_for
from headgate.match.walks import BitRows, count_ends, skip_pointers

RUNS = 15


def unshared_forest(given: ClauseSets) -> Forest:
    lengths = np.diff(given.start)[given.distinct]
    ends = np.cumsum(lengths)
    depth = (np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)).astype(np.int32)
    rows = given.clauses[np.repeat(given.start[given.distinct], lengths) + depth]
    node_end = np.full(rows.size, -1, np.int32)
    node_end[ends - 1] = np.arange(ends.size, dtype=np.int32)
    end_start = np.arange(ends.size + 1, dtype=np.int32)
    skip = skip_pointers(depth)
    return Forest(rows, depth, skip, node_end, end_start, given.owners, int(depth.max()) + 1)


def walks_us(programs: Sequence[Program], batches: Sequence[Batch]) -> list[float]:
    """Microseconds that a walk over each forest takes for a batch, its rows being there already.

    Programs take turns, so that what disturbs one disturbs all, and time is that of the CPU.
    """
    prepared = [[_prepare(program, batch) for batch in batches] for program in programs]
    least = [float("inf")] * len(programs)
    for _ in range(RUNS):
        for at, program in enumerate(programs):
            forest = program.forest
            found = np.empty((2, forest.end_start.size), np.int32)
            began = time.thread_time()
            for bits in prepared[at]:
                count_ends(tuple(forest.nodes), tuple(bits), *found)
            least[at] = min(least[at], time.thread_time() - began)
    return [each / len(batches) * 1e6 for each in least]


def _prepare(program: Program, batch: Batch) -> BitRows:
    """The rows, and a stack whose bottom has a bit for each item."""
    stack = np.zeros((program.forest.depth + 1, words_for(batch.size)), np.uint64)
    bits = np.packbits(np.ones(batch.size, np.uint8), bitorder="little")
    stack[0].view(np.uint8)[: bits.size] = bits
    return BitRows(program.rows(batch), stack)
