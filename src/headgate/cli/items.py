"""`headgate tail`, `why` and `rejected`: what a run has stored, item by item.

What is shown comes from strangers' feeds: it goes to the terminal on one line, without control
characters and without markup (output.py).
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from headgate.acquire.rejected import Rejected, read_rejected
from headgate.api.headgate import Headgate
from headgate.api.headgate import open as open_headgate
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FOLDER_DEFAULT,
    AsJson,
    CatalogUrl,
    RunFolder,
    Since,
    existing_folder,
    since_option,
)
from headgate.cli.output import print_json, print_line, print_text, stderr, stdout
from headgate.model.errors import printable
from headgate.store.data_folder import DataFolder

if TYPE_CHECKING:
    from headgate.api.why_stored import WhyStored
    from headgate.store.read_store import StoredRow

LINES_MAX = 100_000
VALUE_SHOWN_MAX = 60
TEXT_SHOWN = 60
FEEDS_SHOWN_MAX = 12


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
    first = since_option(since)
    with open_headgate(catalog, folder=existing_folder(folder)) as h:
        try:
            for number, rows in enumerate(h.follow_batches(feed, lines, since=first)):
                tell_damaged(h)
                _print_rows(rows, as_json=json)
                if number == 0 and not rows and lines and not json:
                    print_line(f"-- nothing of {feed}" + (f" since {since}" if since else " yet"))
                if not follow:
                    return
        except KeyboardInterrupt:
            raise typer.Exit from None


def _print_rows(rows: Sequence[StoredRow], *, as_json: bool) -> None:
    width = widest(rows)
    for row in rows:
        if as_json:
            print_json(row_json(row))
        else:
            print_row(row, source_width=width)
    sys.stdout.flush()


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
    with open_headgate(catalog, folder=existing_folder(folder)) as h:
        try:
            told = h.why(item, subscription, source=source)
        finally:
            tell_damaged(h)
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


def rejected(
    source: Annotated[str, typer.Argument(metavar="[SOURCE]", help="Only of this source.")] = "",
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=LINES_MAX)] = 20,
    *,
    folder: RunFolder = FOLDER_DEFAULT,
    json: AsJson = False,
) -> None:
    """Show the last lines, documents and messages that are no items, each with the reason.

    [bold]headgate rejected Tickets --lines 5[/bold]
    """
    last: deque[Rejected] = deque(maxlen=lines)
    total = 0
    for each in read_rejected(DataFolder(existing_folder(folder)).sources.glob("*")):
        if source in ("", each.source):
            last.append(each)
            total += each.count
    for each in last:
        if json:
            print_json(asdict(each))
        else:
            print_line(_rejected_line(each))
    if not json:
        print_line(f"-- {total:,} rejected" + (f" of {source}" if source else ""))


def _rejected_line(each: Rejected) -> str:
    place = each.file if each.line is None else f"{each.file}:{each.line}"
    text = f"  {printable(each.text)[:TEXT_SHOWN]}" if each.text else ""
    return printable(f"{each.source}  {place}  {each.error}") + text


# --- rows as text and JSON, for other commands too ----------------------------------------------


def tell_damaged(h: Headgate) -> None:
    """Name the damaged files that were left out, on standard error, each once."""
    while h.damaged:
        path, reason = h.damaged.popitem()
        text = printable(f"'{path}' is damaged and left out: {reason}")
        stderr.print(Text.assemble(("warning: ", "bold yellow"), text))


def row_text(row: StoredRow, *, source_width: int = 0) -> str:
    """Time, source, and what the item is about."""
    joined = sum(len(joined_items(each)) for each in row.annotations)
    about = _about(row.attributes) + (f"  ⋈ {joined:,}" if joined else "")
    return f"{row.time:%Y-%m-%d %H:%M:%S}  {row.source:<{source_width}}  {about}"


def print_row(row: StoredRow, *, source_width: int = 0, indent: str = "") -> None:
    """On a terminal one line, cut at its edge; else all of it, for whoever reads it."""
    text = Text(indent + printable(row_text(row, source_width=source_width)))
    if stdout.is_terminal:
        text.truncate(stdout.width, overflow="ellipsis")
    stdout.print(text)


def row_json(row: StoredRow) -> dict[str, object]:
    found: dict[str, object] = {
        "id": row.id,
        "source": row.source,
        "time": row.time,
        "arrived": row.arrived,
        "attributes": {name: _plain(value) for name, value in row.attributes.items()},
    }
    return found | ({"annotations": row.annotations} if row.annotations else {})


def widest(rows: Iterable[StoredRow]) -> int:
    return max((len(row.source) for row in rows), default=0)


def _about(attributes: Mapping[str, object]) -> str:
    title = attributes.get("title")
    if isinstance(title, str) and title.strip():
        return " ".join(title.split())
    return "  ".join(f"{name} {_shown(value)}" for name, value in attributes.items())


def _shown(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    text = str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())
    return text if len(text) <= VALUE_SHOWN_MAX else f"{text[: VALUE_SHOWN_MAX - 1]}…"


def _plain(value: object) -> object:
    return b64encode(value).decode() if isinstance(value, bytes) else value


def joined_items(annotation: Mapping[str, object]) -> list[dict[str, object]]:
    """What a join has joined, as deliver/item_encoding.py writes it."""
    items = annotation.get("items")
    return [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []
