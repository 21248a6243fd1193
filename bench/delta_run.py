"""Delta at work in a simulated WAN: levels, view latency, document delivery time (delta.txt §5.5).

10,000 views of which about 3,000 are unique, 200 XMark documents, 300 machines in nine cities, as
in the paper. View sizes are what the views hold of sample documents: identifiers, values, contents.
What the paper does not tell is ours: a document every 5 s, so that none waits for another; links of
100 Mbit/s, joins over 20 MB/s, half a millisecond for each message and join. So seconds are not the
paper's; what can be compared is their shape over B_out, and before and after LOGA.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench import Plot, Result, Row, Say
from bench.delta_configuration import Priced, told_levels, told_limit
from bench.workloads.xmark import documents
from bench.workloads.xmark_queries import popular_views
from headgate.model.tree_pattern import PatternNode
from headgate.network.configuration import Configuration
from headgate.network.configuration_problem import UNLIMITED, Floats
from headgate.network.configure import NetworkPlan, configure
from headgate.network.physical_plans import PricedPlans, price_rewritings
from headgate.network.wan_simulator import Observed, run_configuration
from headgate.network.wide_area import WideArea, uniform_area
from headgate.views.document import Document
from headgate.views.equivalent_views import find_rewritings
from headgate.views.evaluate_patterns import PatternSet
from headgate.views.view_tuples import ViewTuples

LIMITS = (5, 10, 30, 50, 100, UNLIMITED)
SOURCE_LIMIT = 72
"""The paper's B_D: 0.7 % of its 10,000 views."""
MACHINES = 300
INTERVAL_S = 5.0
ID_BYTES = 12
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
        for name, each in zip(("utilisation-optimised", "after LOGA"), seen, strict=True):
            lines.setdefault(f"mean, {name}", []).append((at, float(each.latency_s.mean())))
            lines.setdefault(f"most, {name}", []).append((at, float(each.latency_s.max())))
    ticks = ", ".join(told_limit(each) for each in LIMITS)
    return Result(rows, Plot("View latency", f"B_out: {ticks}", "seconds", lines))


def _bytes_of(views: Sequence[PatternNode], texts: Sequence[str]) -> Floats:
    """What each view holds of a document, on average over some."""
    unique = list(dict.fromkeys(views))
    patterns = PatternSet(unique)
    read = [each for each in map(Document.read, texts) if each is not None]
    held = np.zeros(len(unique))
    for document in read:
        held += [_bytes(each) for each in patterns.evaluate(document)]
    number = {view: at for at, view in enumerate(unique)}
    found: Floats = np.maximum(1.0, held[[number[view] for view in views]] / len(read))
    return found


def _bytes(tuples: ViewTuples) -> float:
    """Identifiers of all tuples, and each text once."""
    texts = sum(len(text) for each in tuples.texts.values() for text in each.values())
    return float(tuples.ids.shape[0] * tuples.ids.shape[1] * ID_BYTES + texts)


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
