"""The options that the commands of `headgate network` share, and the plan they begin with."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.catalog.catalog import Catalog
from headgate.cli.network_views import NetworkViews, network_views
from headgate.cli.output import stderr
from headgate.network.configure import NetworkPlan, configure

LIMIT_DEFAULT = 30
TIME_DEFAULT_S = 60.0

FeedLimit = Annotated[
    int, typer.Option("--limit", min=0, help="How many feeds a feed may serve (B_out).")
]
SourceLimit = Annotated[
    int | None,
    typer.Option(
        "--source-limit", min=0, metavar="COUNT", help="How many feeds the source may serve (B_D)."
    ),
]
PlanningTime = Annotated[
    float, typer.Option("--time", min=1.0, metavar="SECONDS", help="How long to look for a plan.")
]


def planned(
    catalog: str, *, limit: int, source_limit: int | None, time_s: float
) -> tuple[NetworkViews, NetworkPlan]:
    with Catalog.open(catalog) as opened, stderr.status("planning …"):
        views = network_views(opened)
        problem = views.problem(limit=limit, source_limit=source_limit)
        return views, configure(problem, time_s=time_s)
