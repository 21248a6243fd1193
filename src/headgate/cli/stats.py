"""`headgate stats` and `headgate statistics`.

`stats` prints totals: items by source and day, matches by feed, deliveries by state. `statistics`
measures the rate of each source and the selectivity of each atom, and stores both in the catalog
for the optimisers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.api.headgate import open as open_headgate
from headgate.cli.items import warn_of_damaged_files
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
    size_text,
    sparkline,
    stderr,
)

if TYPE_CHECKING:
    from headgate.catalog.statistics import SourceStatistics
    from headgate.deliver.delivery_status import DeadLetters
    from headgate.store.stats import Stats

DAYS_SHOWN_MAX = 60
ERROR_SHOWN_MAX = 60


def stats(
    since: Since = "7d",
    top: Annotated[int, typer.Option(min=1, help="Sources and feeds that are shown.")] = 10,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    *,
    json: AsJson = False,
) -> None:
    """Show the items of each source and day, the matches of each feed, and the deliveries.

    [bold]headgate stats --since 30d[/bold]
    """
    first = since_option(since)
    with (
        open_headgate(catalog, folder=existing_folder(folder, log), log=log_option(log)) as h,
        stderr.status("reading the store …") as status,
    ):
        report = h.stats(first, top=top, note=lambda text: status.update(f"{text} …"))
        warn_of_damaged_files(h)
    stored, names = report.stored, report.feed_names
    if json:
        print_json(_as_json(stored, names, report.deliveries, report.dead_letters))
        return
    if not stored.sources:
        print_line(f"-- no items since {since}")
    else:
        _print_summary(stored)
        _print_sources(stored, top)
        _print_feeds(stored, names, top)
    _print_deliveries(report.deliveries, report.dead_letters)


def _print_summary(stored: Stats) -> None:
    days = stored.days
    print_line(
        f"{stored.items:,} items from {days[0]} to {days[-1]}"
        f" in {stored.files:,} files of {size_text(stored.bytes)}"
    )
    rate = stored.rate_per_s(stored.items)
    print_line(f"{rate_text(rate)}; " + _matches(stored))
    print_line("")


def _matches(stored: Stats) -> str:
    none = stored.unmatched / stored.items
    return f"an item is in {stored.matches / stored.items:,.2f} feeds; {none:.1%} are in none"


def _print_sources(stored: Stats, top: int) -> None:
    days = stored.days[-DAYS_SHOWN_MAX:]
    rows = [
        [
            f"{totals.items:,}",
            source,
            sparkline([totals.by_day[day] for day in days]),
            rate_text(stored.rate_per_s(totals.items)),
            f"{totals.unmatched / totals.items:.1%}",
        ]
        for source, totals in list(stored.sources.items())[:top]
    ]
    print_table(["items", "source", "by day", "rate", "in no feed"], rows)
    _print_rest(len(stored.sources) - top, "source")


def _print_feeds(stored: Stats, names: Mapping[int, str], top: int) -> None:
    if not stored.feeds:
        return
    rows = [
        [f"{items:,}", names.get(number, f"(dropped: {number})"), f"{items / stored.items:.2%}"]
        for number, items in list(stored.feeds.items())[:top]
    ]
    print_line("")
    print_table(["items", "feed", "of all"], rows)
    _print_rest(len(stored.feeds) - top, "feed")


def _print_deliveries(deliveries: Mapping[str, int], dead: Sequence[DeadLetters]) -> None:
    print_line("")
    figures = [f"{count:,} {state}" for state, count in deliveries.items()]
    print_line("deliveries: " + ", ".join(figures))
    if dead:
        rows = [
            [f"{letters.count:,}", str(letters.subscription), letters.error[:ERROR_SHOWN_MAX]]
            for letters in dead
        ]
        print_line("")
        print_table(["dead", "subscription", "last error"], rows)


def _print_rest(count: int, noun: str) -> None:
    if count > 0:
        print_line(f"-- and {count:,} more {noun}{'' if count == 1 else 's'}; --top shows more")


def _as_json(
    stored: Stats,
    names: Mapping[int, str],
    deliveries: Mapping[str, int],
    dead: Sequence[DeadLetters],
) -> dict[str, object]:
    return {
        "since": stored.since,
        "items": stored.items,
        "unmatched": stored.unmatched,
        "matches": stored.matches,
        "rate_per_s": stored.rate_per_s(stored.items),
        "files": stored.files,
        "bytes": stored.bytes,
        "sources": [
            {
                "source": source,
                "items": totals.items,
                "unmatched": totals.unmatched,
                "matches": totals.matches,
                "first": totals.first,
                "last": totals.last,
                "rate_per_s": stored.rate_per_s(totals.items),
                "by_day": {day.isoformat(): n for day, n in sorted(totals.by_day.items())},
            }
            for source, totals in stored.sources.items()
        ],
        "feeds": [
            {"feed": names.get(number), "number": number, "items": items}
            for number, items in stored.feeds.items()
        ],
        "deliveries": deliveries,
        "dead_letters": [
            {"subscription": letters.subscription, "count": letters.count, "error": letters.error}
            for letters in dead
        ],
    }


def statistics(
    since: Since = "30d",
    top: Annotated[int, typer.Option(min=1, help="Sources and atoms that are shown.")] = 20,
    master: JobMaster = "",
    local: Local = False,
    *,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Measure the rate of each source, and how often each atom of each feed is true.

    The result is stored in the catalog for the optimisers.

    [bold]headgate statistics --since 7d[/bold]
    """
    first, now = since_option(since), datetime.now(UTC)
    assert first is not None, "--since has a default"
    with (
        open_headgate(catalog, folder=existing_folder(folder, log), log=log_option(log)) as h,
        stderr.status("planning all feeds …") as status,
    ):
        result = h.measure(
            since=first,
            master=master or None,
            local=local,
            note=lambda text: status.update(f"{text} …"),
        )
        warn_of_damaged_files(h)
    for feed, reason in result.refused.items():
        stderr.print(f"{feed} has no plan: {reason}")
    if json:
        sources = [_measured_json(measured) for measured in result.statistics]
        print_json({"ran": result.ran, "sources": sources})
        return
    print_line(f"{result.kept:,} sources over {ago(first, now)}, {result.ran}")
    if result.statistics:
        _print_measured(result.statistics, top)
        _print_atoms(result.statistics, top)
    else:
        print_line("-- no items")


