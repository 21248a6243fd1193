"""Select-joins: server bytes, description sizes and time of all nine schemes, and DuckDB.

[Select-Joins Tables 3 and 4, Fig. 5], 7, 8, 10 and 19 as far as they concern the server; what
goes on in a network is the matter of another benchmark. Every scheme takes the same events from the
same state. Time is that of changes to messages, of finding recipients where a scheme addresses them
one by one, and of writing each message to a buffer: Python included, one core. The paper's server
was a 2.0 GHz Xeon that wrote to disk.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numba as nb
import numpy as np

from bench import Plot, Result, Row, Say, seconds
from bench.baselines.duckdb_select_join import duckdb_join_us
from bench.workloads import select_joins as work
from headgate.simulate.join_simulation import StartState
from headgate.tables.boxes import Boxes
from headgate.tables.message_buffer import MESSAGE_KIND, OWN_SIDE, ROW_SIDE
from headgate.tables.messages import MessageBatch
from headgate.tables.recipients import recipients
from headgate.tables.schemes import SCHEMES, JoinScheme
from headgate.tables.server import SelectJoinServer

STOCKS = Path(__file__).parents[2] / "shared" / "data" / "sp500_financials.csv"
BUFFER_BYTES = 1 << 24
BATCH = 100
CLU_PLUS, ENUM_J = JoinScheme.REF_SJ_CLU_PLUS, JoinScheme.ENUM_J
TABLE_3 = {  # kB at 100k, 300k, 500k
    ENUM_J: (484.8, 1464.0, 2461.5),
    JoinScheme.ENUM_SJ: (27.3, 82.0, 137.6),
    JoinScheme.REF_J_PLUS: (13.4, 14.3, 14.6),
    JoinScheme.REL_SEL: (0.86, 0.95, 0.88),
    CLU_PLUS: (0.38, 0.38, 0.39),
}
TABLE_4 = {  # bytes
    CLU_PLUS: (16.88, 21.96, 24.68),
    JoinScheme.REF_SJ_CLU: (29.59, 38.15, 42.87),
    JoinScheme.REF_SJ_SUB: (73.12, 99.54, 111.84),
    JoinScheme.REF_SJ_TUP: (312.78, 305.88, 302.85),
}
PRINTED = 100_000, 300_000, 500_000


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one scheme, for each event: an insertion into R and the deletion of its oldest tuple."""

    us: float
    bytes: float
    description_bytes: float
    described_bytes: float
    """The first for each event, the second for each message that has a tuple of R."""


@dataclass(frozen=True, slots=True, eq=False)
class Ready(StartState):
    """The state that every scheme begins with, and how long subscribing took."""

    subscribed_s: float

    @classmethod
    def timed(cls, boxes: Boxes, events: work.JoinEvents) -> Ready:
        subscribed_s = seconds(lambda: SelectJoinServer().subscribe(boxes))
        start = StartState.make(boxes, events)
        return cls(start.base, events, start.rows, subscribed_s)

    def cost(self, scheme: JoinScheme, events: int, *, first: int = 0) -> Cost:
        server, buffer = self.server(scheme), np.zeros(BUFFER_BYTES, np.uint8)
        _send(server, self.events.batch(first, 1), buffer)  # compiles the kernels
        took_s, sent, described, told = 0.0, 0, 0, 0
        for start in range(first + 1, first + 1 + events, BATCH):
            some = self.events.batch(start, min(BATCH, first + 1 + events - start))
            began = time.perf_counter()
            messages, lines, sizes = _send(server, some, buffer)
            took_s += time.perf_counter() - began
            before = np.concatenate([[0], np.cumsum(sizes)])
            sent += int((before[lines[:, 1]] - before[lines[:, 0]]).sum())
            header = messages.header
            own = (header[:, MESSAGE_KIND] == 0) & (header[:, ROW_SIDE] == header[:, OWN_SIDE])
            described += int(messages.description_bytes[own].sum())
            told += int(own.sum())
        return Cost(
            took_s / events * 1e6, sent / events, described / events, described / max(told, 1)
        )


