"""`headgate subscribe`, `renew` and `unsubscribe`."""

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
    """Subscribe to a feed. The ticket is shown once: keep it to renew or end the subscription.

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
