"""`headgate relay read`: what a site has received for its subscribers."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.cli.options import AsJson
from headgate.cli.output import print_json, print_line
from headgate.cli.relay_options import (
    FOLDER_DEFAULT,
    NETWORK_DEFAULT,
    NetworkFile,
    RelayFolder,
    shelf_path,
)
from headgate.model.errors import RelayError, did_you_mean
from headgate.relay.file import read_deployment
from headgate.relay.shelf import read_shelf
from headgate.relay.tuple_frames import Shape, decode_tuples, failure_of
from headgate.views.view_tuples import MARKS, ViewTuples


def read(
    site: Annotated[str, typer.Option("--site", metavar="SITE", help="The site.")],
    view: Annotated[str, typer.Option("--view", metavar="FEED", help="One feed only.")] = "",
    network: NetworkFile = NETWORK_DEFAULT,
    folder: RelayFolder = FOLDER_DEFAULT,
    *,
    json: AsJson = False,
) -> None:
    """Print what a site has received: a line for each tuple, with the texts that its feed returns.

    [bold]headgate relay read --site Paris --view AcmeNews[/bold]
    """
    deployment = read_deployment(network)
    shapes = {each.name: Shape(each.pattern) for each in deployment.views if each.site == site}
    if not shapes or (view and view not in shapes):
        what, known = (view, shapes) if shapes else (site, deployment.addresses)
        hint = did_you_mean(what, known)
        raise RelayError(f"there is no '{what}' in the network" + (f": {hint}" if hint else ""))
    path = shelf_path(folder, site)
    if not path.exists():
        raise RelayError(f"{site} has kept nothing in '{folder}'")
    for name, document, content in read_shelf(path, view=view):
        if name not in shapes:
            continue
        reason = failure_of(content)
        rows = [] if reason is not None else texts_of(decode_tuples(content, shapes[name]))
        if json:
            told: dict[str, object] = {"view": name, "document": document, "tuples": rows}
            print_json(told | ({} if reason is None else {"failed": reason}))
            continue
        if reason is not None:
            print_line(f"{document}  {name}  failed: {reason}")
        for row in rows:
            print_line(f"{document}  {name}  " + "  ".join(row))


def texts_of(tuples: ViewTuples) -> list[list[str]]:
    """The marked texts of each tuple, in the order of nodes."""
    columns = sorted(tuples.texts, key=lambda key: (key[0], MARKS.index(key[1])))
    return [
        [tuples.texts[node, mark][int(row[node, 0])] for node, mark in columns]
        for row in tuples.ids
    ]
