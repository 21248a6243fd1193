"""`headgate subscribe`, `renew`, `unsubscribe`, `rotate`, `confirm` and `pause`."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.api.headgate import open as open_headgate
from headgate.cli.options import (
    CATALOG_DEFAULT,
    AsJson,
    CatalogUrl,
    Ticket,
    duration_option,
    read_ticket,
)
from headgate.cli.output import print_json, print_line
from headgate.cli.scripts import print_outcome
from headgate.language.statements import Output, OutputKind, Renew, Subscribe, Unsubscribe


def subscribe(  # noqa: PLR0917 - typer passes by keyword
    feed: Annotated[str, typer.Argument(help="The feed or source.")],
    output: Annotated[OutputKind, typer.Option(help="How to deliver.")] = OutputKind.CONSOLE,
    to: Annotated[str, typer.Option(help="The mail address, file or URL to deliver to.")] = "",
    every: Annotated[str, typer.Option(help="How often, such as '3 hours'.")] = "",
    for_: Annotated[str, typer.Option("--for", help="For how long; one day unless stated.")] = "",
    stylesheet: Annotated[str, typer.Option("--apply", help="An XSLT stylesheet.")] = "",
    site: Annotated[str, typer.Option(help="The site that receives the results.")] = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Subscribe to a feed. The ticket is shown once: keep it to renew or end the subscription. So
    is the secret of a webhook. A mail waits until its reader confirms it.

    [bold]headgate subscribe Rock --output mail --to me@mail.org --every '3 hours'[/bold]
    """
    statement = Subscribe(
        feed,
        Output(output, to),
        stylesheet or None,
        duration_option(every, "--every"),
        duration_option(for_, "--for"),
        site or None,
    )
    with open_headgate(catalog) as h:
        print_outcome(h.apply_statement(statement), as_json=json)


def renew(
    ticket: Ticket,
    for_: Annotated[str, typer.Option("--for", help="From now on; one day unless stated.")] = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Renew a subscription with its ticket.

    [bold]headgate renew 17-f3Zk… --for '30 days'[/bold]
    """
    statement = Renew(read_ticket(ticket), duration_option(for_, "--for"))
    with open_headgate(catalog) as h:
        (outcome,) = h.apply([statement])
    print_outcome(outcome, as_json=json)


def unsubscribe(
    ticket: Ticket, catalog: CatalogUrl = CATALOG_DEFAULT, json: AsJson = False
) -> None:
    """End a subscription with its ticket.

    [bold]headgate unsubscribe 17-f3Zk…[/bold]
    """
    with open_headgate(catalog) as h:
        (outcome,) = h.apply([Unsubscribe(read_ticket(ticket))])
    print_outcome(outcome, as_json=json)


def rotate(ticket: Ticket, catalog: CatalogUrl = CATALOG_DEFAULT, json: AsJson = False) -> None:
    """Give a webhook a new secret, with its ticket. It is shown once; for a day calls are signed
    with the old one, too.

    [bold]headgate rotate 17-f3Zk…[/bold]
    """
    with open_headgate(catalog) as h:
        rotated = h.catalog.rotate_secret(read_ticket(ticket))
    if json:
        print_json({"subscription": rotated.subscription_id, "secret": rotated.secret})
        return
    print_line(f"the webhook of subscription {rotated.subscription_id} has a new secret")
    print_line(f"  secret   {rotated.secret}", style="bold")


def confirm(
    subscription: Annotated[int, typer.Argument(help="Its number.")],
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Confirm a mail subscription in place of its reader, as the operator.

    [bold]headgate confirm 17[/bold]
    """
    with open_headgate(catalog) as h:
        is_new = h.confirm(subscription)
    if json:
        print_json({"subscription": subscription, "confirmed": True, "changed": is_new})
    else:
        print_line(f"subscription {subscription} {'is' if is_new else 'was already'} confirmed")


def pause(
    subscription: Annotated[int, typer.Argument(help="Its number.")],
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Pause a subscription: nothing is sent until it is resumed. It keeps its place, and expires as
    if it were not paused.

    [bold]headgate pause 17[/bold]
    """
    with open_headgate(catalog) as h:
        is_new = h.catalog.pause_subscription(subscription)
    if json:
        print_json({"subscription": subscription, "paused": True, "changed": is_new})
    else:
        print_line(f"subscription {subscription} {'is' if is_new else 'was already'} paused")
