"""`headgate network plan`: a plan in numbers, and how far it can be from the best."""

from __future__ import annotations

from headgate.cli.network_options import (
    LIMIT_DEFAULT,
    TIME_DEFAULT_S,
    FeedLimit,
    OnSpark,
    PlanningTime,
    SourceLimit,
    planned,
)
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.output import print_json, print_line
from headgate.network.configure import NetworkPlan


def plan(
    catalog: CatalogUrl = CATALOG_DEFAULT,
    limit: FeedLimit = LIMIT_DEFAULT,
    source_limit: SourceLimit = None,
    time: PlanningTime = TIME_DEFAULT_S,
    *,
    master: OnSpark = "",
    json: AsJson = False,
) -> None:
    """Plan which feeds serve which others.

    [bold]headgate network plan --limit 30[/bold]
    """
    views, found = planned(
        catalog, limit=limit, source_limit=source_limit, time_s=time, master=master
    )
    told = numbers_of(found) | {"rewritings": len(views.rewritings.member_start) - 1}
    if json:
        print_json(told)
        return
    fast, cheap = found.fast, found.cheap
    print_line(f"{len(fast.choice):,} views, {told['rewritings']:,} rewritings")
    print_line(
        f"{fast.rewritten_share:.1%} are served by other views, {fast.loads[-1]:,} by the source"
    )
    print_line(
        f"utilisation {fast.utilization:,.0f}, at least {found.bound:,.0f} is needed; "
        f"before latency was lowered {cheap.utilization:,.0f} (gap at most {found.gap:.2%}, "
        f"{found.solver}, {found.solving_s:.1f} s)"
    )
    print_line(
        f"latency {_mean_ms(fast.latency_s, len(fast.choice)):.1f} ms on average; "
        f"before it was lowered {_mean_ms(cheap.latency_s, len(fast.choice)):.1f} ms"
    )
    levels = fast.views_by_level().tolist()
    print_line("views by level: " + ", ".join(f"{count:,}" for count in levels))


def numbers_of(found: NetworkPlan) -> dict[str, object]:
    fast, cheap = found.fast, found.cheap
    return {
        "views": len(fast.choice),
        "from_source": int(fast.loads[-1]),
        "utilization": fast.utilization,
        "utilization_least": cheap.utilization,
        "utilization_bound": found.bound,
        "gap": found.gap,
        "solver": str(found.solver),
        "latency_s": fast.latency_s,
        "latency_before_s": cheap.latency_s,
        "views_by_level": fast.views_by_level().tolist(),
    }


def _mean_ms(total_s: float, count: int) -> float:
    return 1e3 * total_s / max(count, 1)