def _print_measured(measured: Sequence[SourceStatistics], top: int) -> None:
    ordered = sorted(measured, key=lambda row: (-row.items, row.source))
    rows = [
        [f"{row.items:,}", row.source, rate_text(row.rate_per_s), f"{len(row.matched):,}"]
        for row in ordered[:top]
    ]
    print_line("")
    print_table(["items", "source", "rate", "atoms"], rows)
    _print_more(len(ordered) - top, "source")


def _print_atoms(measured: Sequence[SourceStatistics], top: int) -> None:
    """The atoms by selectivity, the least selective first."""
    atoms = [
        (matched / row.items, row.source, atom, matched)
        for row in measured
        for atom, matched in row.matched.items()
    ]
    atoms.sort(key=lambda atom: (-atom[0], atom[1:]))
    if atoms:
        rows = [
            [f"{matched:,}", f"{share:.3%}", source, atom]
            for share, source, atom, matched in atoms[:top]
        ]
        print_line("")
        print_table(["true", "of all", "source", "atom"], rows)
        _print_more(len(atoms) - top, "atom")


def _print_more(count: int, noun: str) -> None:
    if count > 0:
        print_line(f"-- and {count:,} more {noun}{'' if count == 1 else 's'}; --json has all")


def _measured_json(measured: SourceStatistics) -> dict[str, object]:
    return {
        "source": measured.source,
        "items": measured.items,
        "span_s": measured.span_s,
        "rate_per_s": measured.rate_per_s,
        "atoms": measured.matched,
    }
