"""Matching items against 200,000 to 1,000,000 conjunctions, on one core, beside four baselines.

The workload is that of bench/workloads/conjunctions.py. Times are the best of several batches, per
item. The baselines look at the same items in the same run: the naive evaluator (extrapolated from a
sample), NumPy on the same bit rows without a forest, a Numba index on each conjunction's rarest
atom that looks at one item after the other, and DuckDB with events unpivoted and joined on ranges.
[MBD] reports 10 to 80 ms per item (Table 2).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from bench import Plot, Result, Row, Say, seconds
from bench.baselines.duckdb_join import duckdb_us
from bench.baselines.same_rows import BATCH, numpy_us, rarest_atom_us
from bench.baselines.two_pass_cover import TwoPassCover
from bench.workloads.conjunctions import SCHEMA, batch, items_of, workload
from bench.workloads.keywords import SCHEMA as KEYWORD_SCHEMA
from bench.workloads.keywords import keyword_filters, keyword_items
from bench.workloads.mbd import subscriptions
from headgate.cover.forest_cover import CubeCover, ForestCover
from headgate.match.batch import batch_of_arrow
from headgate.match.living import LivingProgram
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import Program, compile_program, open_program, write_program
from headgate.model.evaluate import matches
from headgate.model.filters import Filter

PAPER = "10–80 ms"
COVER_BATCH = 4_096
_RESIDENT = """
import sys
from pathlib import Path
from bench.workloads.conjunctions import batch
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import open_program
ProgramMatcher(open_program(Path(sys.argv[1]))).match(batch(4_096, seed=1))
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


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
    points = []
    for size in [5_000, 10_000, 20_000, 50_000] if quick else [50_000, 100_000, 200_000, 500_000]:
        say(f"{size:,} conjunctions")
        program = compile_program(workload("A", "S", size).filters(), SCHEMA)
        points.append((size, _count_us(ProgramMatcher(program))))
    largest = 100_000 if quick else 1_000_000
    added = 1_000 if quick else 10_000
    counted_us, more = _large(largest, added, say=say)
    points.append((largest, counted_us))
    say(f"covering, {count:,} insertions, and by two passes")
    more += _cover_rows(subscriptions("A", count).filters())
    plot = Plot("Matching, pool A, mix S", "conjunctions", "µs per item", {"program": points})
    return Result(rows + more, plot)


def _one_mix(pool: str, mix: str, count: int, *, quick: bool) -> list[Row]:
    work = workload(pool, mix, count)
    filters = work.filters()
    program, compiled_s = _compiled(filters)
    matcher = ProgramMatcher(program)
    what = f"{count:,} conjunctions, {pool}, {mix}"
    counted_us = _count_us(matcher)
    duck_us, found = duckdb_us(work, items=4 if mix == "U" else 16, seed=1)
    expected = matcher.match(batch(4 if mix == "U" else 16, seed=1)).subscriptions.size
    assert found == expected, f"DuckDB found {found:,} matches, the program {expected:,}"
    naive_us = _naive_us(filters, sample=200 if quick else 1_000)
    baseline = (
        f"NumPy {numpy_us(program, work):.0f} µs, rarest {rarest_atom_us(program, work):.0f} µs, "
        f"DuckDB {duck_us / 1e3:.1f} ms, naive {naive_us / 1e3:,.0f} ms"
    )
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
        rows.append(_compile_row(what, compiled_s, 6 * count / 200_000))
    return rows


def _large(count: int, added: int, *, say: Say) -> tuple[float, list[Row]]:
    """A large program: compiled, written, opened, and added to."""
    what = f"{count:,} conjunctions, A, S"
    say(f"{what}: compiling")
    filters = workload("A", "S", count + added).filters()
    compiled, compiled_s = _compiled(filters[:count])
    more = filters[count:]
    del filters  # a million objects that nothing needs would slow down the garbage collector
    with tempfile.TemporaryDirectory() as folder:
        path = write_program(Path(folder), compiled)
        opened_ms = min(seconds(lambda: open_program(path)) for _ in range(5)) * 1e3
        program = open_program(path)
        resident_mb = _resident_mb(path)
        counted_us = _count_us(ProgramMatcher(program))
        say(f"{what}: adding {added:,} one by one")
        rows = _change_rows(program, more, what)
    size_mb = sum(each.nbytes for each in _arrays(program)) / 1e6
    return counted_us, [
        _row("count", what, counted_us, 15),
        _compile_row(what, compiled_s, 40 * count / 1_000_000),
        Row(
            "open", f"{what}, {size_mb:.0f} MB", f"{opened_ms:.0f} ms", "≤ 100 ms", opened_ms <= 100
        ),
        Row("resident", what, f"{resident_mb:,.0f} MB", "≤ 1,000 MB", resident_mb <= 1_000),
        *rows,
    ]


