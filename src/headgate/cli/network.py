"""`headgate network`: plan which feeds serve which others, show the plan, and try out failures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.network_run import run
from headgate.cli.network_views import (
    LIMIT_DEFAULT,
    TIME_DEFAULT_S,
    FeedLimit,
    NetworkViews,
    OnSpark,
    PlanningTime,
    SolverOption,
    SourceLimit,
    UseLoga,
    planned,
)
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.output import print_error, print_json, print_line, print_text, stderr
from headgate.model.errors import did_you_mean
from headgate.network.configure import NetworkPlan
from headgate.network.draw_network import draw_network
from headgate.network.explain_network import (
    FedView,
    ViewLabel,
    explain_network,
    explain_plan,
    fed_views,
)
from headgate.network.living_configuration import LivingConfiguration

network = typer.Typer(
    help="Feeds that are computed from other feeds at other sites, to spare the source.",
    no_args_is_help=True,
)


@network.command()
def plan(
    catalog: CatalogUrl = CATALOG_DEFAULT,
    limit: FeedLimit = LIMIT_DEFAULT,
    source_limit: SourceLimit = None,
    time: PlanningTime = TIME_DEFAULT_S,
    *,
    solver: SolverOption = "auto",
    loga: UseLoga = True,
    master: OnSpark = "",
    json: AsJson = False,
) -> None:
    """Plan which feeds serve which others.

    [bold]headgate network plan --limit 30 --solver ilp[/bold]
    """
    views, network_plan = planned(
        catalog,
        limit=limit,
        source_limit=source_limit,
        time_s=time,
        master=master,
        solver=solver,
        use_loga=loga,
    )
    numbers = numbers_of(network_plan) | {"rewritings": len(views.rewritings.member_start) - 1}
    if json:
        print_json(numbers)
        return
    fast, cheap = network_plan.fast, network_plan.cheap
    print_line(f"{len(fast.choice):,} views, {numbers['rewritings']:,} rewritings")
    print_line(
        f"{fast.rewritten_share:.1%} are served by other views, {fast.loads[-1]:,} by the source"
    )
    print_line(
        f"utilisation {fast.utilization:,.0f}, at least {network_plan.bound:,.0f} is needed; "
        f"before latency was lowered {cheap.utilization:,.0f}"
    )
    print_text(explain_plan(network_plan))
    levels = fast.views_by_level().tolist()
    print_line("views by level: " + ", ".join(f"{count:,}" for count in levels))


def numbers_of(plan: NetworkPlan) -> dict[str, object]:
    fast, cheap = plan.fast, plan.cheap
    return {
        "views": len(fast.choice),
        "from_source": int(fast.loads[-1]),
        "utilization": fast.utilization,
        "utilization_least": cheap.utilization,
        "utilization_bound": plan.bound,
        "gap": plan.gap,
        "solver": str(plan.solver),
        "solver_reason": plan.reason,
        "loga": plan.has_run_loga,
        "latency_s": fast.latency_s,
        "latency_before_s": cheap.latency_s,
        "views_by_level": fast.views_by_level().tolist(),
    }


@network.command()
def show(
    catalog: CatalogUrl = CATALOG_DEFAULT,
    limit: FeedLimit = LIMIT_DEFAULT,
    source_limit: SourceLimit = None,
    *,
    time: PlanningTime = TIME_DEFAULT_S,
    solver: SolverOption = "auto",
    loga: UseLoga = True,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it into this file, as SVG.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show which views serve which others, level by level.

    [bold]headgate network show --svg network.svg[/bold]
    """
    views, network_plan = planned(
        catalog,
        limit=limit,
        source_limit=source_limit,
        time_s=time,
        solver=solver,
        use_loga=loga,
    )
    fed = fed_views(network_plan.fast, views.labels, views.plans.join_at)
    if svg is not None:
        try:
            svg.write_text(draw_network(fed), encoding="utf-8")
        except OSError as error:
            print_error(f"{svg} cannot be written: {error.strerror}")
            raise typer.Exit(2) from None
        stderr.print(f"picture: {svg}")
    if json:
        summary = {
            "gap": network_plan.gap,
            "solver": network_plan.solver,
            "solver_reason": network_plan.reason,
        }
        print_json(
            {"views": [_json(each) for each in fed], **summary, "loga": network_plan.has_run_loga}
        )
    elif fed:
        print_text(explain_network(fed))
        print_text(explain_plan(network_plan))
    else:
        print_line("-- no feeds")


def _json(view: FedView) -> dict[str, object]:
    return {
        "feed": view.label.name,
        "site": view.label.site,
        "level": view.level,
        "from": [{"feed": each.name, "site": each.site} for each in view.members],
        "computed_at": view.join_site,
        "feeds": view.feeds,
        "limit": view.limit,
        "ways": view.ways,
    }


@network.command("what-if")
def what_if(
    remove: Annotated[str, typer.Option("--remove", metavar="SITE", help="The site that fails.")],
    catalog: CatalogUrl = CATALOG_DEFAULT,
    limit: FeedLimit = LIMIT_DEFAULT,
    source_limit: SourceLimit = None,
    *,
    time: PlanningTime = TIME_DEFAULT_S,
    solver: SolverOption = "auto",
    loga: UseLoga = True,
    json: AsJson = False,
) -> None:
    """Show what changes if a site fails: which views are served by which others instead.

    [bold]headgate network what-if --remove Paris[/bold]
    """
    views, network_plan = planned(
        catalog,
        limit=limit,
        source_limit=source_limit,
        time_s=time,
        solver=solver,
        use_loga=loga,
    )
    lost = [view for view, each in enumerate(views.labels) if each.site == remove]
    if not lost:
        hint = did_you_mean(remove, {each.site for each in views.labels})
        raise typer.BadParameter(f"there is no site '{remove}'" + (f": {hint}" if hint else ""))
    before, after = _before_and_after(views, network_plan, lost)
    pairs = ((before[label], new) for label, new in sorted(after.items(), key=_by_label))
    changes = [(old, new) for old, new in pairs if old.members != new.members]
    if json:
        moved = [
            {"view": str(new.label), "was": old.source_text(), "is": new.source_text()}
            for old, new in changes
        ]
        print_json({"site": remove, "views_lost": len(lost), "moved": moved})
        return
    print_line(f"without {remove}: views gone {len(lost):,}, served anew {len(changes):,}")
    for was, is_now in changes:
        print_line(f"  {is_now.label}: was {was.source_text()}, now {is_now.source_text()}")
    levels = max((each.level for each in after.values()), default=0)
    print_line(f"levels: {max(each.level for each in before.values())} before, {levels} after")


Fed = dict[ViewLabel, FedView]


def _by_label(item: tuple[ViewLabel, FedView]) -> str:
    return str(item[0])


def _before_and_after(views: NetworkViews, plan: NetworkPlan, lost: list[int]) -> tuple[Fed, Fed]:
    """How each view is fed, before and after."""
    living = LivingConfiguration(plan)
    living.remove(lost)
    after, numbers = living.configuration()
    labels = [views.labels[number] for number in numbers.tolist()]
    join_at = views.plans.join_at[living.rewritings()]
    return (
        {each.label: each for each in fed_views(plan.fast, views.labels, views.plans.join_at)},
        {each.label: each for each in fed_views(after, labels, join_at)},
    )


network.command(help=run.__doc__)(run)
