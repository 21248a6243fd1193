"""`headgate renew`: keep a subscription alive."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.catalog.catalog import Catalog
from headgate.cli.applying import print_outcome
from headgate.cli.durations import duration_option
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.tickets import Ticket, read_ticket
from headgate.language.statements import Renew


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
    with Catalog.open(catalog) as opened:
        (outcome,) = opened.apply([statement])
    print_outcome(outcome, as_json=json)
