"""`headgate opml`: import and export lists of feeds as OPML, which feed readers exchange."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from headgate.acquire.opml import BadLine, Opml, OpmlFeed, read_opml, write_opml
from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import DefinitionKind
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.output import print_error, print_json, print_line, stderr
from headgate.language.parse import parse
from headgate.language.statements import RegisterFeed
from headgate.model.errors import HeadgateError, printable

LINES_SHOWN_MAX = 100
PAGE = 1_000

opml = typer.Typer(help="Import and export lists of feeds (OPML).", no_args_is_help=True)


@opml.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An OPML file.")],
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Register every feed of a list. Lines that cannot be used are listed and skipped.

    [bold]headgate opml import subscriptions.opml[/bold]
    """
    try:
        body = file.read_bytes()
    except OSError as error:
        print_error(f"{file} cannot be read: {error.strerror}")
        raise typer.Exit(2) from None
    with Catalog.open(catalog) as opened, stderr.status(f"importing {printable(str(file))} …"):
        definitions = opened.definitions()
        known_urls = {feed.url for feed in _registered(opened)}
        document = read_opml(body, taken=list(definitions))
        fresh = [feed for feed in document.feeds if feed.url not in known_urls]
        registered, refused = _register(opened, fresh)
    _report(document, registered, len(document.feeds) - len(fresh), refused, as_json=json)
    if not document.feeds:
        raise typer.Exit(1)


@opml.command()
def export(
    file: Annotated[
        Path,
        typer.Argument(metavar="[FILE]", help="The file to write; standard output by default."),
    ] = Path("-"),
    catalog: CatalogUrl = CATALOG_DEFAULT,
) -> None:
    """Write all registered web feeds as OPML.

    [bold]headgate opml export subscriptions.opml[/bold]
    """
    with Catalog.open(catalog) as opened:
        feeds = [OpmlFeed(str(each.name), each.url, each.folders) for each in _registered(opened)]
    document = write_opml(feeds)
    if str(file) == "-":
        sys.stdout.write(document.decode())
        return
    file.write_bytes(document)
    print_line(f"wrote {len(feeds):,} feeds to {file}")


def _registered(catalog: Catalog) -> list[RegisterFeed]:
    """All registered web feeds, read from the catalog page by page."""
    feeds: list[RegisterFeed] = []
    after = ""
    while page := catalog.list_definitions([DefinitionKind.RSS], after=after, limit=PAGE):
        statements = (parse(entry.definition) for entry in page)
        feeds += [each for each in statements if isinstance(each, RegisterFeed)]
        after = page[-1].name
    return feeds


def _register(catalog: Catalog, feeds: list[OpmlFeed]) -> tuple[int, list[tuple[OpmlFeed, str]]]:
    """Register the feeds in one transaction, without those that the catalog refuses.

    Returns the number of registered feeds, and the refused feeds with the reason.
    """
    waiting, refused = list(feeds), []
    while waiting:
        try:
            catalog.apply([RegisterFeed(feed.name, feed.url, (), feed.folders) for feed in waiting])
            break
        except HeadgateError as error:
            number = error.statement_number
            if number is None:
                raise
            refused.append((waiting.pop(number - 1), str(error)))
    return len(waiting), refused


def _report(
    document: Opml,
    registered: int,
    known: int,
    refused: list[tuple[OpmlFeed, str]],
    *,
    as_json: bool,
) -> None:
    bad = [*document.bad_lines, *(BadLine(0, f"'{feed.url}': {why}") for feed, why in refused)]
    if as_json:
        lines = [{"line": bad_line.line, "reason": bad_line.reason} for bad_line in bad]
        print_json({"registered": registered, "known": known, "bad_lines": lines})
        return
    for bad_line in bad[:LINES_SHOWN_MAX]:
        stderr.print(printable(str(bad_line) if bad_line.line else bad_line.reason), style="yellow")
    if len(bad) > LINES_SHOWN_MAX:
        stderr.print(f"and {len(bad) - LINES_SHOWN_MAX:,} more", style="yellow")
    print_line(
        f"registered {registered:,} feeds, {known:,} were registered already, "
        f"{len(bad):,} lines could not be used"
    )
