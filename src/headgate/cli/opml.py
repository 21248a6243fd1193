"""`headgate opml`: import and export lists of feeds as OPML, which feed readers exchange."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from headgate.acquire.opml import BadLine
from headgate.api.opml import ImportState, OpmlImport, export_opml, import_opml
from headgate.catalog.catalog import Catalog
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.cli.output import print_error, print_json, print_line, stderr
from headgate.model.errors import printable

LINES_SHOWN_MAX = 100

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
        found = import_opml(opened, body)
    _report(found, as_json=json)
    if not found.feeds:
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
        found = export_opml(opened)
    if str(file) == "-":
        sys.stdout.write(found.document.decode())
        return
    file.write_bytes(found.document)
    print_line(f"wrote {found.count:,} feeds to {file}")


def _report(found: OpmlImport, *, as_json: bool) -> None:
    refused = [each for each in found.feeds if each.state is ImportState.REFUSED]
    reasons = [BadLine(0, f"'{each.feed.url}': {each.reason}") for each in refused]
    bad = [*found.bad_lines, *reasons]
    registered, known = (
        found.count(state) for state in (ImportState.REGISTERED, ImportState.KNOWN)
    )
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
