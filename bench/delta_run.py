"""Delta at work in a simulated WAN: levels, view latency, document delivery time ([Delta §5.5]).

10,000 views of which about 3,000 are unique, 200 XMark documents, 300 machines in nine cities, as
in the paper. View sizes are what the views hold of sample documents: identifiers, values, contents.

The configuration for B_out = 30 is also run for real, level by level, in one process and on Spark
(bench/running/network_levels.py); in one process, so are one of 3,000 unique views, and one of flat
feeds (flat_network.py).

What the paper does not tell is ours: a document every 5 s, so that none waits for another; links of
100 Mbit/s, joins over 20 MB/s, half a millisecond for each message and join. So seconds are not the
paper's; what can be compared is their shape over B_out, and before and after LOGA.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench import Plot, Result, Row, Say
from bench.configured.priced import Priced, told_levels, told_limit
from bench.running.flat_network import flat_row
from bench.running.network_levels import level_rows, spark_rows
from bench.workloads.xmark import documents
from bench.workloads.xmark_queries import popular_views, unique_views
from headgate.model.tree_pattern import PatternNode
from headgate.network.configuration import Configuration
from headgate.network.configuration_problem import UNLIMITED, Floats
from headgate.network.configure import NetworkPlan, configure
from headgate.network.physical_plans import PricedPlans, price_rewritings
from headgate.network.wide_area import WideArea, uniform_area
from headgate.simulate.wan_simulator import Observed, run_configuration
from headgate.views.document import Document
from headgate.views.equivalent_views import find_rewritings
from headgate.views.level_program import compile_levels
from headgate.views.run_levels import LevelRunner

LIMITS = (5, 10, 30, 50, 100, UNLIMITED)
RUN_LIMIT = 30
SOURCE_LIMIT = 72
"""The paper's B_D: 0.7 % of its 10,000 views."""
MACHINES = 300
INTERVAL_S = 5.0
SAMPLE = 10
ATTEMPT_S = 60.0


