"""`headgate unsubscribe`: end a subscription."""

from __future__ import annotations

from headgate.catalog.catalog import Catalog
from headgate.cli.applying import print_outcome
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.tickets import Ticket, read_ticket
from headgate.language.statements import Unsubscribe


def unsubscribe(
    ticket: Ticket, catalog: CatalogUrl = CATALOG_DEFAULT, json: AsJson = False
) -> None:
    """End a subscription with its ticket.

    [bold]headgate unsubscribe 17-f3Zk…[/bold]
    """
    with Catalog.open(catalog) as opened:
        (outcome,) = opened.apply([Unsubscribe(read_ticket(ticket))])
    print_outcome(outcome, as_json=json)
