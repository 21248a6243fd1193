"""`headgate why`: why a stored item is in a feed, or why not, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from headgate.api.why_stored import WhyStored, found_item, why_stored
from headgate.catalog.catalog import Catalog
from headgate.cli.options import CATALOG_DEFAULT, FOLDER_DEFAULT, AsJson, CatalogUrl, RunFolder
from headgate.cli.output import print_json, print_line, print_text
from headgate.cli.stored import folder_of, joined_items, print_row, row_json, tell_damaged
from headgate.store.read_store import StoreReader

FEEDS_SHOWN_MAX = 12


def why(
    item: Annotated[str, typer.Argument(metavar="ITEM", help="The id of an item.")],
    subscription: Annotated[
        str, typer.Argument(metavar="SUBSCRIPTION", help="A subscription's number, or a feed.")
    ],
    source: Annotated[
        str, typer.Option(metavar="NAME", help="The item's source, if several have such an id.")
    ] = "",
    *,
    folder: RunFolder = FOLDER_DEFAULT,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Explain why an item of the store is in a feed or not, and whether it was delivered.

    Ids are shown by [bold]headgate tail FEED --json[/bold].

    [bold]headgate why https://muse.mu/news/17 RockConcertStream[/bold]

    [bold]headgate why 4711 12 --source Tickets[/bold]
    """
    with StoreReader(folder_of(folder)) as reader, Catalog.open(catalog) as opened:
        try:
            found = found_item(reader, item, source or None)
        finally:
            tell_damaged(reader.damaged)
        told = why_stored(reader, opened, found, subscription)
    if json:
        print_json(_as_json(told))
        return
    print_row(told.row)
    print_line(f"arrived at {told.row.arrived:%Y-%m-%d %H:%M:%S}; {_feeds(told)}")
    for annotation in told.joined:
        items = [f"{each.get('source')} {each.get('id')}" for each in joined_items(annotation)]
        print_line(f"{annotation.get('join')} joined {_listed(items, 'item')}")
    print_line("")
    print_line(told.verdict())
    if told.subscription is not None:
        print_line(told.delivery())
    if told.why is not None:
        print_line("")
        print_text(told.why.text())


def _feeds(told: WhyStored) -> str:
    text = f"in {_listed(told.feeds, 'feed')}" if told.feeds else "in no feed"
    if told.further:
        text += f"; looked further at by {_listed(told.further, 'feed')}"
    if told.dropped:
        text += f"; {told.dropped:,} that had it are not registered any more"
    return text


def _listed(names: Sequence[str], noun: str) -> str:
    count = f"{len(names):,} {noun}{'' if len(names) == 1 else 's'}"
    rest = ", …" if len(names) > FEEDS_SHOWN_MAX else ""
    return f"{count}: {', '.join(names[:FEEDS_SHOWN_MAX])}{rest}"


def _as_json(told: WhyStored) -> dict[str, object]:
    return {
        "item": row_json(told.row),
        "feeds": told.feeds,
        "further": told.further,
        "dropped": told.dropped,
        "feed": told.feed,
        "has": told.has,
        "verdict": told.verdict(),
        "why": None if told.why is None else told.why.as_json(),
        "subscription": None if told.subscription is None else told.subscription.id,
        "joined": told.joined,
        "deliveries": [asdict(each) for each in told.deliveries],
    }