def _send(
    server: SelectJoinServer, changes: list[work.JoinChange], buffer: np.ndarray
) -> tuple[MessageBatch, np.ndarray, np.ndarray]:
    """Messages, which of them go out together, and how long each is."""
    messages = server.apply(changes)
    sizes = messages.size_bytes
    if SCHEMES[server.scheme].is_unicast:
        lines = recipients(server, messages).lines[:, 1:]
        sizes -= messages.description_bytes  # who is addressed need not be described
    else:
        lines = np.stack([np.arange(len(messages)), np.arange(1, len(messages) + 1)], axis=1)
    _write(lines, sizes, buffer)
    return messages, lines, sizes


@nb.njit
def _write(lines, sizes, buffer):  # type: ignore[no-untyped-def]
    """Copy as many bytes as each message has; what a scheme's output costs at least."""
    half, at = buffer.shape[0] // 2, 0
    for line in range(lines.shape[0]):
        for message in range(lines[line, 0], lines[line, 1]):
            size = min(sizes[message], half)
            if at + size > half:
                at = 0
            buffer[half + at : half + at + size] = buffer[at : at + size]
            at += size


def run(*, quick: bool, say: Say) -> Result:
    counts = (20_000, 100_000) if quick else (100_000, 300_000, 500_000, 1_000_000)
    count = 300 if quick else 3_000
    rows: list[Row] = []
    costs: dict[int, dict[JoinScheme, Cost]] = {}
    clusters: dict[int, int] = {}
    for subscriptions in counts:
        ready = Ready.timed(work.subscriptions(subscriptions), work.events(count + 1))
        clusters[subscriptions] = len(ready.base.clusters[1].anchors)
        say(f"{subscriptions:,} subscriptions, {clusters[subscriptions]:,} clusters")
        costs[subscriptions] = {}
        for scheme in JoinScheme:
            costs[subscriptions][scheme] = ready.cost(scheme, count)
            say(f"  {scheme}: {costs[subscriptions][scheme].us:,.0f} µs")
        rows += _at(subscriptions, costs[subscriptions])
        if subscriptions in (20_000, 100_000):
            say("  DuckDB")
            rows.append(_duckdb(ready, costs[subscriptions], 10 if quick else 50))
        if subscriptions == counts[-1]:
            rows.append(_churn(ready, 200 if quick else 2_000))
    rows += _growth(costs, clusters)
    say("join results for each event")
    rows.append(_output_rate(count))
    say("size of the database")
    rows.append(_database(count))
    say("stocks")
    rows.append(_stocks(count))
    say("overlap")
    rows.append(_overlap(count))
    return Result(rows, _plot(costs))


def _printed(table: dict[JoinScheme, tuple[float, ...]], scheme: JoinScheme, count: int) -> float:
    if scheme in table and count in PRINTED:
        return table[scheme][PRINTED.index(count)]
    return 0.0