def run(*, quick: bool, say: Say) -> Result:
    count, published = (2_000, 20) if quick else (10_000, 200)
    say(f"{count:,} views")
    views, texts = popular_views(count), documents(published)
    sizes = np.array([float(len(text)) for text in texts])
    view_bytes = _bytes_of(views, texts[:SAMPLE])
    rewritings = find_rewritings(views)
    area = uniform_area(view_bytes, document_bytes=float(sizes.mean()), sites=MACHINES)
    plans = price_rewritings(rewritings, area)
    priced = Priced(rewritings, plans.costs, int((np.diff(rewritings.view_start) == 0).sum()))
    rows: list[Row] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for at, limit in enumerate(LIMITS):
        say(f"B_out {told_limit(limit)}")
        least, needed = priced.least_from_source(limit)
        source = max(SOURCE_LIMIT * count // 10_000, needed)
        plan = configure(priced.problem(limit, source), time_s=ATTEMPT_S)
        rows += _planned_rows(plan, limit, least)
        seen = [
            _observe(each, plans, area, sizes / sizes.mean()) for each in (plan.cheap, plan.fast)
        ]
        rows += _observed_rows(seen[0], seen[1], limit)
        if limit == RUN_LIMIT:
            reads = plan.fast.reads()
            rows += level_rows(views, reads, texts, say=say)
            rows += spark_rows(views, reads, texts, say=say)
        for name, each in zip(("utilisation-optimised", "after LOGA"), seen, strict=True):
            lines.setdefault(f"mean, {name}", []).append((at, float(each.latency_s.mean())))
            lines.setdefault(f"most, {name}", []).append((at, float(each.latency_s.max())))
    rows += _unique_rows(count * 3 // 10, texts, say)
    rows.append(flat_row(count // 2, say=say))
    ticks = ", ".join(told_limit(each) for each in LIMITS)
    return Result(rows, Plot("View latency", f"B_out: {ticks}", "seconds", lines))


def _unique_rows(count: int, texts: Sequence[str], say: Say) -> list[Row]:
    """The same of views that are all different: far fewer can be had from others."""
    say(f"{count:,} unique views")
    views = unique_views(count)
    view_bytes = _bytes_of(views, texts[:SAMPLE])
    rewritings = find_rewritings(views)
    mean = float(np.mean([len(text) for text in texts]))
    area = uniform_area(view_bytes, document_bytes=mean, sites=MACHINES)
    priced = Priced(rewritings, price_rewritings(rewritings, area).costs, 0)
    _, needed = priced.least_from_source(RUN_LIMIT)
    plan = configure(priced.problem(RUN_LIMIT, needed), time_s=ATTEMPT_S)
    return level_rows(views, plan.fast.reads(), texts, say=say)


def _bytes_of(views: Sequence[PatternNode], texts: Sequence[str]) -> Floats:
    """What each view holds of a document, on average over some."""
    runner = LevelRunner(compile_levels(views))
    read = [each for each in map(Document.read, texts) if each is not None]
    held = np.sum([runner.run(document).bytes for document in read], axis=0)
    found: Floats = np.maximum(1.0, held / len(read))
    return found


def _observe(
    configuration: Configuration, plans: PricedPlans, area: WideArea, scales: Floats
) -> Observed:
    published_s = np.arange(len(scales)) * INTERVAL_S
    return run_configuration(configuration, plans, area, published_s=published_s, scales=scales)


def _planned_rows(plan: NetworkPlan, limit: int, least: float) -> list[Row]:
    views, fed = len(plan.fast.choice), int(plan.fast.loads[-1])
    latency = plan.fast.latency_s / plan.cheap.latency_s - 1
    utilization = plan.fast.utilization / plan.cheap.utilization - 1
    is_paper = views == 10_000 and limit == 30
    return [
        Row(
            "publisher's load",
            f"{views:,} views, B_out {told_limit(limit)}",
            f"feeds {fed:,} views ({fed / views:.2%}; at least {least / views:.2%})",
            "≤ 1 %" if is_paper else "",
            bool(fed <= 0.01 * views) if is_paper else None,
            "72 (0.7 %)",
        ),
        Row(
            "plan",
            f"B_out {told_limit(limit)}",
            f"gap ≤ {plan.gap:.2%}, {plan.solver} {plan.solving_s:.1f} s; LOGA: latency "
            f"{latency:+.1%}, utilisation {utilization:+.1%}, {plan.latency_s:.2f} s",
            "gap ≤ 2 %",
            bool(plan.gap <= 0.02),
        ),
        Row(
            "Fig. 7, views by level",
            f"B_out {told_limit(limit)}",
            told_levels(plan.fast),
            paper="after LOGA less than half as many levels",
            baseline=f"before LOGA: {told_levels(plan.cheap)}",
        ),
    ]


PAPER_LATENCY = {5: "0.03 to 3.7 s; LOGA up to −20 %", UNLIMITED: "at most 4.7 s"}


def _observed_rows(cheap: Observed, fast: Observed, limit: int) -> list[Row]:
    mean = float(fast.latency_s.mean() / cheap.latency_s.mean()) - 1
    slowest = float(fast.delivery_s.mean() / cheap.delivery_s.mean()) - 1
    return [
        Row(
            "Fig. 8, view latency",
            f"B_out {told_limit(limit)}",
            f"{_range(fast.latency_s)} ({mean:+.0%})",
            paper=PAPER_LATENCY.get(limit, "1.6 s on average"),
            baseline=f"before LOGA: {_range(cheap.latency_s)}",
        ),
        Row(
            "Fig. 9, document delivery",
            f"B_out {told_limit(limit)}",
            f"{_range(fast.delivery_s)} ({slowest:+.0%})",
            paper="2–2.5 s on average",
            baseline=f"before LOGA: {_range(cheap.delivery_s)}",
        ),
    ]


def _range(values: Floats) -> str:
    return f"{values.mean():.3f} s, {values.min():.3f} to {values.max():.3f} s"
