"""`headgate backtest`: what would a feed have had?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import CatalogDefinitions
from headgate.cli.options import CATALOG_DEFAULT, FOLDER_DEFAULT, AsJson, CatalogUrl, RunFolder
from headgate.cli.output import print_json, print_line, print_table, stderr
from headgate.cli.sparkline import sparkline
from headgate.cli.stats import rate_text
from headgate.cli.stored import (
    Since,
    ago,
    folder_of,
    print_row,
    row_json,
    since_moment,
    tell_damaged,
    widest,
)
from headgate.language import parse
from headgate.language.statements import CreateFeed, Statement
from headgate.model.errors import LanguageError
from headgate.pipeline.jobs.backtest import Backtest, Backtester, BacktestSourceCounts
from headgate.pipeline.jobs.backtest_query import BacktestQuery, backtest_query
from headgate.pipeline.jobs.job import choose_runner

Master = Annotated[
    str, typer.Option(metavar="URL", help="Run it on Spark there: local[*], spark://host:7077, …")
]
Local = Annotated[bool, typer.Option("--local", help="Run it in this process, without Spark.")]
SOURCES_SHOWN_MAX = 20


def backtest(
    statement: Annotated[
        str, typer.Argument(metavar="STATEMENT", help="'create feed …', or the name of a feed.")
    ],
    since: Since = "30d",
    samples: Annotated[int, typer.Option(min=0, max=1_000, help="Items that are shown.")] = 5,
    master: Master = "",
    local: Local = False,
    *,
    folder: RunFolder = FOLDER_DEFAULT,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Show what a feed would have had of what is in the store. Nothing is changed.

    Large stores are read by Spark, others in this process; the answer is the same.

    [bold]headgate backtest 'create feed All from (MuseNews | EventAnnounces)' --since 7d[/bold]
    """
    run_folder, now = folder_of(folder), datetime.now(UTC)
    moment = since_moment(since, now)
    assert moment is not None
    with Catalog.open(catalog) as opened, opened.looking_up() as definitions:
        question = _question(statement, definitions)
    prepared = Backtester.prepare(question, run_folder, since=moment, until=now, samples=samples)
    runner = choose_runner(prepared.files, master=master or None, local=local)
    with stderr.status(f"{question.feed} …") as status:
        found = prepared.run(
            runner, run_folder, lambda text: status.update(f"{question.feed}: {text} …")
        )
    tell_damaged(found.damaged)
    if json:
        print_json({**_as_json(found), "ran": runner.name})
    else:
        _print(found, runner.name)


def _question(text: str, definitions: CatalogDefinitions) -> BacktestQuery:
    if text.isidentifier() and isinstance(registered := definitions.get(text), CreateFeed):
        return backtest_query(registered, definitions)
    try:
        feed: Statement = parse(text)
        if not isinstance(feed, CreateFeed):
            raise typer.BadParameter("a backtest is of a feed: 'create feed …'")
        return backtest_query(feed, definitions)
    except LanguageError as error:
        raise error.within(text) from None


def _print(found: Backtest, ran: str) -> None:
    print_line(f"{found.feed}, {ago(found.since, found.until)}, {ran}")
    if not found.items:
        print_line("-- nothing has come from its sources")
        return
    counted, most = found.matched, ""
    if found.only_leaves:
        print_line(f"only what its leaves let through is counted: {found.only_leaves}")
        counted, most = found.matched + found.further, "at most "
    rate = rate_text(counted / found.span_s) if counted else "0/day"
    share = f"{counted / found.items:.2%}"
    print_line(f"{most}{counted:,} of {found.items:,} items of its sources, {share}; {rate}")
    days = _by_day(found)
    print_line("")
    print_line(sparkline(list(days.values())), style="bold")
    print_table(["items", "day"], [[f"{n:,}", day] for day, n in days.items()])
    _print_sources(found)
    if found.samples:
        print_line("")
        width = widest(found.samples)
        for row in found.samples:
            print_row(row, source_width=width)


def _print_sources(found: Backtest) -> None:
    rows = [
        [f"{_counted(found, each):,}", source, f"{each.items.total():,}", _share(found, each)]
        for source, each in found.sources.items()
    ]
    print_line("")
    print_table(["items", "source", "of", "share"], rows[:SOURCES_SHOWN_MAX])
    if len(rows) > SOURCES_SHOWN_MAX:
        print_line(f"-- and {len(rows) - SOURCES_SHOWN_MAX:,} more sources; --json has all")


def _by_day(found: Backtest) -> Mapping[str, int]:
    counts = found.by_day
    if found.only_leaves:
        for each in found.sources.values():
            for day, number in each.further.items():
                counts[day] = counts.get(day, 0) + number
    return {day.isoformat(): number for day, number in counts.items()}


def _counted(found: Backtest, source: BacktestSourceCounts) -> int:
    return source.matched.total() + (source.further.total() if found.only_leaves else 0)


def _share(found: Backtest, source: BacktestSourceCounts) -> str:
    items = source.items.total()
    return f"{_counted(found, source) / items:.2%}" if items else "-"


def _as_json(found: Backtest) -> dict[str, object]:
    return {
        "feed": found.feed,
        "since": found.since,
        "until": found.until,
        "items": found.items,
        "matched": found.matched,
        "further": found.further,
        "only_leaves": found.only_leaves or None,
        "rate_per_s": found.matched / found.span_s if found.span_s > 0 else None,
        "by_day": {day.isoformat(): number for day, number in found.by_day.items()},
        "sources": {
            source: {
                "items": each.items.total(),
                "matched": each.matched.total(),
                "further": each.further.total(),
            }
            for source, each in found.sources.items()
        },
        "samples": [row_json(row) for row in found.samples],
        "damaged": {str(path): why for path, why in found.damaged.items()},
    }
