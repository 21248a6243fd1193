"""Routing tables after covering and merging: their sizes, routing times and insertion times.

[MBD §6]: Fig. 12 (sizes), Table 2 (time to route a publication) and Fig. 13 (time to insert a
subscription), on sets A and B of bench/workloads/mbd.py. Fig. 12 is a picture without numbers; its
text tells the covering rates, and the sizes beside ours are those that Table 2's naive column
implies, as a linear scan takes time in proportion to the table.

Ours: the program of match/ in batches of 4,096, all matches written out, on one core. Baselines in
the same run: a linear scan in Numba with a bit mask for each predicate, which leaves a subscription
at the first predicate that fails; and covering in two passes (baselines/two_pass_cover.py).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numba as nb
import numpy as np

from bench import Plot, Result, Row, Say, seconds
from bench.baselines.attribute_orders import ORDERS
from bench.baselines.two_pass_cover import TwoPassCover
from bench.baselines.uniform_statistics import uniform_statistics
from bench.workloads.mbd import SCHEMA, VALUES, batch_of, publications, subscriptions
from headgate.cover.cells import cells_of_statistics
from headgate.cover.forest_cover import ForestCover
from headgate.cover.forest_index import rank_rows
from headgate.cover.merge_imperfect import merge_imperfect
from headgate.cover.merge_perfect import Merger, merge_perfect
from headgate.cover.probability import Statistics
from headgate.cover.value_sets import values_of
from headgate.match.forest import build_forest
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import compile_program
from headgate.model.atoms import Atom
from headgate.model.filters import Filter, conjuncts
from headgate.model.values import Type

BATCH = 4_096
STEP = 2_000
"""A point of Fig. 13 is the mean of so many insertions."""
IMPERFECT = 0.0001
"""The threshold of imperfect merging for Fig. 12 and Table 2; the paper does not tell its own."""
METHODS = ("nothing", "covering", "perfect merging", "imperfect merging")
PAPER_MS = {
    "A": ((68.73, 300.71), (19.16, 73.41), (13.31, 49.89), (9.96, 43.83)),
    "B": ((82.28, 300.92), (38.15, 165.38), (33.37, 152.21), (29.19, 141.06)),
}
"""Table 2: MBD and naive."""
COVERED = {"A": (0.70, 0.80), "B": (0.40, 0.50)}
"""About 75 % and 45 %."""


def run(*, quick: bool, say: Say) -> Result:
    count = 10_000 if quick else 200_000
    rows: list[Row] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for pool in VALUES:
        say(f"{count:,} subscriptions, set {pool}")
        drawn = subscriptions(pool, count)
        predicates = f"{drawn.distinct_predicates():,} of {100 * VALUES[pool]:,}"
        rows.append(Row("distinct predicates", pool, predicates, paper=f"{100 * VALUES[pool]:,}"))
        filters = drawn.filters()
        tables, without_lists = _tables(filters, pool, say)
        rows += _size_rows(pool, tables, without_lists, quick=quick)
        say(f"routing, set {pool}")
        rows += _routing_rows(pool, tables, quick=quick)
        rows += _order_rows(pool, tables["covering"])
        say(f"inserting, set {pool}")
        ours, two_passes = _insertion_points(filters, subscriptions(pool, 200, seed=7).filters())
        rows += _insertion_rows(pool, ours, two_passes)
        lines |= {f"{pool}, forest": ours, f"{pool}, two passes": two_passes}
    plot = Plot("Inserting subscriptions", "subscriptions", "µs each", lines)
    return Result(rows, plot)


def statistics_of(pool: str) -> Statistics:
    ranges = dict.fromkeys(SCHEMA.names, (0, VALUES[pool] - 1))
    return uniform_statistics(SCHEMA, ranges)


def after_covering(filters: Sequence[Filter]) -> list[Filter]:
    """Those that no other covers."""
    covered = ForestCover().insert(range(len(filters)), filters)
    return [each for at, each in enumerate(filters) if at not in covered]


def after_merging(filters: Sequence[Filter], mergers: Sequence[Merger]) -> list[Filter]:
    """What is in no merger and the mergers, and of those what no other covers (Fig. 10)."""
    merged = {part for merger in mergers for part in merger.parts}
    left = [each for at, each in enumerate(filters) if at not in merged]
    return after_covering([*left, *(merger.filter for merger in mergers)])


def _tables(
    filters: list[Filter], pool: str, say: Say
) -> tuple[dict[str, list[Filter]], list[Filter]]:
    """The table after each method, and after perfect merging without lists."""
    say(f"covering, set {pool}")
    covered = after_covering(filters)
    say(f"perfect merging, set {pool}")
    perfect = after_merging(covered, merge_perfect(covered, SCHEMA))
    plain = after_merging(covered, merge_perfect(covered, SCHEMA, in_values_max=1))
    say(f"imperfect merging, set {pool}")
    cells = cells_of_statistics(statistics_of(pool))
    mergers = merge_imperfect(perfect, SCHEMA, cells, threshold=IMPERFECT)
    tables = filters, covered, perfect, after_merging(perfect, mergers)
    return dict(zip(METHODS, tables, strict=True)), plain


def _size_rows(
    pool: str, tables: dict[str, list[Filter]], without_lists: list[Filter], *, quick: bool
) -> list[Row]:
    naive_ms = [naive for _, naive in PAPER_MS[pool]]
    count = len(tables["nothing"])
    rows = []
    for at, (method, table) in enumerate(tables.items()):
        left = len(table) / count
        ours = f"{len(table):,} ({left:.1%})"
        share = naive_ms[at] / naive_ms[0]
        paper = f"about {200_000 * share:,.0f} ({share:.1%})" if at else "200,000"
        target, met = "", None
        if method == "covering" and not quick:
            low, high = COVERED[pool]
            target, met = f"{1 - high:.0%}–{1 - low:.0%} left", low <= 1 - left <= high
        name = f"{pool}, {method}" + (f", IMT ≤ {IMPERFECT}" if "imperfect" in method else "")
        rows.append(Row("Fig. 12, size", name, ours, target, met, paper))
        if method == "perfect merging":
            plain = f"{len(without_lists):,} ({len(without_lists) / count:.1%})"
            rows.append(Row("Fig. 12, size", f"{name}, without `in` lists", plain))
    return rows


def _routing_rows(pool: str, tables: dict[str, list[Filter]], *, quick: bool) -> list[Row]:
    """The paper's times are for 200,000 subscriptions: only a full run is compared with them."""
    rows = []
    for (method, table), (paper_ms, naive_ms) in zip(tables.items(), PAPER_MS[pool], strict=True):
        ours_us, scan_us = _program_us(pool, table), _scan_us(pool, table)
        times = paper_ms * 1e3 / ours_us
        told = f"{ours_us:.2f} µs ({scan_us / ours_us:,.0f} × scan"
        rows.append(
            Row(
                "Table 2, routing",
                f"{pool}, {method}",
                told + (")" if quick else f", {times:,.0f} × MBD)"),
                "" if quick else "≥ 1,000 × MBD",
                None if quick else times >= 1_000,
                f"MBD {paper_ms} ms, naive {naive_ms} ms",
                f"scan {scan_us:,.0f} µs",
            )
        )
    return rows


