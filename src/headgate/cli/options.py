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
AllowedModules = Annotated[
    str,
    typer.Option(
        "--operators",
        envvar="HEADGATE_OPERATORS",
        metavar="MODULES",
        help="Modules from which operators may come, separated by commas.",
    ),
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


def modules_of(text: str) -> tuple[str, ...]:
    """What `--operators` names.

    >>> modules_of("city.operators, more")
    ('city.operators', 'more')
    """
    return tuple(each.strip() for each in text.split(",") if each.strip())
