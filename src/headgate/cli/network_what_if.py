"""`headgate network what-if`: what would happen if a site failed."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.cli.network_options import (
    LIMIT_DEFAULT,
    TIME_DEFAULT_S,
    FeedLimit,
    PlanningTime,
    SourceLimit,
    planned,
)
from headgate.cli.network_views import NetworkViews
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.output import print_json, print_line
from headgate.model.errors import did_you_mean
from headgate.network.configure import NetworkPlan
from headgate.network.explain_network import FedView, ViewLabel, fed_views
from headgate.network.living_configuration import LivingConfiguration


def what_if(
    remove: Annotated[str, typer.Option("--remove", metavar="SITE", help="The site that fails.")],
    catalog: CatalogUrl = CATALOG_DEFAULT,
    limit: FeedLimit = LIMIT_DEFAULT,
    source_limit: SourceLimit = None,
    *,
    time: PlanningTime = TIME_DEFAULT_S,
    json: AsJson = False,
) -> None:
    """Try out the failure of a site: who would be served by whom instead.

    [bold]headgate network what-if --remove Paris[/bold]
    """
    views, found = planned(catalog, limit=limit, source_limit=source_limit, time_s=time)
    gone = [view for view, each in enumerate(views.labels) if each.site == remove]
    if not gone:
        hint = did_you_mean(remove, {each.site for each in views.labels})
        raise typer.BadParameter(f"there is no site '{remove}'" + (f": {hint}" if hint else ""))
    before, after = _without(views, found, gone)
    pairs = ((before[label], new) for label, new in sorted(after.items(), key=_by_label))
    changes = [(old, new) for old, new in pairs if old.members != new.members]
    if json:
        told = [
            {"view": str(new.label), "was": old.source_text(), "is": new.source_text()}
            for old, new in changes
        ]
        print_json({"site": remove, "views_lost": len(gone), "moved": told})
        return
    print_line(f"without {remove}: views gone {len(gone):,}, served anew {len(changes):,}")
    for old, new in changes:
        print_line(f"  {new.label}: was {old.source_text()}, now {new.source_text()}")
    levels = max((each.level for each in after.values()), default=0)
    print_line(f"levels: {max(each.level for each in before.values())} before, {levels} after")


Fed = dict[ViewLabel, FedView]


def _by_label(item: tuple[ViewLabel, FedView]) -> str:
    return str(item[0])


def _without(views: NetworkViews, plan: NetworkPlan, gone: list[int]) -> tuple[Fed, Fed]:
    """How each view is fed, before and after."""
    living = LivingConfiguration(plan)
    living.remove(gone)
    after, numbers = living.configuration()
    labels = [views.labels[number] for number in numbers.tolist()]
    join_at = views.plans.join_at[living.rewritings()]
    return (
        {each.label: each for each in fed_views(plan.fast, views.labels, views.plans.join_at)},
        {each.label: each for each in fed_views(after, labels, join_at)},
    )
