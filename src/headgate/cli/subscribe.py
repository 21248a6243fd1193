"""`headgate subscribe`: order a feed."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate.cli.applying import apply_statement
from headgate.cli.durations import duration_option
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl
from headgate.language.statements import Output, OutputKind, Subscribe


def subscribe(  # noqa: PLR0917 - typer passes by keyword
    feed: Annotated[str, typer.Argument(help="The feed or source.")],
    output: Annotated[OutputKind, typer.Option(help="How to deliver.")] = OutputKind.CONSOLE,
    to: Annotated[str, typer.Option(help="The mail address, file or URL to deliver to.")] = "",
    every: Annotated[str, typer.Option(help="How often, such as '3 hours'.")] = "",
    for_: Annotated[str, typer.Option("--for", help="For how long; one day unless stated.")] = "",
    stylesheet: Annotated[str, typer.Option("--apply", help="An XSLT stylesheet.")] = "",
    site: Annotated[str, typer.Option(help="The site that receives the results.")] = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Subscribe to a feed. The ticket is shown once: keep it to renew or end the subscription.

    [bold]headgate subscribe Rock --output mail --to me@mail.org --every '3 hours'[/bold]
    """
    statement = Subscribe(
        feed,
        Output(output, to),
        stylesheet or None,
        duration_option(every, "--every"),
        duration_option(for_, "--for"),
        site or None,
    )
    apply_statement(catalog, statement, as_json=json)
