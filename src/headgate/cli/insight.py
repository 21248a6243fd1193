"""`headgate suggest`, `dependents`, `history`, `values`, `compare`: what is there already, what is
behind a definition, what it was before, what a source has, and whether two feeds are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.api.arguments import instant_of
from headgate.api.headgate import open as open_headgate
from headgate.cli.items import row_json, warn_of_damaged_files
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FOLDER_DEFAULT,
    AsJson,
    CatalogUrl,
    JobMaster,
    Local,
    LogUrl,
    RunFolder,
    Since,
    existing_folder,
    log_option,
    since_option,
)
from headgate.cli.output import print_json, print_line, print_table, print_text, rate_text, stderr
from headgate.model.errors import UnknownName

if TYPE_CHECKING:
    from headgate.api.value_rates import ValueRate
    from headgate.pipeline.jobs.compare import FeedComparison

DAY_S = 86_400
NamedDefinition = Annotated[str, typer.Argument(metavar="NAME", help="A source or feed.")]
At = Annotated[
    str, typer.Option(metavar="TIME", help="The feed as it was defined then: 7d, 2026-11-10.")
]


def suggest(
    statement: Annotated[str, typer.Argument(metavar="STATEMENT", help="'create feed …'.")],
    *,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Show feeds that have the items of a new feed already, or more, or fewer. Nothing is changed.

    [bold]headgate suggest "create feed X from News where title contains 'rock'"[/bold]
    """
    with open_headgate(catalog) as h:
        found = h.suggest(statement)
    if json:
        print_json(
            {
                "feeds": [asdict(each) for each in found.feeds],
                "looked_at": found.looked_at,
                "candidates": found.candidates,
                "cpu_us": found.price.cpu_us,
                "added_us": found.added_us,
                "share_us": found.share_us,
                "parts": [{**asdict(each), "share_us": each.share_us} for each in found.parts],
            }
        )
    else:
        print_text(found.text())


def dependents(
    name: NamedDefinition, *, catalog: CatalogUrl = CATALOG_DEFAULT, json: AsJson = False
) -> None:
    """Show what is behind a source or feed: the feeds that read it, subscriptions, tenants."""
    with open_headgate(catalog) as h:
        found = h.dependents(name)
    if json:
        print_json(asdict(found))
        return
    print_line(
        f"{len(found.feeds):,} feeds and {found.subscriptions:,} subscriptions of "
        f"{len(found.tenants):,} tenants are behind {name}"
    )
    for label, names in (("tenant", found.tenants), ("feed", found.feeds)):
        for each in names:
            print_line(f"{label}  {each}")


def history(
    name: NamedDefinition, *, catalog: CatalogUrl = CATALOG_DEFAULT, json: AsJson = False
) -> None:
    """Show what a name stands for and has stood for in the last 90 days."""
    with open_headgate(catalog) as h:
        versions = h.history(name)
    if not versions:
        raise UnknownName(f"nothing is or was named '{name}'")
    if json:
        print_json([asdict(each) for each in versions])
        return
    for each in versions:
        until = "now" if each.dropped_at is None else f"{each.dropped_at:%Y-%m-%d %H:%M}"
        print_line(f"{each.created_at:%Y-%m-%d %H:%M} to {until}", style="bold")
        print_text(each.definition + "\n")


def values(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A source.")],
    attribute: Annotated[
        str, typer.Argument(metavar="[ATTRIBUTE]", help="One of its attributes.")
    ] = "",
    *,
    prefix: Annotated[str, typer.Option(help="Only what begins with it.")] = "",
    filter: Annotated[
        str, typer.Option(metavar="FILTER", help="How often this holds, part by part.")
    ] = "",
    limit: Annotated[int, typer.Option(min=1, max=1_000)] = 10,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Show the most frequent values and words of a source's newest items, and their rates.

    [bold]headgate values News title --prefix ro[/bold]

    [bold]headgate values Tickets --filter "price < 100 and destination = 'Rome'"[/bold]
    """
    with open_headgate(catalog, folder=existing_folder(folder, log), log=log_option(log)) as h:
        rates: dict[str, Sequence[ValueRate]] = {}
        if filter:
            rates[""] = h.condition_rates(source, filter)
        else:
            for each in h.value_rates(source, attribute, prefix=prefix, limit=limit):
                rates[f"{each.name} ({each.type})"] = [each.present, *each.values]
                if each.words:
                    rates[f"words of {each.name}"] = each.words
        warn_of_damaged_files(h)
    if json:
        print_json({title: [asdict(rate) for rate in of] for title, of in rates.items()})
        return
    for title, of in rates.items():
        if title:
            print_line(title, style="bold")
        _print_rates(of)


def _print_rates(rates: Sequence[ValueRate]) -> None:
    rows = [
        [
            f"{each.share:.1%}",
            "-" if each.per_day is None else rate_text(each.per_day / DAY_S),
            each.text,
        ]
        for each in rates
    ]
    print_table(["share", "rate", "value"], rows)


def compare(
    left: Annotated[str, typer.Argument(metavar="LEFT", help="'create feed …', or a feed.")],
    right: Annotated[str, typer.Argument(metavar="RIGHT", help="'create feed …', or a feed.")],
    *,
    left_at: At = "",
    right_at: At = "",
    since: Since = "30d",
    master: JobMaster = "",
    local: Local = False,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Show whether two feeds would have had the same stored items, or the first that differs.

    [bold]headgate compare Rock "create feed X from News where title contains 'rocks'"[/bold]

    [bold]headgate compare Rock Rock --right-at 7d[/bold]
    """
    now = datetime.now(UTC)
    with (
        open_headgate(catalog, folder=existing_folder(folder, log), log=log_option(log)) as h,
        stderr.status("comparing …") as status,
    ):
        found = h.compare(
            left,
            right,
            left_at=instant_of(left_at or None, now),
            right_at=instant_of(right_at or None, now),
            since=since_option(since),
            master=master or None,
            local=local,
            note=lambda text: status.update(f"{text} …"),
        )
        warn_of_damaged_files(h)
    if json:
        print_json(
            {
                "equal": None if found.unknown else found.is_equal,
                "unknown": found.unknown or None,
                "left": found.left.matched,
                "right": found.right.matched,
                "only_left": found.only_left,
                "only_right": found.only_right,
                "first": None if found.first is None else row_json(found.first),
                "first_is_in": "left" if found.is_first_left else "right",
            }
        )
    else:
        _print_comparison(found)


def _print_comparison(found: FeedComparison) -> None:
    if found.unknown:
        print_line(f"not known: {found.unknown}")
        return
    if found.is_equal:
        print_line(f"equal: both have the same {found.left.matched:,} items")
        return
    print_line(f"left: {found.left.matched:,} items, {found.only_left:,} that right has not")
    print_line(f"right: {found.right.matched:,} items, {found.only_right:,} that left has not")
    if found.first is not None:
        side = "left" if found.is_first_left else "right"
        print_line(f"the first that differs is in {side}: {found.first.source} {found.first.id}")
