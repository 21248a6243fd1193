"""From the feeds of a catalog to views at sites, their rewritings and costs, and a plan for them.

A feed is a view at each site that a subscription names (`at site Paris`); a feed without a site is
at a site of its own name. Which feeds can be computed from others:

    conjunctions over one source      views/flat_graph.py
    tree patterns over one source     views/equivalent_views.py
    all others, as joins and unions   from the source only

A view's size is its share of the source's items, of ITEM_BYTES each: the selectivity of its
conditions from statistics, or a half for each condition that was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from headgate.catalog.catalog import Catalog
from headgate.catalog.queries import PAGE_MAX
from headgate.catalog.statistics import SourceStatistics
from headgate.cli.output import stderr
from headgate.language.unparse import unparse_filter
from headgate.model.errors import alternatives
from headgate.model.filters import TRUE
from headgate.model.tree_pattern import PatternNode
from headgate.network.configuration_problem import UNLIMITED, Floats, Limits, Problem
from headgate.network.configure import (
    ILP_READS_MAX,
    SOLVERS,
    NetworkPlan,
    Solver,
    configure,
    solver_named,
)
from headgate.network.explain_network import ViewLabel
from headgate.network.physical_plans import PricedPlans, price_rewritings
from headgate.network.wide_area import WideArea, uniform_area
from headgate.plan.algebra import Filter, Match, Plan, Source
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all, feed_names
from headgate.views.equivalent_views import Rewrite, find_rewritings, rewrite_here
from headgate.views.flat_feeds import FlatFeed
from headgate.views.flat_graph import rewrite_flat
from headgate.views.rewrite_cgr import Rewritings

ITEM_BYTES = 1_000.0
UNMEASURED = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class NetworkViews:
    labels: Sequence[ViewLabel]
    plans: PricedPlans
    rewritings: Rewritings
    flat: Mapping[int, FlatFeed]
    patterns: Mapping[str, Mapping[int, PatternNode]]
    """By source and view."""

    def problem(self, *, limit: int | None, source_limit: int | None) -> Problem:
        limits = Limits.uniform(
            len(self.labels),
            view=UNLIMITED if limit is None else limit,
            source=UNLIMITED if source_limit is None else source_limit,
        )
        return Problem(self.rewritings, self.plans.costs, limits)


def network_views(catalog: Catalog, *, rewrite: Rewrite = rewrite_here) -> NetworkViews:
    """`rewrite` finds the rewritings of tree patterns."""
    definitions = catalog.definitions()
    names = sorted(feed_names(definitions))
    plans = normalize_all(compose_all(names, definitions))
    sites = _sites(catalog)
    labels = [ViewLabel(name, site) for name in names for site in sites.get(name, [name])]
    flat, patterns, sizes = _sorted_by_kind(catalog, [plans[each.name] for each in labels])
    groups = [(list(flat), rewrite_flat(list(flat.values())))] if flat else []
    for views_of_source in patterns.values():
        groups.append(
            (
                list(views_of_source),
                find_rewritings(list(views_of_source.values()), rewrite=rewrite),
            )
        )
    rewritings = joined_rewritings(len(labels), groups)
    area = _area(labels, sizes)
    return NetworkViews(labels, price_rewritings(rewritings, area), rewritings, flat, patterns)


def _sites(catalog: Catalog) -> dict[str, list[str]]:
    """The sites of each feed that has some, in order."""
    by_feed: dict[str, set[str]] = {}
    after = 0
    while page := catalog.list_subscriptions(after_id=after, limit=PAGE_MAX):
        for subscription in page:
            if subscription.site:
                by_feed.setdefault(subscription.feed, set()).add(subscription.site)
        after = page[-1].id
    return {feed: sorted(sites) for feed, sites in by_feed.items()}


def _sorted_by_kind(
    catalog: Catalog, plans: Sequence[Plan]
) -> tuple[dict[int, FlatFeed], dict[str, dict[int, PatternNode]], Floats]:
    """Flat feeds by view, patterns by source and view, and the size of every view."""
    flat: dict[int, FlatFeed] = {}
    patterns: dict[str, dict[int, PatternNode]] = {}
    sizes = np.full(len(plans), ITEM_BYTES * UNMEASURED)
    measured: dict[str, SourceStatistics | None] = {}
    for view, plan in enumerate(plans):
        match plan:
            case Source(source):
                flat[view] = FlatFeed.of(source, TRUE)
            case Filter(condition, Source(source)):
                flat[view] = FlatFeed.of(source, condition)
            case Match(_, pattern, Source(source)):
                patterns.setdefault(source, {})[view] = pattern
        if view in flat:
            feed = flat[view]
            if feed.source not in measured:
                measured[feed.source] = catalog.statistics(feed.source)
            sizes[view] = ITEM_BYTES * _share(feed, measured[feed.source])
    return flat, patterns, sizes


def _share(feed: FlatFeed, measured: SourceStatistics | None) -> float:
    """Of the source's items, those in the feed, if conditions do not depend on each other."""
    shares = []
    for condition in feed.conditions:
        selectivity = None if measured is None else measured.selectivity(unparse_filter(condition))
        shares.append(UNMEASURED if selectivity is None else max(selectivity, 1e-6))
    return math.prod(shares)


