"""Two ways to use the program's own rows without its forest.

NumPy ANDs the rows of every conjunction: bit-parallel, with no sharing and no skipping. The index
on the rarest atom looks at one item after the other: the conjunctions whose rarest atom is true are
checked atom by atom, in Numba.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from bench import seconds
from bench.workloads.conjunctions import Workload, batch
from headgate.match.program import Program

BATCH = 4_096


def numpy_us(program: Program, work: Workload) -> float:
    row_of = _rows_of_pool(program, work)
    always = program.row_count
    lines = np.where(work.chosen >= 0, row_of[work.chosen], always)

    def count() -> None:
        rows = program.rows(batch(BATCH, seed=1))
        rows = np.vstack([rows, np.full((1, rows.shape[1]), ~np.uint64(0))])
        for start in range(0, len(lines), 20_000):
            part = lines[start : start + 20_000]
            found = rows[part[:, 0]]
            for column in range(1, 6):
                found &= rows[part[:, column]]
            np.bitwise_count(found).sum(axis=1)

    return seconds(count) / BATCH * 1e6


def rarest_atom_us(program: Program, work: Workload, *, items: int = 200) -> float:
    row_of = _rows_of_pool(program, work)
    lines = np.where(work.chosen >= 0, row_of[work.chosen], -1)
    rows = program.rows(batch(BATCH, seed=2))
    share = np.bitwise_count(rows).sum(axis=1)
    rarity = np.where(lines >= 0, share[lines], np.iinfo(np.int64).max)
    rarest = lines[np.arange(len(lines)), rarity.argmin(axis=1)]
    order = np.argsort(rarest, kind="stable")
    start = np.searchsorted(rarest[order], np.arange(len(rows) + 1))
    truth = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").T.copy()
    arguments = truth, start, lines[order]
    _count(*arguments, items=1)
    return seconds(lambda: _count(*arguments, items=items)) / items * 1e6


def _rows_of_pool(program: Program, work: Workload) -> np.ndarray:
    """The row of each pool atom, numbered as the compiler met them."""
    used = work.chosen[work.chosen >= 0]
    met, first = np.unique(used, return_index=True)
    row_of = np.full(len(work.pool), 0, np.int64)
    row_of[met[np.argsort(first)]] = np.arange(met.size)
    assert met.size == program.atom_count
    return row_of


@nb.njit(nogil=True)
def _count(truth, start, lines, items):  # type: ignore[no-untyped-def]
    total = 0
    for item in range(items):
        answers = truth[item]
        for row in range(start.shape[0] - 1):
            if answers[row]:
                for line in range(start[row], start[row + 1]):
                    ok = True
                    for column in range(lines.shape[1]):
                        at = lines[line, column]
                        if at >= 0 and not answers[at]:
                            ok = False
                            break
                    total += ok
    return total
