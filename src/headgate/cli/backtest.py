"""`headgate backtest`: what would a feed have had?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.api.headgate import open as open_headgate
from headgate.cli.items import print_row, row_json, warn_of_damaged_files, widest
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FOLDER_DEFAULT,
    AsJson,
    CatalogUrl,
    JobMaster,
    Local,
    RunFolder,
    Since,
    existing_folder,
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
    samples: Annotated[int, typer.Option(min=0, max=1_000, help="Items that are shown.")] = 5,
    master: JobMaster = "",
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
    first = since_option(since)
    with (
        open_headgate(catalog, folder=existing_folder(folder)) as h,
        stderr.status("backtest …") as status,
    ):
        try:
            found = h.backtest(
                statement,
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
        print_json({**_as_json(found), "ran": found.ran})
    else:
        _print(found)


def _print(found: Backtest) -> None:
    print_line(f"{found.feed}, {ago(found.since, found.until)}, {found.ran}")
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
