"""`headgate rejected`: what could not be read as an item, and why."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict
from typing import Annotated

import typer

from headgate.acquire.rejected import Rejected, read_rejected
from headgate.cli.options import FOLDER_DEFAULT, AsJson, RunFolder
from headgate.cli.output import print_json, print_line
from headgate.cli.stored import folder_of
from headgate.model.errors import printable

LINES_MAX = 100_000
TEXT_SHOWN = 60


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
    for each in read_rejected(folder_of(folder).sources.glob("*")):
        if source in ("", each.source):
            last.append(each)
            total += each.count
    for each in last:
        if json:
            print_json(asdict(each))
        else:
            print_line(_line(each))
    if not json:
        print_line(f"-- {total:,} rejected" + (f" of {source}" if source else ""))


def _line(each: Rejected) -> str:
    place = each.file if each.line is None else f"{each.file}:{each.line}"
    text = f"  {printable(each.text)[:TEXT_SHOWN]}" if each.text else ""
    return printable(f"{each.source}  {place}  {each.error}") + text
