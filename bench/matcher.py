"""`hg.Matcher`: adding filters to a million, matching frames, opening files.

The workload is pool A, mix S of bench/workloads/conjunctions.py, as texts of the language. A frame
is matched by `match_frame`, and in the same run its batches by the bare kernels: `ProgramMatcher`
on a program of the same filters. Times are CPU seconds of this process, best of several.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from bench import Result, Row, Say
from bench.workloads.conjunctions import SCHEMA, batch, workload
from headgate.api.frames import batches_of
from headgate.api.matcher import Matcher
from headgate.language.unparse import unparse_filter
from headgate.match.batch import batch_of_arrow
from headgate.match.matcher import BatchSize, ProgramMatcher

ADDED = 1_000
TIMES = 5


def run(*, quick: bool, say: Say) -> Result:
    count, rows = (20_000, 40_960) if quick else (1_000_000, 204_800)
    say(f"{count:,} filters as texts")
    filters = workload("A", "S", count + ADDED).filters()
    texts = [(f"filter {n}", unparse_filter(each)) for n, each in enumerate(filters)]
    del filters  # a million objects that nothing needs would slow down the garbage collector
    what = f"{count:,} filters, A, S"
    say(f"{what}: add_many")
    matcher = Matcher(SCHEMA)
    added_s = cpu_s(lambda: matcher.add_many(texts[:count]))
    found = [
        Row("add_many", what, f"{added_s:.1f} s, {added_s / count * 1e6:.0f} µs each"),
        _frame_row(matcher, what, rows, say=say),
        *_file_rows(matcher, what, texts[count:], say=say),
    ]
    return Result(found)


def cpu_s(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def _frame(rows: int) -> pa.Table:
    columns = batch(rows, seed=1).columns
    return pa.table({name: column[0] for name, column in columns.items()})


def _frame_row(matcher: Matcher, what: str, rows: int, *, say: Say) -> Row:
    say(f"{what}: matching {rows:,} rows")
    frame = _frame(rows)
    bare = ProgramMatcher(matcher._compacted().program)

    def kernels() -> None:
        size = BatchSize()
        for part in batches_of(frame, SCHEMA, size):
            size.learn(bare.match(batch_of_arrow(part, SCHEMA)))

    kernels()
    per_row = matcher.match_frame(frame).num_rows / rows
    # In turns, so that both sides see the same machine.
    pairs = [(cpu_s(kernels), cpu_s(lambda: matcher.match_frame(frame))) for _ in range(TIMES)]
    bare_s, ours_s = min(each[0] for each in pairs), min(each[1] for each in pairs)
    return Row(
        "match_frame",
        f"{what}, {rows:,} rows of 20 columns, {per_row:.1f} matches each",
        f"{ours_s / rows * 1e6:.2f} µs a row, {ours_s / bare_s - 1:+.1%}",
        "≤ 10 % above the kernels",
        ours_s <= 1.1 * bare_s,
        baseline=f"ProgramMatcher {bare_s / rows * 1e6:.2f} µs",
    )


def _file_rows(matcher: Matcher, what: str, more: list[tuple[str, str]], *, say: Say) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "filters.headgate"
        matcher.save(path)
        size_mb = path.stat().st_size / 1e6
        open_ms = min(_wall_s(lambda: Matcher.open(path)) for _ in range(TIMES)) * 1e3
        opened = Matcher.open(path)
        say(f"{what}: adding {len(more):,} one by one")
        item = dict.fromkeys(SCHEMA.names, 1)
        opened.match(item)

        def add_all() -> None:
            for name, text in more:
                opened.add(name, text)
            opened.match(item)

        together_ms = cpu_s(add_all) / len(more) * 1e3
        for name, _ in more:
            opened.remove(name)

        def add_and_match() -> None:
            for name, text in more:
                opened.add(name, text)
                opened._filters.view()

        each_ms = cpu_s(add_and_match) / len(more) * 1e3
    return [
        Row("open", f"{what}, {size_mb:.0f} MB", f"{open_ms:.0f} ms", "≤ 500 ms", open_ms <= 500),
        Row(
            "add",
            f"{len(more):,} beside {what}, then a match",
            f"{together_ms:.3f} ms each",
            "≤ 1 ms",
            together_ms <= 1,
        ),
        Row(
            "add",
            f"{len(more):,} beside {what}, compiled after each",
            f"{each_ms:.3f} ms each",
            "≤ 1 ms",
            each_ms <= 1,
        ),
    ]


def _wall_s(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
