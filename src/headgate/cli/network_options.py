"""The options that the commands of `headgate network` share, and the plan they begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from headgate.catalog.catalog import Catalog
from headgate.cli.network_views import NetworkViews, network_views
from headgate.cli.output import stderr
from headgate.network.configure import NetworkPlan, configure
from headgate.views.equivalent_views import Rewrite, rewrite_here

LIMIT_DEFAULT = 30
OnSpark = Annotated[
    str,
    typer.Option(
        "--master",
        metavar="URL",
        help="Find what tree patterns can be computed from on Spark there; it pays with more "
        "machines than this one.",
    ),
]
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
    catalog: str, *, limit: int, source_limit: int | None, time_s: float, master: str = ""
) -> tuple[NetworkViews, NetworkPlan]:
    """With a master, rewritings of tree patterns are found by Spark there; its workers find a file
    in the current folder, as long as it takes."""
    with (
        Catalog.open(catalog) as opened,
        stderr.status("planning …") as status,
        _rewriting(master, lambda text: status.update(f"planning, {text} …")) as rewrite,
    ):
        views = network_views(opened, rewrite=rewrite)
        problem = views.problem(limit=limit, source_limit=source_limit)
        return views, configure(problem, time_s=time_s)


@contextmanager
def _rewriting(master: str, note: Callable[[str], None]) -> Iterator[Rewrite]:
    if not master:
        yield rewrite_here
        return
    # Late, so that a plan which needs no Spark does not load it.
    from headgate.pipeline.jobs.embedding_job import rewrite_on_spark  # noqa: PLC0415
    from headgate.pipeline.session import start_session  # noqa: PLC0415

    note("starting Spark")
    session = start_session(master, name="headgate network plan")
    try:
        yield lambda views, k: rewrite_on_spark(views, k, session=session, folder=Path(), note=note)
    finally:
        session.stop()