def _at(count: int, costs: dict[JoinScheme, Cost]) -> list[Row]:
    """Tables 3 and 4 and Fig. 5 at one number of subscriptions."""
    rows, workload = [], f"{count:,} subscriptions"
    ours = costs[CLU_PLUS].bytes
    for scheme, cost in costs.items():
        printed = _printed(TABLE_3, scheme, count)
        target, met = "", None
        if scheme is CLU_PLUS:
            target, met = "≤ 0.38 kB", ours <= 380
        elif scheme is ENUM_J:
            target, met = "≥ 1,000 × Clu+", cost.bytes >= 1_000 * ours
        rows.append(
            Row(
                f"Table 3, bytes: {scheme}",
                workload,
                f"{cost.bytes / 1e3:,.2f} kB for each event, {cost.bytes / ours:,.1f} × Clu+",
                target=target,
                met=met,
                paper=f"{printed:,.2f} kB" if printed else "",
            )
        )
    for scheme in TABLE_4:
        printed, cost = _printed(TABLE_4, scheme, count), costs[scheme]
        rows.append(
            Row(
                f"Table 4, description: {scheme}",
                workload,
                f"{cost.description_bytes:.1f} B for each event, "
                f"{cost.described_bytes:.1f} B for each message",
                target=f"≤ {printed} B for each event" if printed else "",
                met=cost.description_bytes <= printed if printed else None,
                paper=f"{printed} B" if printed else "",
            )
        )
    sizes = [costs[scheme].description_bytes for scheme in TABLE_4]
    order = " < ".join(f"{size:.1f}" for size in sizes)
    rows.append(
        Row(
            "Table 4, order",
            workload,
            order,
            target="Clu+ < Clu < Sub < Tup",
            met=sizes == sorted(sizes),
        )
    )
    return rows + _times(workload, costs, is_largest=count == 1_000_000)


def _times(workload: str, costs: dict[JoinScheme, Cost], *, is_largest: bool) -> list[Row]:
    rows, ours = [], costs[CLU_PLUS].us
    for scheme, cost in costs.items():
        target, met = "", None
        if scheme is CLU_PLUS and is_largest:
            target, met = "≤ 200 µs", ours <= 200
        elif scheme is ENUM_J:
            target, met = "≥ 100 × Clu+", cost.us >= 100 * ours
        times = f"{cost.us:,.0f} µs for each event, {cost.us / ours:,.1f} × Clu+"
        rows.append(Row(f"Fig. 5, time: {scheme}", workload, times, target=target, met=met))
    return rows


def _growth(costs: dict[int, dict[JoinScheme, Cost]], clusters: dict[int, int]) -> list[Row]:
    first, last = min(costs), max(costs)
    grown = costs[last][CLU_PLUS].us / costs[first][CLU_PLUS].us
    by_clusters = clusters[last] / clusters[first]
    return [
        Row(
            "Fig. 5, growth of Ref-SJ-Clu+",
            f"{first:,} to {last:,} subscriptions ({last / first:.0f} ×), "
            f"{clusters[first]:,} to {clusters[last]:,} clusters",
            f"time × {grown:.2f}, bytes × "
            f"{costs[last][CLU_PLUS].bytes / costs[first][CLU_PLUS].bytes:.2f}",
            target=f"time at most × {by_clusters:.2f}, as the clusters",
            met=grown <= by_clusters,
        )
    ]


def _duckdb(ready: Ready, costs: dict[JoinScheme, Cost], events: int) -> Row:
    """DuckDB joins the same new tuples with S and all subscriptions, and must find as much."""
    server = ready.server(ENUM_J)
    inserted = [each for each in ready.events.batch(1, events) if each.values is not None]
    found = recipients(server, server.apply(inserted)).lines
    results = int((found[:, 2] - found[:, 1]).sum())
    us, theirs = duckdb_join_us(server, inserted)
    assert theirs == results, f"DuckDB finds {theirs} join results, Enum-J {results}"
    ours = costs[CLU_PLUS].us
    return Row(
        "the join in DuckDB",
        f"{len(server.tree):,} subscriptions, {events} insertions, {results:,} join results",
        f"Enum-J {us / costs[ENUM_J].us:,.1f} × faster, Clu+ {us / ours:,.0f} × faster",
        baseline=f"{us / 1e3:,.1f} ms for each event",
    )