def _program_us(pool: str, table: list[Filter]) -> float:
    """The best of several batches, per publication; all matches are written out."""
    matcher = ProgramMatcher(compile_program(table, SCHEMA))
    batches = [batch_of(publications(pool, BATCH, seed=n)) for n in range(6)]
    matcher.match(batches[0])
    return min(seconds(lambda each=each: matcher.match(each)) for each in batches[1:]) / BATCH * 1e6


def _scan_us(pool: str, table: list[Filter]) -> float:
    start, attribute, mask = _masks(table)
    values = publications(pool, 64, seed=1).T.copy()
    _scan(start, attribute, mask, values[:1])
    took = min(seconds(lambda: _scan(start, attribute, mask, values)) for _ in range(3))
    return took / len(values) * 1e6


def _masks(table: list[Filter]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each filter its attributes, one after the other, with a bit for each allowed value."""
    known: dict[Filter, tuple[int, int]] = {}
    start, attributes, masks = [0], [], []
    for filter_ in table:
        for atom in conjuncts(filter_):
            if atom not in known:
                known[atom] = _mask(atom)  # type: ignore[arg-type]
            attributes.append(known[atom][0])
            masks.append(known[atom][1])
        start.append(len(masks))
    return np.array(start), np.array(attributes, np.int32), np.array(masks, np.uint64)


def _mask(atom: Atom) -> tuple[int, int]:
    mask = 0
    for low, high in values_of(atom, Type.INT).intervals:  # type: ignore[arg-type]
        first = low.value if isinstance(low.value, int) else 0
        beyond = high.value if isinstance(high.value, int) else 64
        mask |= sum(1 << value for value in range(max(0, first), min(64, beyond)))
    return int(atom.attribute[1:]), mask  # type: ignore[union-attr]


@nb.njit(nogil=True)
def _scan(start, attribute, mask, values):  # type: ignore[no-untyped-def]
    total = 0
    for item in range(values.shape[0]):
        for one in range(start.size - 1):
            at, end = start[one], start[one + 1]
            while at < end and mask[at] >> np.uint64(values[item, attribute[at]]) & np.uint64(1):
                at += 1
            total += at == end
    return total


def _order_rows(pool: str, table: list[Filter]) -> list[Row]:
    """What the order of attributes changes: how many nodes the forest has."""
    numbers: dict[Filter, int] = {}
    flat = [numbers.setdefault(atom, len(numbers)) for each in table for atom in conjuncts(each)]
    lengths = np.array([len(conjuncts(each)) for each in table], np.int32)
    rows = np.array(flat, np.int32)
    owners = np.repeat(np.arange(lengths.size), lengths)
    place = np.array([int(atom.attribute[1:]) for atom in numbers], np.int64)  # type: ignore[union-attr]
    nodes = {}
    for name, order in ORDERS.items():
        rank = rank_rows(order(owners, place[rows], rows.astype(np.int64)), place)
        forest = build_forest(lengths, rows, np.arange(lengths.size, dtype=np.int32), rank)
        nodes[name] = forest.node_row.size
    told = ", ".join(f"{name} {count:,}" for name, count in nodes.items())
    paper = "random: 6,076 more entries after perfect merging"
    return [Row("attribute order", f"{pool}, covering, nodes of the forest", told, paper=paper)]


Points = list[tuple[float, float]]


def _insertion_points(filters: list[Filter], newcomers: list[Filter]) -> tuple[Points, Points]:
    """Over the number of filters inserted, µs for one more: ours, and two passes.

    Ours inserts all of them, `STEP` at a time. Two passes would take hours: they are measured on
    newcomers, four times, with a table that is loaded with the same roots.
    """
    cover = ForestCover()
    roots: dict[int, Filter] = {}
    step = min(STEP, len(filters) // 8)
    ours: Points = []
    two_passes: Points = []
    for start in range(0, len(filters), step):
        some = dict(enumerate(filters[start : start + step], start))
        began = time.perf_counter()
        covered = cover.insert(list(some), list(some.values()))
        took_us = (time.perf_counter() - began) / len(some) * 1e6
        roots = {at: each for at, each in (roots | some).items() if at not in covered}
        done = start + len(some)
        ours.append((float(done), took_us))
        if done % (len(filters) // 4) < step:
            two_passes.append((float(done), _two_passes_us(list(roots.values()), newcomers)))
    return ours, two_passes


class _LoadedTable(TwoPassCover):
    def load(self, filters: list[Filter]) -> None:
        """Filters that are known not to cover each other."""
        for number, (filter_, cube) in enumerate(zip(filters, self.cubes_of(filters), strict=True)):
            self._add(number, filter_, cube)


def _two_passes_us(roots: list[Filter], newcomers: list[Filter]) -> float:
    table = _LoadedTable()
    table.load(roots)
    first = len(roots)
    table.insert([first], newcomers[:1])
    rest = newcomers[1:]
    numbers = range(first + 1, first + 1 + len(rest))
    return seconds(lambda: table.insert(numbers, rest)) / len(rest) * 1e6


def _insertion_rows(pool: str, ours: Points, two_passes: Points) -> list[Row]:
    """Means over quarters: single points jump where parts of the table are joined."""
    quarters = [part.mean() for part in np.array_split(np.array(ours)[:, 1], 4)]
    told = ", ".join(f"{each:.0f}" for each in quarters)
    compared = ", ".join(f"{each:,.0f}" for _, each in two_passes)
    times = two_passes[-1][1] / quarters[-1]
    growth, other_growth = quarters[-1] / quarters[0], two_passes[-1][1] / two_passes[0][1]
    what = f"{pool}, each quarter of the insertions"
    paper = "2.46 ms with a cache for the first of two steps; two passes 1.8 × as long"
    return [
        Row(
            "Fig. 13, insertion",
            what,
            f"{told} µs (two passes: {times:,.0f} × as long)",
            paper=paper,
            baseline=f"two passes {compared} µs",
        ),
        Row(
            "Fig. 13, growth",
            f"{pool}, last quarter over first",
            f"{growth:.2f} ×",
            "≤ 2 ×",
            bool(growth <= 2),
            baseline=f"two passes {other_growth:.2f} ×",
        ),
    ]
