"""`headgate suspend`, `resume` and `quota`: what may run, and how much of it."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.api.headgate import open as open_headgate
from headgate.catalog.limits import Resource
from headgate.catalog.tenants import LOCAL
from headgate.cli.access import OfTenant, owner_of
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.output import print_json, print_line, print_table

Feed = Annotated[str, typer.Argument(help="The feed.")]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="RESOURCE=LIMIT",
        help="Set a limit, may be repeated: statements=1000; RESOURCE=none removes it.",
    ),
]


def suspend(
    feed: Feed,
    reason: Annotated[str, typer.Option(help="Why, for those who look at it.")] = "by command",
    catalog: CatalogUrl = CATALOG_DEFAULT,
) -> None:
    """Suspend a feed: it stays registered, but nothing is matched for it until it is resumed.

    [bold]headgate suspend RockConcertStream --reason 'too many items'[/bold]
    """
    with open_headgate(catalog) as h:
        changed = h.suspend(feed, reason)
    print_line(f"suspended {feed}" if changed else f"{feed} is suspended already")


def resume(feed: Feed, catalog: CatalogUrl = CATALOG_DEFAULT) -> None:
    """Resume a feed that was suspended, by a command or because it took too much CPU time; or a
    subscription that was paused, by its number.

    [bold]headgate resume RockConcertStream[/bold]

    [bold]headgate resume 17[/bold]
    """
    if feed.isdecimal():
        with open_headgate(catalog) as h:
            changed = h.catalog.resume_subscription(int(feed))
        print_line(f"resumed subscription {feed}" if changed else f"{feed} is not paused")
        return
    with open_headgate(catalog) as h:
        changed = h.resume(feed)
    print_line(f"resumed {feed}" if changed else f"{feed} is not suspended")


def quota(
    limits: Limit = None,
    tenant: OfTenant = LOCAL,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Show the quotas and what is used of them, or set them.

    statements, subscriptions and cpu-us (what all feeds add to the CPU time of an item, in µs, by
    their price) are checked when a script is applied; cpu-percent (of the cores of a run),
    stored-bytes (of its log) and waiting (messages that receivers have refused) while it runs. The
    last two are of the whole installation, and set for the tenant local.

    [bold]headgate quota --set statements=1000 --set cpu-percent=50[/bold]
    """
    with open_headgate(catalog) as h:
        if limits:
            h.catalog.set_quotas(dict(_limit(each) for each in limits), tenant)
        acts = h.catalog.acting_as(owner_of(tenant))
        quotas, usage = acts.quotas(), acts.usage()
    if json:
        print_json({"quotas": quotas, "usage": usage})
        return
    rows = [[str(each), _figure(quotas.get(each)), _figure(usage.get(each))] for each in Resource]
    print_table(("resource", "quota", "used"), rows)


def _limit(text: str) -> tuple[Resource, int | None]:
    name, _, value = text.partition("=")
    try:
        resource = Resource(name)
        return resource, None if value == "none" else int(value.replace("_", ""))
    except ValueError:
        known = ", ".join(Resource)
        raise typer.BadParameter(
            f"'{text}' is no RESOURCE=LIMIT; a resource is one of {known}, a limit a whole number "
            "or none",
            param_hint="--set",
        ) from None


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.6g}"
