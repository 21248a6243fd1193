"""`headgate show`: what is registered, page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated

import typer

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import SOURCE_KINDS, DefinitionKind
from headgate.catalog.queries import (
    PAGE_MAX,
    Advertisement,
    Definition,
    SnapshotRecord,
    Subscription,
)
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.output import print_json, print_line, print_table, print_text
from headgate.language.statements import Listing

Entry = Definition | Subscription | Advertisement | SnapshotRecord
LIMIT_DEFAULT = 50


def show(
    what: Annotated[
        Listing | None, typer.Argument(help="What to list; without it, how many there are of each.")
    ] = None,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
    limit: Annotated[int, typer.Option(min=1, max=PAGE_MAX, help="Entries per page.")] = (
        LIMIT_DEFAULT
    ),
    after: Annotated[str, typer.Option(help="Begin after this name or number.")] = "",
) -> None:
    """Show what is registered.

    [bold]headgate show feeds[/bold]

    [bold]headgate show subscriptions --limit 100 --after 4711[/bold]
    """
    with Catalog.open(catalog) as opened:
        if what is None:
            _print_counts(opened, as_json=json)
        else:
            print_listing(opened, what, as_json=json, limit=limit, after=after)


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of a listing; without columns, its rows are statements that can be applied again."""

    entries: Sequence[Entry]
    rows: list[list[str]]
    total: int
    last: str
    columns: tuple[str, ...] = ()


def print_listing(
    catalog: Catalog,
    listing: Listing,
    *,
    as_json: bool = False,
    limit: int = LIMIT_DEFAULT,
    after: str = "",
) -> None:
    page = _PAGES[listing](catalog, limit, after)
    if as_json:
        print_json({str(listing): [asdict(entry) for entry in page.entries], "total": page.total})
        return
    if not page.rows:
        print_line(f"-- no {listing}" + (f" after {after}" if after else ""))
    elif page.columns:
        print_table(page.columns, page.rows)
    else:
        for (text,) in page.rows:
            print_text(text)
    if len(page.rows) == limit and page.total > limit:
        shown = f"{len(page.rows):,} of {page.total:,} {listing}"
        print_line(f"-- {shown}; go on with --after {page.last}")


def _definitions(*kinds: DefinitionKind) -> Callable[[Catalog, int, str], _Page]:
    def page(catalog: Catalog, limit: int, after: str) -> _Page:
        found = catalog.list_definitions(kinds, after=after, limit=limit)
        total = catalog.count_definitions(kinds)
        last = found[-1].name if found else ""
        return _Page(found, [[each.definition] for each in found], total, last)

    return page


def _subscriptions(catalog: Catalog, limit: int, after: str) -> _Page:
    found = catalog.list_subscriptions(after_id=_number(after), limit=limit)
    rows = [
        [str(each.id), each.feed, f"{each.output_kind} {each.target}", _time(each.expires_at)]
        for each in found
    ]
    total = catalog.count_subscriptions()
    last = str(found[-1].id) if found else ""
    return _Page(found, rows, total, last, columns=("id", "feed", "output", "expires (UTC)"))


def _advertisements(catalog: Catalog, limit: int, after: str) -> _Page:
    found = catalog.list_advertisements(after_id=_number(after), limit=limit)
    last = str(found[-1].id) if found else ""
    return _Page(found, [[each.definition] for each in found], len(found), last)


def _snapshots(catalog: Catalog, limit: int, after: str) -> _Page:
    before = _number(after) if after else None
    found = catalog.list_snapshots(before_version=before, limit=limit)
    rows = [
        [str(each.catalog_version), each.hash, each.path, _time(each.created_at)] for each in found
    ]
    last = str(found[-1].catalog_version) if found else ""
    columns = ("version", "hash", "path", "created (UTC)")
    return _Page(found, rows, len(found), last, columns=columns)


_PAGES: dict[Listing, Callable[[Catalog, int, str], _Page]] = {
    Listing.SOURCES: _definitions(*SOURCE_KINDS),
    Listing.FEEDS: _definitions(DefinitionKind.FEED),
    Listing.OPERATORS: _definitions(DefinitionKind.OPERATOR),
    Listing.SUBSCRIPTIONS: _subscriptions,
    Listing.ADVERTISEMENTS: _advertisements,
    Listing.SNAPSHOTS: _snapshots,
}


def _print_counts(catalog: Catalog, *, as_json: bool) -> None:
    counts = {
        "sources": catalog.count_definitions(SOURCE_KINDS),
        "feeds": catalog.count_definitions([DefinitionKind.FEED]),
        "operators": catalog.count_definitions([DefinitionKind.OPERATOR]),
        "subscriptions": catalog.count_subscriptions(),
        "version": catalog.version(),
    }
    if as_json:
        print_json(counts)
    else:
        for name, count in counts.items():
            print_line(f"{count:>12,}  {name}")


def _number(after: str) -> int:
    if not after:
        return 0
    if not after.isdecimal():
        raise typer.BadParameter("these are listed by number", param_hint="--after")
    return int(after)


def _time(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}"
