"""`headgate opml`: lists of feeds, as other readers export and import them."""

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
from headgate.language import parse
from headgate.language.statements import RegisterFeed
from headgate.model.errors import HeadgateError, printable

LINES_SHOWN_MAX = 100
PAGE = 1_000

opml = typer.Typer(help="Lists of feeds (OPML), in and out.", no_args_is_help=True)


@opml.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An OPML file.")],
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Register every feed of a list. What cannot be used is listed, and the rest is imported.

    [bold]headgate opml import subscriptions.opml[/bold]
    """
    try:
        body = file.read_bytes()
    except OSError as error:
        print_error(f"{file} cannot be read: {error.strerror}")
        raise typer.Exit(2) from None
    with Catalog.open(catalog) as opened, stderr.status(f"importing {printable(str(file))} …"):
        definitions = opened.definitions()
        known = {each.url for each in _registered(opened)}
        found = read_opml(body, taken=list(definitions))
        fresh = [each for each in found.feeds if each.url not in known]
        registered, refused = _register(opened, fresh)
    _report(found, registered, len(found.feeds) - len(fresh), refused, as_json=json)
    if not found.feeds:
        raise typer.Exit(1)


@opml.command()
def export(
    file: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="Where to write; else standard output.")
    ] = Path("-"),
    catalog: CatalogUrl = CATALOG_DEFAULT,
) -> None:
    """Write every registered feed of the web as OPML.

    [bold]headgate opml export subscriptions.opml[/bold]
    """
    with Catalog.open(catalog) as opened:
        feeds = [OpmlFeed(str(each.name), str(each.url)) for each in _registered(opened)]
    document = write_opml(feeds)
    if str(file) == "-":
        sys.stdout.write(document.decode())
        return
    file.write_bytes(document)
    print_line(f"wrote {len(feeds):,} feeds to {file}")


def _registered(catalog: Catalog) -> list[RegisterFeed]:
    found: list[RegisterFeed] = []
    after = ""
    while page := catalog.list_definitions([DefinitionKind.RSS], after=after, limit=PAGE):
        statements = (parse(each.definition) for each in page)
        found += [each for each in statements if isinstance(each, RegisterFeed)]
        after = page[-1].name
    return found


def _register(catalog: Catalog, feeds: list[OpmlFeed]) -> tuple[int, list[tuple[OpmlFeed, str]]]:
    """All of them in one transaction, but for those that the catalog refuses."""
    waiting, refused = list(feeds), []
    while waiting:
        try:
            catalog.apply([RegisterFeed(each.name, each.url) for each in waiting])
            break
        except HeadgateError as error:
            number = error.statement_number
            if number is None:
                raise
            refused.append((waiting.pop(number - 1), str(error)))
    return len(waiting), refused


def _report(
    found: Opml,
    registered: int,
    known: int,
    refused: list[tuple[OpmlFeed, str]],
    *,
    as_json: bool,
) -> None:
    bad = [*found.bad_lines, *(BadLine(0, f"'{each.url}': {why}") for each, why in refused)]
    if as_json:
        lines = [{"line": each.line, "reason": each.reason} for each in bad]
        print_json({"registered": registered, "known": known, "bad_lines": lines})
        return
    for each in bad[:LINES_SHOWN_MAX]:
        stderr.print(printable(str(each) if each.line else each.reason), style="yellow")
    if len(bad) > LINES_SHOWN_MAX:
        stderr.print(f"and {len(bad) - LINES_SHOWN_MAX:,} more", style="yellow")
    print_line(
        f"registered {registered:,} feeds, {known:,} were registered already, "
        f"{len(bad):,} lines could not be used"
    )
