"""Matching items against 200,000 to 1,000,000 conjunctions, on one core, beside three baselines.

The workload is that of bench/workloads/conjunctions.py. Times are the best of several batches, per
item. The baselines look at the same items in the same run: the naive evaluator (extrapolated from a
sample), NumPy on the same bit rows without a forest, and a Numba index on each conjunction's rarest
atom, which looks at one item after the other. mbd.txt reports 10 to 80 ms per item (Table 2).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

import numba as nb
import numpy as np

from bench import Plot, Result, Row, Say, seconds
from bench.workloads.conjunctions import SCHEMA, Workload, batch, items_of, workload
from bench.workloads.keywords import SCHEMA as KEYWORD_SCHEMA
from bench.workloads.keywords import keyword_filters, keyword_items
from headgate.match.arrow import batch_of_arrow
from headgate.match.matcher import Matcher
from headgate.match.program import compile_program
from headgate.model.evaluate import matches

BATCH = 4_096
PAPER = "10–80 ms"


def run(*, quick: bool, say: Say) -> Result:
    count = 20_000 if quick else 200_000
    rows: list[Row] = []
    for pool in ("A", "B"):
        for mix in "UES":
            say(f"{count:,} conjunctions, pool {pool}, mix {mix}")
            rows += _one_mix(pool, mix, count, quick=quick)
    keywords = 10_000 if quick else 100_000
    say(f"{keywords:,} conjunctions of keywords")
    rows.append(_keyword_row(keywords))
    say("growing")
    points = [(size, _count_us(_matcher(workload("A", "S", size)))) for size in _sizes(quick=quick)]
    largest = points[-1]
    rows.append(_row("count", f"{largest[0]:,} conjunctions, A, S", largest[1], target_us=15))
    plot = Plot("Matching, pool A, mix S", "conjunctions", "µs per item", {"program": points})
    return Result(rows, plot)


def _keyword_row(count: int) -> Row:
    """Tokenising included: a batch begins as Arrow's text."""
    matcher = Matcher(compile_program(keyword_filters(count), KEYWORD_SCHEMA))
    found = [keyword_items(BATCH, seed=n) for n in range(8)]
    took_us = _best_us(lambda n: matcher.count(batch_of_arrow(found[n], KEYWORD_SCHEMA)), BATCH)
    return _row("keywords", f"{count:,} conjunctions of 1–3 words", took_us, 12)