def _churn(ready: Ready, count: int) -> Row:
    """Subscriptions that come and go one by one."""
    base, size = ready.base, len(ready.base.tree)
    more = work.subscriptions(count, seed=7)
    began = time.perf_counter()
    for at in range(count):
        some = slice(at, at + 1)
        base.subscribe(Boxes(more.numbers[some] + size, more.low[some], more.high[some]))
    added_us = (time.perf_counter() - began) / count * 1e6
    began = time.perf_counter()
    for number in more.numbers + size:
        base.unsubscribe(np.array([number]))
    removed_us = (time.perf_counter() - began) / count * 1e6
    return Row(
        "churn",
        f"{count:,} come and go one by one beside {size:,}",
        f"{added_us:,.0f} µs to come, {removed_us:,.0f} µs to go; {size:,} at once in "
        f"{ready.subscribed_s:.1f} s",
    )


def _output_rate(count: int) -> Row:
    """Fig. 8: the more tuples S has, the more a new tuple of R joins with."""
    boxes, told = work.subscriptions(100_000), []
    for size in (100, 2_600, 5_100, 10_100):
        ready = Ready.timed(boxes, work.events(count + 1, s_size=size))
        cost = {each: ready.cost(each, count).us for each in (JoinScheme.REF_J, CLU_PLUS)}
        told.append(f"{size / 100:.0f}: {cost[JoinScheme.REF_J]:.0f} / {cost[CLU_PLUS]:.0f} µs")
    return Row(
        "Fig. 8, time: Ref-J / Ref-SJ-Clu+",
        "100,000 subscriptions, by join results for each event",
        "; ".join(told),
        paper="Ref-J very good at few, quickly degrades; Clu+ scales well",
    )


def _database(count: int) -> Row:
    """Fig. 7: a smaller R exposes more of S."""
    boxes, told = work.subscriptions(100_000), []
    for size in (1_000, 6_000, 16_000, 31_000):
        ready = Ready.timed(boxes, work.events(count + 1, r_size=size))
        told.append(f"{size:,}: {ready.cost(CLU_PLUS, count).bytes:,.0f} B")
    return Row(
        "Fig. 7, bytes: Ref-SJ-Clu+",
        "100,000 subscriptions, by tuples of R",
        "; ".join(told),
        paper="a little more at small sizes (traffic)",
    )


def _stocks(count: int) -> Row:
    """Fig. 10, without the network."""
    known = STOCKS.exists()
    events = work.stock_events(STOCKS, count + 1) if known else work.events(count + 1, s_size=2_300)
    ready = Ready.timed(work.subscriptions(100_000), events)
    schemes = ENUM_J, JoinScheme.ENUM_SJ, JoinScheme.REF_J_PLUS, CLU_PLUS
    cost = {each: ready.cost(each, count) for each in schemes}
    least = min(cost[each].bytes for each in schemes[:-1]) / cost[CLU_PLUS].bytes
    return Row(
        "Fig. 10, bytes, stocks" if known else "Fig. 10, bytes, generated",
        "100,000 subscriptions, 100 stocks, 2,300 ratings",
        "; ".join(f"{each} {cost[each].bytes / 1e3:,.2f} kB" for each in schemes),
        target="Clu+ ≥ 10 × below all",
        met=least >= 10,
        paper="at least an order of magnitude (traffic)",
    )


def _overlap(count: int) -> Row:
    """Fig. 19: interests that are closer together."""
    told = []
    for overlap in (1, 3_000, 6_000):
        ready = Ready.timed(work.subscriptions(100_000, overlap=overlap), work.events(count + 1))
        cost = ready.cost(CLU_PLUS, count)
        told.append(f"x = {overlap:,}: {cost.bytes:,.0f} B, {cost.us:.0f} µs")
    return Row(
        "Fig. 19, bytes: Ref-SJ-Clu+",
        "100,000 subscriptions, by overlap",
        "; ".join(told),
        paper="less with more overlap (traffic)",
    )


def _plot(costs: dict[int, dict[JoinScheme, Cost]]) -> Plot:
    lines = {
        str(scheme): [(float(count), each[scheme].us) for count, each in costs.items()]
        for scheme in JoinScheme
    }
    return Plot("Server time for each event (Fig. 5)", "subscriptions", "µs", lines, scatter=True)
