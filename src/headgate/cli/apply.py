"""`headgate apply`: put a script into effect."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from headgate.catalog.catalog import Catalog
from headgate.catalog.transaction import Outcome
from headgate.cli.applying import apply_script, outcome_json, print_outcome
from headgate.cli.explain import print_explanation
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl, Script
from headgate.cli.output import print_json, print_line
from headgate.cli.read import read_statements, read_text
from headgate.cli.show import print_listing
from headgate.language.statements import Explain, Show

OUTCOMES_SHOWN_MAX = 1_000

Tickets = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the tickets of new subscriptions to this new file instead, readable by you.",
    ),
]


def apply(
    file: Script,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
    tickets: Tickets = None,
) -> None:
    """Apply a script: all of it, or, if a statement is refused, nothing.

    What is registered already with the same definition stays as it is; every 'subscribe' makes a
    subscription of its own. A ticket is shown once: keep it to renew or end the subscription.

    [bold]headgate apply examples/newsroom.feeds[/bold]
    """
    text = read_text(file)
    statements = read_statements(text, file=file, as_json=json)
    # The file is made first: tickets that cannot be written would be lost.
    ticket_file = None if tickets is None else _new_private_file(tickets)
    with Catalog.open(catalog) as opened:
        outcomes = apply_script(opened, statements, text=text, file=file, as_json=json)
        if ticket_file is not None:
            _write_tickets(ticket_file, outcomes)
        if json:
            print_json([outcome_json(outcome) for outcome in outcomes if outcome.action])
            return
        _print_outcomes(outcomes, opened, with_tickets=ticket_file is None)


def _print_outcomes(outcomes: list[Outcome], opened: Catalog, *, with_tickets: bool) -> None:
    for number, outcome in enumerate(outcomes):
        match outcome.statement:
            case Show(listing):
                print_listing(opened, listing)
            case Explain(feed):
                print_explanation(opened.definitions(), [feed], as_json=False)
            case _ if number < OUTCOMES_SHOWN_MAX or (outcome.ticket and with_tickets):
                print_outcome(outcome, as_json=False, with_ticket=with_tickets)
    changed = sum(outcome.changed for outcome in outcomes)
    print_line(f"{changed:,} of {len(outcomes):,} statements changed the catalog")


def _new_private_file(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--tickets") from None


def _write_tickets(file: int, outcomes: list[Outcome]) -> None:
    with os.fdopen(file, "w", encoding="utf-8") as stream:
        for outcome in outcomes:
            if outcome.ticket:
                stream.write(f"{outcome.ticket}\n")
