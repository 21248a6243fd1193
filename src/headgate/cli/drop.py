"""`headgate drop`: remove what nobody uses."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.cli.applying import apply_statement
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.language.statements import Drop, NameKind


def drop(
    kind: Annotated[NameKind, typer.Argument(help="What it is.")],
    name: Annotated[str, typer.Argument(help="Its name.")],
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Drop a source, feed or operator. What others use is not dropped; its users are named.

    [bold]headgate drop feed RockConcertStream[/bold]
    """
    apply_statement(catalog, Drop(kind, name), as_json=json)
