"""The options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CATALOG_DEFAULT = "headgate.db"
IN_MEMORY = "sqlite://"
"""A catalog for a script on its own, gone with the command."""

FOLDER_DEFAULT = Path("headgate-data")

CatalogUrl = Annotated[
    str,
    typer.Option(
        "--catalog",
        envvar="HEADGATE_CATALOG",
        metavar="URL",
        help="The catalog: an SQLite file, or postgresql://user@host/database.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Script = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A script of statements, or - for standard input."),
]
RunFolder = Annotated[
    Path,
    typer.Option(
        "--folder",
        "--checkpoint",
        envvar="HEADGATE_FOLDER",
        metavar="FOLDER",
        help="Where a run keeps everything that must survive it.",
    ),
]
