"""Imperfect merging: table size and false positives against the threshold, with advertisements too.

[MBD §6]: Fig. 14 (routing table size of 100,000 subscriptions for IMT 0 … 0.2, with and without
advertisements) and Fig. 15 (publications that match, and how many of them are false positives), on
the sets of bench/workloads/mbd.py. Both figures are pictures; the text tells two numbers, about
32,852 entries at IMT 0, and at most 2.5 % of false positives below 0.1.

A publication is a false positive if it matches the merged table and none of the subscriptions. The
last rows bound the sum of all IMTs instead (`total_max`), which the paper does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench import Plot, Result, Row, Say
from bench.mbd_routing import after_covering, after_merging, statistics_of
from bench.workloads.mbd import (
    SCHEMA,
    VALUES,
    advertisements,
    batch_of,
    publications,
    subscriptions,
)
from headgate.cover.cells import cells_of_statistics
from headgate.cover.merge_imperfect import ImperfectMerging
from headgate.cover.merge_perfect import merge_perfect
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import compile_program
from headgate.model.filters import Filter

THRESHOLDS = (0.0, 0.0001, 0.001, 0.01, 0.05, 0.1, 0.15, 0.2)
TOTALS = (0.001, 0.01, 0.025)
ALL, ADVERTISED = "without advertisements", "with advertisements"
ADVERTISEMENTS = 5
PAPER_AT_0, PAPER_COUNT = 32_852, 100_000
FALSE_MAX = 0.025


@dataclass(frozen=True, slots=True)
class Point:
    limit: float
    size: int
    matched: int
    false: int

    @property
    def false_share(self) -> float:
        """Of the publications that are forwarded, those that nobody wants."""
        return self.false / max(1, self.matched)


def run(*, quick: bool, say: Say) -> Result:
    count = 5_000 if quick else 100_000
    rows: list[Row] = []
    plots: dict[str, Plot] = {}
    for pool in VALUES:
        say(f"covering and perfect merging, {count:,} subscriptions, set {pool}")
        filters = subscriptions(pool, count).filters()
        covered = after_covering(filters)
        table = after_merging(covered, merge_perfect(covered, SCHEMA))
        plain = after_merging(covered, merge_perfect(covered, SCHEMA, in_values_max=1))
        rows.append(_plain_row(pool, plain, count))
        lines: dict[str, list[Point]] = {}
        for name in (ALL, ADVERTISED):
            say(f"imperfect merging, set {pool}, {name}")
            lines[name] = _sweep(pool, table, advertised=name == ADVERTISED)
        rows += _rows(pool, lines, count, quick=quick)
        say(f"imperfect merging, set {pool}, with a bound on the total")
        rows += _total_rows(pool, table)
        plots |= _plots(pool, lines)
    return Result(rows, plots=plots)


def _merging(pool: str, table: list[Filter], *, advertised: bool) -> ImperfectMerging:
    given = advertisements(pool, ADVERTISEMENTS) if advertised else None
    return ImperfectMerging(table, SCHEMA, cells_of_statistics(statistics_of(pool), given))


def _sweep(pool: str, table: list[Filter], *, advertised: bool) -> list[Point]:
    """One run: a higher threshold goes on where a lower one stopped."""
    merging = _merging(pool, table, advertised=advertised)
    judge = _judge(pool, table, advertised=advertised)
    return [judge(each, after_merging(table, merging.up_to(each))) for each in THRESHOLDS]


def _judge(
    pool: str, table: list[Filter], *, advertised: bool
) -> Callable[[float, list[Filter]], Point]:
    """What publications say of a merged table, beside the table that it was made of.

    With advertisements, of 50,000 publications those that are advertised.
    """
    values = publications(pool, 50_000, seed=15)
    if advertised:
        given = advertisements(pool, ADVERTISEMENTS)
        values = values[:, _matching(given, values)]
    wanted = _matching(table, values)

    def judged(limit: float, merged: list[Filter]) -> Point:
        found = _matching(merged, values)
        assert not (wanted & ~found).any(), "a merger lost a publication"
        return Point(limit, len(merged), int(found.sum()), int((found & ~wanted).sum()))

    return judged


def _matching(filters: list[Filter], values: np.ndarray) -> np.ndarray:
    """Which publications match one of the filters."""
    matcher = ProgramMatcher(compile_program(filters, SCHEMA))
    parts = np.array_split(values, -(-values.shape[1] // 4_096), axis=1)
    return np.concatenate([np.diff(matcher.match(batch_of(each)).starts) > 0 for each in parts])


def _plain_row(pool: str, plain: list[Filter], count: int) -> Row:
    paper = f"about {PAPER_AT_0:,} of {PAPER_COUNT:,}"
    return Row(
        "Fig. 14, size",
        f"{pool}, covering and perfect merging without `in` lists",
        f"{len(plain):,} of {count:,}",
        paper=paper,
    )


def _rows(pool: str, lines: dict[str, list[Point]], count: int, *, quick: bool) -> list[Row]:
    sizes, false = [], []
    for plain, advertised in zip(lines[ALL], lines[ADVERTISED], strict=True):
        what = f"{pool}, IMT {plain.limit:g}"
        ours = f"{plain.size:,} of {count:,}; advertised {advertised.size:,}"
        paper = f"about {PAPER_AT_0:,} of {PAPER_COUNT:,}" if plain.limit == 0 else ""
        sizes.append(Row("Fig. 14, size", what, ours, paper=paper))
        ours = (
            f"{plain.false_share:.2%} of {plain.matched:,} matched; "
            f"advertised {advertised.false_share:.2%} of {advertised.matched:,}"
        )
        row = Row("Fig. 15, false positives", what, ours)
        if plain.limit < 0.1 and not quick:  # the paper's number is for the paper's size
            met = plain.false_share <= FALSE_MAX
            row = Row(row.figure, what, ours, f"≤ {FALSE_MAX:.1%}", met, "≤ 2.5 %")
        false.append(row)
    return sizes + false


def _total_rows(pool: str, table: list[Filter]) -> list[Row]:
    merging, judge = _merging(pool, table, advertised=False), _judge(pool, table, advertised=False)
    rows = []
    for total in TOTALS:
        point = judge(total, after_merging(table, merging.up_to(1.0, total_max=total)))
        share = point.false / 50_000
        ours = f"{point.size:,} entries, {share:.2%} of all publications in vain"
        rows.append(
            Row(
                "bounded total",
                f"{pool}, Σ IMT ≤ {total:g}",
                ours,
                f"≤ {total:.1%}",
                share <= total,
            )
        )
    return rows


def _plots(pool: str, lines: dict[str, list[Point]]) -> dict[str, Plot]:
    sizes = {name: [(p.limit, float(p.size)) for p in points] for name, points in lines.items()}
    false = {
        name: [(p.limit, 100 * p.false_share) for p in points] for name, points in lines.items()
    }
    return {
        f"size-{pool}": Plot(f"Table size, set {pool}", "IMT", "entries", sizes),
        f"false-{pool}": Plot(f"False positives, set {pool}", "IMT", "% of what matches", false),
    }
