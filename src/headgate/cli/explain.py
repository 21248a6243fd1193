"""`headgate explain`: the plans of feeds, the program of a source, why an item is in a feed."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from headgate.api.explain import Explained
from headgate.api.headgate import Headgate
from headgate.api.headgate import open as open_headgate
from headgate.api.running import RunOptions
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FACTORIZE_DEFAULT,
    FOLDER_DEFAULT,
    IN_MEMORY,
    OPERATOR_ORDER_DEFAULT,
    AsJson,
    CatalogUrl,
    Factorize,
    JoinScheme,
    OperatorOrder,
    RunFolder,
)
from headgate.cli.output import print_json, print_text
from headgate.cli.scripts import apply_script, read_statements, read_text
from headgate.model.errors import InvalidValue
from headgate.plan.translate import feed_names


def explain(
    feeds: Annotated[
        list[str] | None, typer.Argument(metavar="[FEED]…", help="The feeds; without, all of them.")
    ] = None,
    *,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Explain a script on its own instead.")
    ] = None,
    item: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Why this item, a JSON object, is in the feed or not."),
    ] = None,
    source: Annotated[
        str, typer.Option(metavar="NAME", help="The item's source, if the feed has several.")
    ] = "",
    program: Annotated[
        str, typer.Option(metavar="SOURCE", help="The program of all filters on a source.")
    ] = "",
    factorized: Annotated[
        str, typer.Option(metavar="SOURCE", help="What the filters on a source share, its cost.")
    ] = "",
    run: Annotated[
        bool, typer.Option("--run", help="How everything runs: queries, windows, indexes.")
    ] = False,
    folder: RunFolder = FOLDER_DEFAULT,
    factorize: Factorize = FACTORIZE_DEFAULT,
    operator_order: OperatorOrder = OPERATOR_ORDER_DEFAULT,
    join_scheme: JoinScheme = "",
    json: AsJson = False,
) -> None:
    """Explain how feeds are computed: the plan as written, and in normal form.

    What is shared is named once: r0 := …

    [bold]headgate explain RockConcertStream[/bold]

    [bold]headgate explain --script examples/newsroom.feeds[/bold]

    [bold]headgate explain WeekendTrips --item ticket.json[/bold]

    [bold]headgate explain --program Tickets[/bold]

    [bold]headgate explain --factorized Tickets[/bold]

    [bold]headgate explain --run[/bold]
    """
    with open_headgate(catalog if script is None else IN_MEMORY, folder=folder) as h:
        if script is not None:
            text = read_text(script)
            statements = read_statements(text, file=script, as_json=json)
            apply_script(h, statements, text=text, file=script, as_json=json)
        options = RunOptions(
            folder, factorize=factorize, operator_order=operator_order, join_scheme=join_scheme
        )
        try:
            if item is not None:
                names = feeds or feed_names(h.catalog.definitions())
                attributes = read_item(item)
                explained = [h.explain_item(feed, attributes, source=source) for feed in names]
            else:
                explained = _explained(h, feeds or [], program, factorized, options, run=run)
        except InvalidValue as error:
            raise typer.BadParameter(str(error)) from None
    for explanation in explained:
        _print(explanation, as_json=json)


def _explained(
    h: Headgate,
    feeds: list[str],
    program: str,
    factorized: str,
    options: RunOptions,
    *,
    run: bool,
) -> list[Explained]:
    if run:
        return [h.explain_run(options)]
    if program:
        return [h.explain_program(program)]
    if factorized:
        return [h.explain_factorized(factorized, method=options.factorize)]
    return [h.explain(feed) for feed in feeds] or [h.explain()]


def _print(explained: Explained, *, as_json: bool) -> None:
    if as_json:
        print_json(explained.data)
    else:
        print_text(explained.text)


def read_item(file: Path) -> Mapping[str, object]:
    """The item in a file: a JSON object with its attributes."""
    try:
        item = json_module.loads(read_text(file))
    except (json_module.JSONDecodeError, RecursionError) as reason:
        raise typer.BadParameter(f"{file} is no JSON: {reason}") from None
    if not isinstance(item, dict):
        raise typer.BadParameter(f"{file} is no JSON object with the attributes of an item")
    return item
