"""`headgate explain`: the plans of feeds, the program of a source, why an item is in a feed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from headgate.catalog.catalog import Catalog
from headgate.cli.applying import apply_script
from headgate.cli.explain_item import print_why, read_item
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FOLDER_DEFAULT,
    IN_MEMORY,
    AsJson,
    CatalogUrl,
    RunFolder,
)
from headgate.cli.output import print_text
from headgate.cli.read import read_statements, read_text
from headgate.language.statements import RegisterTable, Statement
from headgate.plan.algebra import NaturalJoin, Plan, Source, bottom_up
from headgate.plan.explain import explain as explain_plan
from headgate.plan.explain import explain_all
from headgate.plan.translate import feed_names
from headgate.store.data_folder import DataFolder


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
    measured = None
    if script is not None:
        definitions = _definitions_of(script, as_json=json)
    else:
        with Catalog.open(catalog) as opened:
            definitions = opened.definitions()
            measured = opened.statistics(factorized) if factorized else None
    if item is not None:
        found = read_item(item)
        for feed in feeds or feed_names(definitions):
            print_why(feed, found, source, definitions, as_json=json)
    elif run:
        # A late import: what runs needs Spark's, which no other explanation should wait for.
        from headgate.cli.explain_run import print_run  # noqa: PLC0415

        print_run(definitions, DataFolder(folder), as_json=json)
    elif program:
        from headgate.cli.explain_program import print_program  # noqa: PLC0415 - the same

        print_program(program, definitions, as_json=json)
    elif factorized:
        from headgate.cli.explain_factorized import print_factorized  # noqa: PLC0415 - the same

        print_factorized(factorized, definitions, measured, as_json=json)
    else:
        print_explanation(definitions, feeds or [], as_json=json)


def print_explanation(
    definitions: Mapping[str, Statement], feeds: Sequence[str], *, as_json: bool
) -> None:
    explained = [explain_plan(feed, definitions) for feed in feeds] or [explain_all(definitions)]
    for explanation in explained:
        if as_json:
            sys.stdout.write(explanation.json() + "\n")
        else:
            print_text(explanation.text())
            if feeds:
                _print_table_joins(explanation.after.values(), definitions)


def _print_table_joins(plans: Iterable[Plan], definitions: Mapping[str, Statement]) -> None:
    """How joins of tables would be served, if there are any."""
    for plan in plans:
        parts = list(bottom_up([plan]))
        if any(isinstance(each, NaturalJoin) for each in parts):
            read = {each.name: definitions[each.name] for each in parts if isinstance(each, Source)}
            tables = {n: table for n, table in read.items() if isinstance(table, RegisterTable)}
            # A late import: kernels, which other explanations should not wait for.
            from headgate.tables.explain import describe_join  # noqa: PLC0415

            lines = "".join(f"  {each}\n" for each in describe_join(plan, tables))
            print_text(f"joined by ranges\n{lines}")


def _definitions_of(script: Path, *, as_json: bool) -> Mapping[str, Statement]:
    text = read_text(script)
    statements = read_statements(text, file=script, as_json=as_json)
    with Catalog.open(IN_MEMORY) as opened:
        apply_script(opened, statements, text=text, file=script, as_json=as_json)
        return opened.definitions()
