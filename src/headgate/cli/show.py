"""`headgate show`: what is registered, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer

from headgate.api.headgate import PAGE_DEFAULT, Entry, Headgate
from headgate.api.headgate import open as open_headgate
from headgate.catalog.queries import PAGE_MAX, Definition, SnapshotRecord, Subscription
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.output import print_json, print_line, print_table, print_text
from headgate.language.statements import Listing
from headgate.model.errors import InvalidValue

COLUMNS = {
    Listing.SUBSCRIPTIONS: ("id", "feed", "output", "expires (UTC)"),
    Listing.SNAPSHOTS: ("version", "hash", "path", "created (UTC)"),
}


def show(
    what: Annotated[
        Listing | None, typer.Argument(help="What to list; without it, how many there are of each.")
    ] = None,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
    limit: Annotated[int, typer.Option(min=1, max=PAGE_MAX, help="Entries per page.")] = (
        PAGE_DEFAULT
    ),
    after: Annotated[str, typer.Option(help="Begin after this name or number.")] = "",
) -> None:
    """Show what is registered.

    [bold]headgate show feeds[/bold]

    [bold]headgate show subscriptions --limit 100 --after 4711[/bold]
    """
    with open_headgate(catalog) as h:
        if what is None:
            _print_counts(h.counts(), as_json=json)
        else:
            print_listing(h, what, as_json=json, limit=limit, after=after)


def print_listing(
    h: Headgate,
    listing: Listing,
    *,
    as_json: bool = False,
    limit: int = PAGE_DEFAULT,
    after: str = "",
) -> None:
    """A page as a table, or as statements that can be applied again."""
    try:
        page = h.show(listing, limit=limit, after=after)
    except InvalidValue as error:
        raise typer.BadParameter(str(error), param_hint="--after") from None
    if as_json:
        print_json({str(listing): [asdict(entry) for entry in page.entries], "total": page.total})
        return
    rows = [_cells(entry) for entry in page.entries]
    if not rows:
        print_line(f"-- no {listing}" + (f" after {after}" if after else ""))
    elif listing in COLUMNS:
        print_table(COLUMNS[listing], rows)
    else:
        suspended = h.suspended() if listing is Listing.FEEDS else {}
        for entry, (text,) in zip(page.entries, rows, strict=True):
            print_text(text)
            if isinstance(entry, Definition) and (since := suspended.get(entry.name)):
                when = _time_text(since.suspended_at)
                print_line(f"-- suspended since {when} UTC: {since.reason}")
    if len(rows) == limit and page.total > limit:
        shown = f"{len(rows):,} of {page.total:,} {listing}"
        print_line(f"-- {shown}; go on with --after {page.last}")


def _cells(entry: Entry) -> Sequence[str]:
    match entry:
        case Subscription():
            output = f"{entry.output_kind} {entry.target}"
            expires = _time_text(entry.expires_at)
            waits = "" if entry.confirmed_at else ", waits for confirmation"
            return [str(entry.id), entry.feed, output, f"{expires}{waits}"]
        case SnapshotRecord():
            version = str(entry.catalog_version)
            return [version, entry.hash, entry.path, _time_text(entry.created_at)]
    return [entry.definition]


def _print_counts(counts: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        print_json(counts)
    else:
        for name, count in counts.items():
            print_line(f"{count:>12,}  {name}")


def _time_text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}"