def _change_rows(program: Program, more: list[Filter], what: str) -> list[Row]:
    """Each is added, and compiled so that the next batch would see it."""
    living = LivingProgram(SCHEMA, program)
    found = [batch(BATCH, seed=n) for n in range(8)]
    before_us = _best_us(lambda n: living.match(found[n]), BATCH)
    times = []
    for name, filter_ in enumerate(more, start=program.subscription_count):
        began = time.perf_counter()
        living.add(name, filter_)
        living.view()
        times.append((time.perf_counter() - began) * 1e3)
    after_us = _best_us(lambda n: living.match(found[n]), BATCH)
    slower = after_us / before_us - 1
    mean, worst = float(np.mean(times)), max(times)
    return [
        Row(
            "add",
            f"{len(more):,} one by one to {what}",
            f"{mean:.2f} ms each, the slowest {worst:.0f} ms",
            "≤ 1 ms each",
            mean <= 1,
        ),
        Row(
            "match after adding",
            f"{len(more):,} to {what}",
            f"{before_us:.2f} → {after_us:.2f} µs, {slower:+.0%}",
            "at most 20 % slower",
            slower <= 0.2,
        ),
    ]


def _cover_rows(filters: list[Filter]) -> list[Row]:
    """All insertions in batches; what a filter says is described once, apart from the check."""
    checked = {}
    for way in (ForestCover, TwoPassCover):
        _cover_us(way(), filters[: 2 * COVER_BATCH])  # compiles the kernels
        checked[way] = _cover_us(way(), filters)
    (described, ours), (_, baseline) = checked[ForestCover], checked[TwoPassCover]
    times = float(baseline.mean() / ours.mean())
    whole = float((baseline + described).mean() / (ours + described).mean())
    quarters = [float(part.mean()) for part in np.array_split(ours, 4)]
    growth = quarters[3] / quarters[1]
    what = f"{len(filters):,} insertions, set A of [MBD]"
    return [
        Row(
            "cover check",
            what,
            f"{ours.mean():.1f} µs, {times:.0f} × faster; describing included {whole:.0f} ×",
            "≥ 50 × faster",
            times >= 50,
            baseline=f"two passes {baseline.mean():.0f} µs",
        ),
        Row(
            "cover check, growth",
            f"{what}: each quarter",
            ", ".join(f"{each:.1f}" for each in quarters) + f" µs; last over second {growth:.2f} ×",
            "flat (≤ 1.25 ×)",
            growth <= 1.25,
        ),
    ]


def _cover_us(cover: CubeCover, filters: list[Filter]) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds for an insertion, in each batch: describing the filters, and the check."""
    described, checked = [], []
    for start in range(0, len(filters), COVER_BATCH):
        some = filters[start : start + COVER_BATCH]
        began = time.perf_counter()
        cubes = cover.cubes_of(some)
        between = time.perf_counter()
        cover.insert_cubes(range(start, start + len(some)), some, cubes)
        described.append((between - began) / len(some) * 1e6)
        checked.append((time.perf_counter() - between) / len(some) * 1e6)
    return np.array(described), np.array(checked)


def _resident_mb(path: Path) -> float:
    """The memory of a process that opens the program and matches a batch, Python included."""
    root = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", _RESIDENT, str(path)]
    printed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return int(printed) * 1_024 / 1e6


def _arrays(program: Program) -> list[np.ndarray]:
    forest = program.forest
    return [*forest.nodes, forest.end_start, forest.subscriptions, program.names]


def _compiled(filters: list[Filter]) -> tuple[Program, float]:
    began = time.perf_counter()
    program = compile_program(filters, SCHEMA)
    return program, time.perf_counter() - began


def _compile_row(what: str, took_s: float, target_s: float) -> Row:
    return Row("compile", what, f"{took_s:.1f} s", f"≤ {target_s:g} s", took_s <= target_s)


def _keyword_row(count: int) -> Row:
    """Tokenising included: a batch begins as Arrow's text."""
    matcher = ProgramMatcher(compile_program(keyword_filters(count), KEYWORD_SCHEMA))
    found = [keyword_items(BATCH, seed=n) for n in range(8)]
    took_us = _best_us(lambda n: matcher.count(batch_of_arrow(found[n], KEYWORD_SCHEMA)), BATCH)
    return _row("keywords", f"{count:,} conjunctions of 1–3 words", took_us, 12)


def _row(
    figure: str, what: str, took_us: float, target_us: float, *, baseline: str = "", paper: str = ""
) -> Row:
    told = f"{took_us:.2f} µs"
    return Row(figure, what, told, f"≤ {target_us:g} µs", took_us <= target_us, paper, baseline)


def _best_us(action: Callable[[int], object], size: int, *, runs: int = 15) -> float:
    """The best time per item over several batches; a small batch is repeated within each."""
    action(0)
    repeat = max(1, 2_048 // size)
    times = []
    for run_number in range(1, runs + 1):
        took = seconds(lambda n=run_number % 8: [action(n) for _ in range(repeat)])
        times.append(took / repeat / size * 1e6)
    return min(times)


def _count_us(matcher: ProgramMatcher, size: int = BATCH) -> float:
    found = [batch(size, seed=n) for n in range(8)]
    return _best_us(lambda n: matcher.count(found[n]), size)


def _match_us(matcher: ProgramMatcher) -> tuple[float, float]:
    found = [batch(BATCH, seed=n) for n in range(8)]
    per_item = matcher.match(found[0]).subscriptions.size / BATCH
    return _best_us(lambda n: matcher.match(found[n]), BATCH, runs=7), per_item


def _naive_us(filters: list[Filter], *, sample: int) -> float:
    some = items_of(batch(64, seed=1), 5, datetime(2026, 1, 1, tzinfo=UTC))
    took = seconds(lambda: [matches(each, item) for item in some for each in filters[:sample]])
    return took / len(some) / sample * len(filters) * 1e6
