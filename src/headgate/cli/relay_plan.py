"""`headgate relay plan`: who serves whom, as a file that all relays read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
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
from headgate.cli.options import CATALOG_DEFAULT, CatalogUrl
from headgate.cli.output import print_line
from headgate.cli.relay_options import NETWORK_DEFAULT, NetworkFile, make_token, token_path
from headgate.model.errors import did_you_mean
from headgate.network.configuration import Configuration
from headgate.network.configuration_problem import Ints, Longs
from headgate.network.configure import NetworkPlan
from headgate.network.living_configuration import LivingConfiguration
from headgate.relay.deployment import Address, Deployment, deployment_of
from headgate.relay.file import read_deployment, write_deployment

PORT_DEFAULT = 7_000
SOURCE_SITE = "source"


def plan(
    catalog: CatalogUrl = CATALOG_DEFAULT,
    network: NetworkFile = NETWORK_DEFAULT,
    *,
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="The documents, if there are several.")
    ] = "",
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="SITE", help="A site that is gone; may be repeated."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65_535, help="The first of as many ports as there are sites.")
    ] = PORT_DEFAULT,
    limit: FeedLimit = LIMIT_DEFAULT,
    source_limit: SourceLimit = None,
    time: PlanningTime = TIME_DEFAULT_S,
) -> None:
    """Plan which site computes which feed from whose, for relays: a file, and a token beside it.

    Feeds over documents (match …) are carried. Sites are on this machine's loopback; edit the file
    to change that: planning again keeps the addresses that it has.

    [bold]headgate relay plan --network network.json[/bold]
    """
    views, found = planned(catalog, limit=limit, source_limit=source_limit, time_s=time)
    name = _source_of(views, source)
    known = read_deployment(network).addresses if network.exists() else {}
    deployment = deployment_for(views, found, name, without=without or [], port=port, known=known)
    write_deployment(network, deployment)
    print_line(
        f"{network}: {len(deployment.views):,} views of {name} at {len(deployment.addresses) - 1:,}"
        f" sites and the source, plan {deployment.plan_id}"
    )
    if make_token(token_path(network)):
        print_line(f"{token_path(network)}: a new token; every relay needs it, nobody else may")
    if left := len(views.labels) - len(views.patterns[name]):
        print_line(f"views of other sources and kinds, which relays do not carry: {left:,}")


def _source_of(views: NetworkViews, asked: str) -> str:
    known = sorted(views.patterns)
    if asked and asked not in known:
        hint = did_you_mean(asked, known)
        raise typer.BadParameter(
            f"no feed matches documents of '{asked}'" + (f": {hint}" if hint else "")
        )
    if not known:
        raise typer.BadParameter("there is no feed over documents: create one with 'match'")
    if len(known) > 1 and not asked:
        raise typer.BadParameter(f"which documents? --source {' or '.join(known)}")
    return asked or known[0]


def deployment_for(
    views: NetworkViews,
    found: NetworkPlan,
    source: str,
    *,
    without: list[str],
    port: int,
    known: Mapping[str, Address],
) -> Deployment:
    """The views of one source, but for those at sites that are gone."""
    own = views.patterns[source]
    sites = sorted({views.labels[each].site for each in own})
    for gone in without:
        if gone not in sites:
            hint = did_you_mean(gone, sites)
            raise typer.BadParameter(f"there is no site '{gone}'" + (f": {hint}" if hint else ""))
    # Ports stay with their sites, whichever of them are gone.
    addresses = {
        site: known.get(site, Address("127.0.0.1", port + at))
        for at, site in enumerate([_source_site(sites), *sites])
        if site not in without
    }
    configuration, kept, join_at = found.fast, np.arange(len(views.labels)), views.plans.join_at
    if without:
        lost = [n for n, label in enumerate(views.labels) if label.site in without]
        configuration, kept, join_at = _without(views, found, lost)
    patterns = {at: own[view] for at, view in enumerate(kept.tolist()) if view in own}
    labels = [views.labels[view] for view in kept.tolist()]
    return deployment_of(
        configuration,
        patterns,
        labels,
        join_at=join_at,
        addresses=addresses,
        network=source,
        source=_source_site(sites),
    )


def _without(
    views: NetworkViews, found: NetworkPlan, lost: list[int]
) -> tuple[Configuration, Longs, Ints]:
    """Those that are left are served by others: only who had read what is lost is moved."""
    living = LivingConfiguration(found)
    living.remove(lost)
    configuration, kept = living.configuration()
    return configuration, kept, views.plans.join_at[living.rewritings()]


def _source_site(sites: list[str]) -> str:
    """A name that no site has."""
    name = SOURCE_SITE
    while name in sites:
        name = f"{name}-"
    return name
