"""`headgate backtest`: evaluate a feed over the stored items, before it is created."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.api.arguments import instant_of
from headgate.api.headgate import open as open_headgate
from headgate.cli.items import print_row, row_json, warn_of_damaged_files, widest
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
from headgate.cli.output import (
    ago,
    print_json,
    print_line,
    print_table,
    rate_text,
    sparkline,
    stderr,
)
from headgate.model.errors import InvalidValue

if TYPE_CHECKING:
    from headgate.pipeline.jobs.backtest import Backtest, BacktestSourceCounts

SOURCES_SHOWN_MAX = 20


def backtest(
    statement: Annotated[
        str, typer.Argument(metavar="STATEMENT", help="'create feed …', or the name of a feed.")
    ],
    since: Since = "30d",
    at: Annotated[
        str, typer.Option(metavar="TIME", help="The feed as it was defined then: 7d, 2026-11-10.")
    ] = "",
    samples: Annotated[int, typer.Option(min=0, max=1_000, help="Items that are shown.")] = 5,
    master: JobMaster = "",
    local: Local = False,
    *,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Show which stored items a feed would have contained. Nothing is changed.

    Large stores are read by Spark, others in this process; the answer is the same.

    [bold]headgate backtest 'create feed All from (MuseNews | EventAnnounces)' --since 7d[/bold]
    """
    first = since_option(since)
    with (
        open_headgate(catalog, folder=existing_folder(folder, log), log=log_option(log)) as h,
        stderr.status("backtest …") as status,
    ):
        try:
            result = h.backtest(
                statement,
                at=instant_of(at or None, datetime.now(UTC)),
                since=first,
                samples=samples,
                master=master or None,
                local=local,
                note=lambda text: status.update(f"{text} …"),
            )
        except InvalidValue as error:
            raise typer.BadParameter(str(error)) from None
        warn_of_damaged_files(h)
    if json:
        print_json({**_as_json(result), "ran": result.ran})
    else:
        _print(result)


def _print(result: Backtest) -> None:
    print_line(f"{result.feed}, {ago(result.since, result.until)}, {result.ran}")
    if not result.items:
        print_line("-- there are no items of its sources")
        return
    counted, bound = result.matched, ""
    if result.only_leaves:
        print_line(f"only what its leaves let through is counted: {result.only_leaves}")
        counted, bound = result.matched + result.further, "at most "
    rate = rate_text(counted / result.span_s) if counted else "0/day"
    share = f"{counted / result.items:.2%}"
    print_line(f"{bound}{counted:,} of {result.items:,} items of its sources, {share}; {rate}")
    days = _by_day(result)
    print_line("")
    print_line(sparkline(list(days.values())), style="bold")
    print_table(["items", "day"], [[f"{n:,}", day] for day, n in days.items()])
    _print_sources(result)
    if result.samples:
        print_line("")
        width = widest(result.samples)
        for row in result.samples:
            print_row(row, source_width=width)


def _print_sources(result: Backtest) -> None:
    rows = [
        [f"{_counted(result, each):,}", source, f"{each.items.total():,}", _share(result, each)]
        for source, each in result.sources.items()
    ]
    print_line("")
    print_table(["items", "source", "of", "share"], rows[:SOURCES_SHOWN_MAX])
    if len(rows) > SOURCES_SHOWN_MAX:
        print_line(f"-- and {len(rows) - SOURCES_SHOWN_MAX:,} more sources; --json has all")


def _by_day(result: Backtest) -> Mapping[str, int]:
    counts = result.by_day
    if result.only_leaves:
        for source in result.sources.values():
            for day, number in source.further.items():
                counts[day] = counts.get(day, 0) + number
    return {day.isoformat(): number for day, number in counts.items()}


def _counted(result: Backtest, source: BacktestSourceCounts) -> int:
    return source.matched.total() + (source.further.total() if result.only_leaves else 0)


def _share(result: Backtest, source: BacktestSourceCounts) -> str:
    items = source.items.total()
    return f"{_counted(result, source) / items:.2%}" if items else "-"


def _as_json(result: Backtest) -> dict[str, object]:
    return {
        "feed": result.feed,
        "since": result.since,
        "until": result.until,
        "items": result.items,
        "matched": result.matched,
        "further": result.further,
        "only_leaves": result.only_leaves or None,
        "rate_per_s": result.matched / result.span_s if result.span_s > 0 else None,
        "by_day": {day.isoformat(): number for day, number in result.by_day.items()},
        "sources": {
            source: {
                "items": each.items.total(),
                "matched": each.matched.total(),
                "further": each.further.total(),
            }
            for source, each in result.sources.items()
        },
        "samples": [row_json(row) for row in result.samples],
        "damaged": {str(path): why for path, why in result.damaged.items()},
    }
