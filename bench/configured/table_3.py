"""Table 3, Fig. 5 and Fig. 6 of [Delta], for the plan of one B_out.

LOGA runs twice: as printed, and with at most 7 % more utilisation, which is what the paper reports.
"""

from __future__ import annotations

import time

from bench import Row
from bench.configured.priced import told_levels, told_limit
from headgate.network.configuration import Configuration, check_configuration
from headgate.network.configuration_problem import UNLIMITED
from headgate.network.configure import RISE_MAX, NetworkPlan
from headgate.network.loga import LogaRound, loga

PAPER_SIZE = 100_000
PAPER = {30: (94.3, 3.49, 1.77), 50: (94.7, 3.32, 1.78), 100: (94.7, 3.31, 1.79)}
PAPER |= {UNLIMITED: (94.7, 3.13, 1.8)}
"""Table 3: % rewritten, utilisation, views per rewriting."""

Points = list[tuple[float, float]]


def table_3(plan: NetworkPlan, limit: int, must: float) -> list[Row]:
    """`must` is how many views the source has to feed, whatever rewritings there are."""
    cheap, views = plan.cheap, len(plan.cheap.choice)
    share, utilization, members = PAPER[limit]
    workload = f"{views:,} views, B_out {told_limit(limit)}, B_D {cheap.problem.limits.source:,}"
    is_target = limit == 30 and views == PAPER_SIZE
    return [
        Row(
            "Table 3, views rewritten",
            workload,
            f"{cheap.rewritten_share:.2%} (no rewritings allow more than {1 - must / views:.2%})",
            "≥ 94 %" if is_target else "",
            bool(cheap.rewritten_share >= 0.94) if is_target else None,
            f"{share} %",
        ),
        Row(
            "Table 3, utilisation",
            workload,
            f"{cheap.utilization:.4g}, gap ≤ {plan.gap:.2%}, {plan.solver} {plan.solving_s:.1f} s",
            "gap ≤ 2 %",
            bool(plan.gap <= 0.02),
            f"{utilization} · 10¹³, 2–4 min",
        ),
        Row(
            "Table 3, views per rewriting",
            workload,
            f"{cheap.views_per_rewriting:.2f}",
            paper=f"{members}",
        ),
    ]


def loga_rows(plan: NetworkPlan, limit: int) -> tuple[list[Row], Points]:
    """Fig. 5 and Fig. 6, and how latency falls with time where utilisation is limited."""
    timed = [_timed(plan, rise_max) for rise_max in (None, RISE_MAX)]
    limited, falls = timed[1]
    rows = [
        _loga_row("as printed", plan, limit, timed[0]),
        _loga_row(f"utilisation + ≤ {RISE_MAX:.0%}", plan, limit, timed[1]),
        Row(
            "Fig. 6, views by level",
            f"B_out {told_limit(limit)}",
            f"{told_levels(limited)}",
            paper="at most 19 levels, then 12" if limit == UNLIMITED else "less than 2/3 as many",
            baseline=f"before LOGA: {told_levels(plan.cheap)}",
        ),
    ]
    return rows, falls


def _timed(plan: NetworkPlan, rise_max: float | None) -> tuple[Configuration, Points]:
    """What LOGA makes of a plan, and the latency after each round, as a share of that before."""
    began, before_s = time.perf_counter(), plan.cheap.latency_s
    falls = [(0.0, 1.0)]

    def record(round_: LogaRound) -> None:
        falls.append((time.perf_counter() - began, round_.latency_s / before_s))

    found = loga(plan.cheap, rise_max=rise_max, on_round=record)
    check_configuration(found)
    return found, falls


def _loga_row(how: str, plan: NetworkPlan, limit: int, timed: tuple[Configuration, Points]) -> Row:
    found, falls = timed
    views = len(found.choice)
    latency = found.latency_s / plan.cheap.latency_s - 1
    utilization = found.utilization / plan.cheap.utilization - 1
    is_target = views == PAPER_SIZE and how != "as printed"
    return Row(
        f"Fig. 5, LOGA, {how}",
        f"{views:,} views, B_out {told_limit(limit)}, 1.5 × for LOGA",
        f"latency {latency:+.1%}, utilisation {utilization:+.1%}, "
        f"{falls[-1][0]:.1f} s in {len(falls) - 1} rounds",
        "≤ −43 %, ≤ +7 %" if is_target else "",
        bool(latency <= -0.43 and utilization <= 0.07 + 1e-9) if is_target else None,
        "−43 to −50 %, +5 to +7 %, 150–200 s",
    )