def joined_rewritings(views: int, groups: Iterable[tuple[Sequence[int], Rewritings]]) -> Rewritings:
    """Several graphs as one: view n of a group's graph is the n-th number of the group."""
    ways: list[list[list[int]]] = [[] for _ in range(views)]
    for numbers, rewritings in groups:
        for place, view in enumerate(numbers):
            for r in range(*rewritings.view_start[place : place + 2].tolist()):
                member_span = slice(*rewritings.member_start[r : r + 2].tolist())
                ways[view].append(
                    sorted(numbers[each] for each in rewritings.members[member_span].tolist())
                )
    flat = [each for own in ways for each in own]
    return Rewritings(
        views,
        np.cumsum([0, *map(len, ways)], dtype=np.int64),
        np.cumsum([0, *map(len, flat)], dtype=np.int64),
        np.array([member for each in flat for member in each], np.int32),
    )


def _area(labels: Sequence[ViewLabel], sizes: Floats) -> WideArea:
    """All sites with equal costs in one region, because a catalog does not say where they are."""
    number: dict[str, int] = {}
    place = [number.setdefault(each.site, len(number)) for each in labels]
    area = uniform_area(sizes, document_bytes=ITEM_BYTES, sites=max(len(number), 1), regions=1)
    return replace(area, view_site=np.array(place, np.int32))


# Options that the commands of `headgate network` and `headgate relay plan` share.

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
    float, typer.Option("--time", min=1.0, metavar="SECONDS", help="Time limit of the solver.")
]
SolverOption = Annotated[
    str,
    typer.Option(
        "--solver",
        metavar="NAME",
        help=f"Which solver minimises utilisation: {alternatives(list(SOLVERS))}. "
        f"auto solves exactly where the rewritings read at most {ILP_READS_MAX:,} views.",
    ),
]
UseLoga = Annotated[
    bool,
    typer.Option(
        "--loga/--no-loga", help="Lower latency afterwards, for at most 7 % more utilisation."
    ),
]


def planned(
    catalog: str,
    *,
    limit: int,
    source_limit: int | None,
    time_s: float,
    master: str = "",
    solver: str = Solver.AUTO,
    use_loga: bool = True,
) -> tuple[NetworkViews, NetworkPlan]:
    """Plan the feeds of a catalog.

    With a master, Spark finds the rewritings of tree patterns. Its workers read a file in the
    current folder, which is deleted afterwards.
    """
    chosen = solver_named(solver)
    with (
        Catalog.open(catalog) as opened,
        stderr.status("planning …") as status,
        _rewriting(master, lambda text: status.update(f"planning, {text} …")) as rewrite,
    ):
        views = network_views(opened, rewrite=rewrite)
        problem = views.problem(limit=limit, source_limit=source_limit)
        return views, configure(problem, solver=chosen, use_loga=use_loga, time_s=time_s)


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