def _sizes(*, quick: bool) -> list[int]:
    full = [50_000, 100_000, 200_000, 500_000, 1_000_000]
    return [size // 10 for size in full] if quick else full


def _matcher(work: Workload) -> Matcher:
    return Matcher(compile_program(work.filters(), SCHEMA))


def _one_mix(pool: str, mix: str, count: int, *, quick: bool) -> list[Row]:
    work = workload(pool, mix, count)
    filters = work.filters()
    began = time.perf_counter()
    matcher = Matcher(compile_program(filters, SCHEMA))
    compiled_s = time.perf_counter() - began
    what = f"{count:,} conjunctions, {pool}, {mix}"
    counted_us = _count_us(matcher)
    baseline = f"NumPy {_numpy_us(matcher, work):.0f} µs, rarest {_rarest_us(matcher, work):.0f} µs"
    rows = [
        _row("count", f"{what}, batch {BATCH:,}", counted_us, 5, baseline=baseline, paper=PAPER)
    ]
    matched_us, per_item = _match_us(matcher)
    extra_ns = max(0.0, matched_us - counted_us) * 1e3 / max(per_item, 1e-9)
    ours = f"+ {extra_ns:.1f} ns per match ({per_item:,.0f} per item)"
    rows.append(Row("ids", what, ours, "+ ≤ 4 ns", extra_ns <= 4))
    if mix == "S":
        rows.append(_row("count", f"{what}, batch 64", _count_us(matcher, 64), 5))
        rows.append(_row("count", f"{what}, a single item", _count_us(matcher, 1), 250))
    if mix == "U":
        naive_us = _naive_us(filters, sample=200 if quick else 1_000)
        target_s = 6 * count / 200_000
        told = f"≤ {target_s:g} s"
        rows.append(Row("compile", what, f"{compiled_s:.1f} s", told, compiled_s <= target_s))
        rows.append(Row("naive", what, "", baseline=f"{naive_us / 1e3:,.0f} ms"))
    return rows


def _row(
    figure: str, what: str, took_us: float, target_us: float, *, baseline: str = "", paper: str = ""
) -> Row:
    told = f"{took_us:.2f} µs"
    return Row(figure, what, told, f"≤ {target_us:g} µs", took_us <= target_us, paper, baseline)


def _best_us(action: Callable[[int], object], size: int, *, runs: int = 7) -> float:
    """The best time per item over several batches; a small batch is repeated within each."""
    action(0)
    repeat = max(1, 2_048 // size)
    times = []
    for run_number in range(1, runs + 1):
        took = seconds(lambda n=run_number: [action(n) for _ in range(repeat)])
        times.append(took / repeat / size * 1e6)
    return min(times)


def _count_us(matcher: Matcher, size: int = BATCH) -> float:
    found = [batch(size, seed=n) for n in range(8)]
    return _best_us(lambda n: matcher.count(found[n]), size)


def _match_us(matcher: Matcher) -> tuple[float, float]:
    found = [batch(BATCH, seed=n) for n in range(8)]
    per_item = matcher.match(found[0]).subscriptions.size / BATCH
    return _best_us(lambda n: matcher.match(found[n]), BATCH, runs=3), per_item


def _naive_us(filters: list, *, sample: int) -> float:
    some = items_of(batch(64, seed=1), 5, datetime(2026, 1, 1, tzinfo=UTC))
    took = seconds(lambda: [matches(each, item) for item in some for each in filters[:sample]])
    return took / len(some) / sample * len(filters) * 1e6


def _numpy_us(matcher: Matcher, work: Workload) -> float:
    """All conjunctions of the same rows, by NumPy: no sharing, no skipping."""
    program = matcher.program
    row_of = _rows_of_pool(matcher, work)
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


def _rows_of_pool(matcher: Matcher, work: Workload) -> np.ndarray:
    """The row of each pool atom, numbered as the compiler met them."""
    used = work.chosen[work.chosen >= 0]
    met, first = np.unique(used, return_index=True)
    row_of = np.full(len(work.pool), 0, np.int64)
    row_of[met[np.argsort(first)]] = np.arange(met.size)
    assert met.size == matcher.program.atom_count
    return row_of


def _rarest_us(matcher: Matcher, work: Workload) -> float:
    """For each item, the conjunctions whose rarest atom is true are checked atom by atom."""
    row_of = _rows_of_pool(matcher, work)
    lines = np.where(work.chosen >= 0, row_of[work.chosen], -1)
    rows = matcher.program.rows(batch(BATCH, seed=2))
    share = np.bitwise_count(rows).sum(axis=1)
    rarity = np.where(lines >= 0, share[lines], np.iinfo(np.int64).max)
    rarest = lines[np.arange(len(lines)), rarity.argmin(axis=1)]
    order = np.argsort(rarest, kind="stable")
    start = np.searchsorted(rarest[order], np.arange(len(rows) + 1))
    truth = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").T.copy()
    arguments = truth, start, lines[order]
    _rarest(*arguments, items=1)
    looked_at = 200
    return seconds(lambda: _rarest(*arguments, items=looked_at)) / looked_at * 1e6


@nb.njit(nogil=True)
def _rarest(truth, start, lines, items):  # type: ignore[no-untyped-def]
    total = 0
    for item in range(items):
        answers = truth[item]
        for row in range(start.shape[0] - 1):
            if answers[row]:
                for line in range(start[row], start[row + 1]):
                    ok = True
                    for column in range(6):
                        at = lines[line, column]
                        if at >= 0 and not answers[at]:
                            ok = False
                            break
                    total += ok
    return total
