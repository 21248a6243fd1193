"""`headgate relay`: plan a network of relays, publish documents, show status and results."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from headgate.cli.network_views import (
    LIMIT_DEFAULT,
    TIME_DEFAULT_S,
    FeedLimit,
    NetworkViews,
    PlanningTime,
    SourceLimit,
    planned,
)
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.output import print_error, print_json, print_line, stderr, stdout
from headgate.cli.relay_options import (
    FOLDER_DEFAULT,
    NETWORK_DEFAULT,
    NetworkFile,
    RelayFolder,
    TokenFile,
    make_token,
    secret_of,
    shelf_path,
    token_path,
)
from headgate.cli.relay_run import all_sites, run
from headgate.cli.relay_status import status_table, statuses
from headgate.cli.scripts import read_text
from headgate.model.errors import RelayError, did_you_mean
from headgate.network.configuration import Configuration
from headgate.network.configuration_problem import Ints, Longs
from headgate.network.configure import NetworkPlan
from headgate.network.living_configuration import LivingConfiguration
from headgate.relay.client import Publisher
from headgate.relay.deployment import Address, Deployment, deployment_of
from headgate.relay.deployment_file import read_deployment, write_deployment
from headgate.relay.received_store import read_shelf
from headgate.relay.tuple_frames import Shape, decode_tuples, failure_of
from headgate.relay.wire import Secret
from headgate.views.view_tuples import MARKS, ViewTuples

relay = typer.Typer(
    help="Relays: processes at sites that serve each other's feeds over documents.",
    no_args_is_help=True,
)


# plan

PORT_DEFAULT = 7_000
SOURCE_SITE = "source"


@relay.command()
def plan(
    catalog: CatalogUrl = CATALOG_DEFAULT,
    network: NetworkFile = NETWORK_DEFAULT,
    *,
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="The documents, if there are several.")
    ] = "",
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="SITE", help="A site that is lost; may be repeated."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65_535, help="The first of as many ports as there are sites.")
    ] = PORT_DEFAULT,
    limit: FeedLimit = LIMIT_DEFAULT,
    source_limit: SourceLimit = None,
    time: PlanningTime = TIME_DEFAULT_S,
) -> None:
    """Plan which site computes which feed from which others, and write the plan and a token.

    Relays carry feeds over documents (match …). All sites get loopback addresses; edit the file to
    change them. Planning again keeps the addresses in the file.

    [bold]headgate relay plan --network network.json[/bold]
    """
    views, network_plan = planned(catalog, limit=limit, source_limit=source_limit, time_s=time)
    name = _source_of(views, source)
    known_addresses = read_deployment(network).addresses if network.exists() else {}
    deployment = deployment_for(
        views, network_plan, name, without=without or [], port=port, known_addresses=known_addresses
    )
    write_deployment(network, deployment)
    print_line(
        f"{network}: {len(deployment.views):,} views of {name} at {len(deployment.addresses) - 1:,}"
        f" sites and the source, plan {deployment.plan_id}"
    )
    if make_token(token_path(network)):
        print_line(f"{token_path(network)}: a new token; copy it to every relay and keep it secret")
    if not_carried := len(views.labels) - len(views.patterns[name]):
        print_line(f"views of other sources and kinds, which relays do not carry: {not_carried:,}")


def _source_of(views: NetworkViews, source: str) -> str:
    sources = sorted(views.patterns)
    if source and source not in sources:
        hint = did_you_mean(source, sources)
        raise typer.BadParameter(
            f"no feed matches documents of '{source}'" + (f": {hint}" if hint else "")
        )
    if not sources:
        raise typer.BadParameter("there is no feed over documents: create one with 'match'")
    if len(sources) > 1 and not source:
        raise typer.BadParameter(
            f"there are several kinds of documents: choose one with --source {' or '.join(sources)}"
        )
    return source or sources[0]


def deployment_for(
    views: NetworkViews,
    plan: NetworkPlan,
    source: str,
    *,
    without: list[str],
    port: int,
    known_addresses: Mapping[str, Address],
) -> Deployment:
    """The deployment of the views of one source, without those at lost sites."""
    patterns_of_source = views.patterns[source]
    sites = sorted({views.labels[each].site for each in patterns_of_source})
    for lost_site in without:
        if lost_site not in sites:
            hint = did_you_mean(lost_site, sites)
            raise typer.BadParameter(
                f"there is no site '{lost_site}'" + (f": {hint}" if hint else "")
            )
    # A site keeps its port when other sites are lost.
    addresses = {
        site: known_addresses.get(site, Address("127.0.0.1", port + at))
        for at, site in enumerate([_source_site(sites), *sites])
        if site not in without
    }
    configuration, kept, join_at = plan.fast, np.arange(len(views.labels)), views.plans.join_at
    if without:
        lost = [n for n, label in enumerate(views.labels) if label.site in without]
        configuration, kept, join_at = _without_views(views, plan, lost)
    patterns = {
        at: patterns_of_source[view]
        for at, view in enumerate(kept.tolist())
        if view in patterns_of_source
    }
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


def _without_views(
    views: NetworkViews, plan: NetworkPlan, lost: list[int]
) -> tuple[Configuration, Longs, Ints]:
    """The configuration without the lost views. Only views that had read a lost view change."""
    living = LivingConfiguration(plan)
    living.remove(lost)
    configuration, kept = living.configuration()
    return configuration, kept, views.plans.join_at[living.rewritings()]


def _source_site(sites: list[str]) -> str:
    """A name that no site has."""
    name = SOURCE_SITE
    while name in sites:
        name = f"{name}-"
    return name


# publish


@relay.command()
def publish(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="XML documents.")],
    network: NetworkFile = NETWORK_DEFAULT,
    *,
    wait: Annotated[
        bool, typer.Option("--wait", help="Return when every site has all of them.")
    ] = False,
    token_file: TokenFile = None,
) -> None:
    """Publish documents. Each is on disk at the source once its number is printed.

    [bold]headgate relay publish news/*.xml --wait[/bold]
    """
    secret, deployment = secret_of(network, token_file), read_deployment(network)
    refused = asyncio.run(_publish(deployment, secret, files, wait=wait))
    if refused:
        print_error(f"documents refused: {refused:,} of {len(files):,}")
        raise typer.Exit(1)


async def _publish(
    deployment: Deployment, secret: Secret, files: Sequence[Path], *, wait: bool
) -> int:
    publisher, refused, number = await Publisher.connect(deployment, secret), 0, -1
    try:
        for path in files:
            text = read_text(path)
            try:
                number = await publisher.publish(text)
                print_line(f"{path}: document {number}")
            except RelayError as error:
                refused += 1
                print_error(f"{path}: {error}")
        if wait and number >= 0:
            with stderr.status("waiting for all sites …"):
                await publisher.wait_until_everywhere(number)
            print_line("every site has all of them")
    except (OSError, EOFError):
        raise RelayError("the source has closed the connection; try again") from None
    finally:
        await publisher.close()
    return refused


# read


@relay.command()
def read(
    site: Annotated[str, typer.Option("--site", metavar="SITE", help="The site.")],
    view: Annotated[str, typer.Option("--view", metavar="FEED", help="One feed only.")] = "",
    network: NetworkFile = NETWORK_DEFAULT,
    folder: RelayFolder = FOLDER_DEFAULT,
    *,
    json: AsJson = False,
) -> None:
    """Print what a site has received: a line for each tuple, with the texts that its feed returns.

    [bold]headgate relay read --site Paris --view AcmeNews[/bold]
    """
    deployment = read_deployment(network)
    shapes = {each.name: Shape(each.pattern) for each in deployment.views if each.site == site}
    if not shapes or (view and view not in shapes):
        unknown, names = (view, shapes) if shapes else (site, deployment.addresses)
        hint = did_you_mean(unknown, names)
        raise RelayError(f"there is no '{unknown}' in the network" + (f": {hint}" if hint else ""))
    path = shelf_path(folder, site)
    if not path.exists():
        raise RelayError(f"{site} has kept nothing in '{folder}'")
    for name, document, content in read_shelf(path, view=view):
        if name not in shapes:
            continue
        reason = failure_of(content)
        rows = [] if reason is not None else texts_of(decode_tuples(content, shapes[name]))
        if json:
            record: dict[str, object] = {"view": name, "document": document, "tuples": rows}
            print_json(record | ({} if reason is None else {"failed": reason}))
            continue
        if reason is not None:
            print_line(f"{document}  {name}  failed: {reason}")
        for row in rows:
            print_line(f"{document}  {name}  " + "  ".join(row))


def texts_of(tuples: ViewTuples) -> list[list[str]]:
    """The marked texts of each tuple, in the order of nodes."""
    columns = sorted(tuples.texts, key=lambda key: (key[0], MARKS.index(key[1])))
    return [
        [tuples.texts[node, mark][int(row[node, 0])] for node, mark in columns]
        for row in tuples.ids
    ]


# status


@relay.command()
def status(
    network: NetworkFile = NETWORK_DEFAULT, *, token_file: TokenFile = None, json: AsJson = False
) -> None:
    """Show what each relay has received, computed and forwarded, how far it is behind, and why.

    [bold]headgate relay status --network network.json[/bold]
    """
    secret, deployment = secret_of(network, token_file), read_deployment(network)
    by_site = asyncio.run(statuses(deployment, secret))
    if json:
        print_json(by_site)
    else:
        stdout.print(status_table(by_site))


relay.command(help=run.__doc__)(run)
relay.command("all", help=all_sites.__doc__)(all_sites)
