"""`headgate tail`: the last items of a feed or source, and those that come."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.catalog.catalog import Catalog
from headgate.cli.options import CATALOG_DEFAULT, FOLDER_DEFAULT, AsJson, CatalogUrl, RunFolder
from headgate.cli.output import print_json, print_line
from headgate.cli.stored import (
    Since,
    folder_of,
    print_row,
    row_json,
    since_moment,
    tell_damaged,
    widest,
)
from headgate.store.item_files import finished_batches
from headgate.store.read_store import StoredRow, StoreReader
from headgate.store.tail import Follower, selection_of
from headgate.store.tail import tail as last_items

POLL_S = 0.5
LINES_MAX = 100_000


def tail(
    feed: Annotated[str, typer.Argument(metavar="FEED", help="A feed, or a source.")],
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=LINES_MAX)] = 10,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show what comes from now on, too.")
    ] = False,
    since: Since = "",
    *,
    folder: RunFolder = FOLDER_DEFAULT,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Show the last items of a feed or source, in the order in which they arrived.

    [bold]headgate tail RockConcertStream --lines 20[/bold]

    [bold]headgate tail MuseNews --follow[/bold]
    """
    opened_folder = folder_of(folder)
    moment = since_moment(since, datetime.now(UTC))
    with Catalog.open(catalog) as opened, opened.looking_up() as definitions:
        wanted = selection_of(feed, definitions)
    with StoreReader(opened_folder) as reader:
        certain = finished_batches(opened_folder.batches)
        rows = last_items(reader, wanted, lines=lines, since=moment, certain=certain)
        tell_damaged(reader.damaged)
        _print(rows, as_json=json)
        if not rows and lines and not json:
            print_line(f"-- nothing of {feed}" + (f" since {since}" if since else " yet"))
        if follow:
            _follow(Follower(reader, wanted, certain), reader, as_json=json)


def _follow(follower: Follower, reader: StoreReader, *, as_json: bool) -> None:
    told = dict(reader.damaged)
    try:
        while True:
            _print(follower.look(), as_json=as_json)
            tell_damaged({path: why for path, why in reader.damaged.items() if path not in told})
            told |= reader.damaged
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        raise typer.Exit from None


def _print(rows: Sequence[StoredRow], *, as_json: bool) -> None:
    width = widest(rows)
    for row in rows:
        if as_json:
            print_json(row_json(row))
        else:
            print_row(row, source_width=width)
    sys.stdout.flush()
