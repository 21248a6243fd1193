"""`headgate post SOURCE < events.jsonl`: give events to a source that is registered `from post`."""

from __future__ import annotations

import sys
from itertools import islice
from typing import Annotated

import typer

from headgate.api.headgate import open as open_headgate
from headgate.cli.options import CATALOG_DEFAULT, FOLDER_DEFAULT, CatalogUrl, RunFolder
from headgate.cli.output import print_line, stderr

LINES_AT_ONCE = 10_000


def post(
    source: Annotated[str, typer.Argument(help="A source that is registered 'from post'.")],
    catalog: CatalogUrl = CATALOG_DEFAULT,
    folder: RunFolder = FOLDER_DEFAULT,
) -> None:
    """Post events, one JSON object per line of the standard input.

    They are on disk when the command ends, and the run of the folder reads them. A line that does
    not fit the source is reported, and the others are accepted; the exit code is then 1.

    [bold]headgate post Alerts < events.jsonl[/bold]
    """
    accepted, rejected, first_line = 0, 0, 0
    with open_headgate(catalog, folder=folder) as h:
        while lines := list(islice(sys.stdin.buffer, LINES_AT_ONCE)):
            result = h.post(source, lines)
            accepted += result.accepted
            rejected += len(result.rejected)
            for number, reason in result.rejected:
                stderr.print(f"line {first_line + number}: {reason}", markup=False)
            first_line += len(lines)
    print_line(f"{accepted:,} events accepted, {rejected:,} rejected")
    if rejected:
        raise typer.Exit(1)
