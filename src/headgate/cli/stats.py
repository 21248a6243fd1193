"""`headgate stats` and `statistics`: what came and was delivered; what the optimisers learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.api.headgate import open as open_headgate
from headgate.cli.items import tell_damaged
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
    size_text,
    sparkline,
    stderr,
)

if TYPE_CHECKING:
    from headgate.catalog.statistics import SourceStatistics
    from headgate.deliver.item_deliveries import DeadLetters
    from headgate.store.stats import Stats

DAYS_SHOWN_MAX = 60
ERROR_SHOWN_MAX = 60


def stats(
    since: Since = "7d",
    top: Annotated[int, typer.Option(min=1, help="Sources and feeds that are shown.")] = 10,
    folder: RunFolder = FOLDER_DEFAULT,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    *,
    json: AsJson = False,
) -> None:
    """Show what came from each source and day, what feeds had of it, and what was delivered.

    [bold]headgate stats --since 30d[/bold]
    """
    first = since_option(since)
    with (
        open_headgate(catalog, folder=existing_folder(folder)) as h,
        stderr.status("reading the store …") as status,
    ):
        found = h.stats(first, top=top, note=lambda text: status.update(f"{text} …"))
        tell_damaged(h)
    stored, names = found.stored, found.feed_names
    if json:
        print_json(_as_json(stored, names, found.deliveries, found.dead_letters))
        return
    if not stored.sources:
        print_line(f"-- nothing has come since {since}")
    else:
        _print_summary(stored)
        _print_sources(stored, top)
        _print_feeds(stored, names, top)
    _print_outbox(found.deliveries, found.dead_letters)


def _print_summary(found: Stats) -> None:
    days = found.days
    print_line(
        f"{found.items:,} items from {days[0]} to {days[-1]}"
        f" in {found.files:,} files of {size_text(found.bytes)}"
    )
    rate = found.rate_per_s(found.items)
    print_line(f"{rate_text(rate)}; " + _matches(found))
    print_line("")


def _matches(found: Stats) -> str:
    none = found.unmatched / found.items
    return f"an item is in {found.matches / found.items:,.2f} feeds; {none:.1%} are in none"


def _print_sources(found: Stats, top: int) -> None:
    days = found.days[-DAYS_SHOWN_MAX:]
    rows = [
        [
            f"{each.items:,}",
            source,
            sparkline([each.by_day[day] for day in days]),
            rate_text(found.rate_per_s(each.items)),
            f"{each.unmatched / each.items:.1%}",
        ]
        for source, each in list(found.sources.items())[:top]
    ]
    print_table(["items", "source", "by day", "rate", "in no feed"], rows)
    _print_rest(len(found.sources) - top, "source")


def _print_feeds(found: Stats, names: Mapping[int, str], top: int) -> None:
    if not found.feeds:
        return
    rows = [
        [f"{items:,}", names.get(number, f"(dropped: {number})"), f"{items / found.items:.2%}"]
        for number, items in list(found.feeds.items())[:top]
    ]
    print_line("")
    print_table(["items", "feed", "of all"], rows)
    _print_rest(len(found.feeds) - top, "feed")


def _print_outbox(outbox: Mapping[str, int], dead: Sequence[DeadLetters]) -> None:
    print_line("")
    print_line("outbox: " + ", ".join(f"{count:,} {state}" for state, count in outbox.items()))
    if dead:
        rows = [
            [f"{each.count:,}", str(each.subscription), each.error[:ERROR_SHOWN_MAX]]
            for each in dead
        ]
        print_line("")
        print_table(["dead", "subscription", "last error"], rows)


def _print_rest(count: int, noun: str) -> None:
    if count > 0:
        print_line(f"-- and {count:,} more {noun}{'' if count == 1 else 's'}; --top shows more")


def _as_json(
    found: Stats, names: Mapping[int, str], outbox: Mapping[str, int], dead: Sequence[DeadLetters]
) -> dict[str, object]:
    return {
        "since": found.since,
        "items": found.items,
        "unmatched": found.unmatched,
        "matches": found.matches,
        "rate_per_s": found.rate_per_s(found.items),
        "files": found.files,
        "bytes": found.bytes,
        "sources": [
            {
                "source": source,
                "items": each.items,
                "unmatched": each.unmatched,
                "matches": each.matches,
                "first": each.first,
                "last": each.last,
                "rate_per_s": found.rate_per_s(each.items),
                "by_day": {day.isoformat(): n for day, n in sorted(each.by_day.items())},
            }
            for source, each in found.sources.items()
        ],
        "feeds": [
            {"feed": names.get(number), "number": number, "items": items}
            for number, items in found.feeds.items()
        ],
        "outbox": outbox,
        "dead_letters": [
            {"subscription": each.subscription, "count": each.count, "error": each.error}
            for each in dead
        ],
    }


def statistics(
    since: Since = "30d",
    top: Annotated[int, typer.Option(min=1, help="Sources and atoms that are shown.")] = 20,
    master: JobMaster = "",
    local: Local = False,
    *,
    folder: RunFolder = FOLDER_DEFAULT,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Measure how much comes from each source, and how often each atom of each feed is true.

    It is kept in the catalog for the optimisers.

    [bold]headgate statistics --since 7d[/bold]
    """
    first, now = since_option(since), datetime.now(UTC)
    assert first is not None, "it has a default"
    with (
        open_headgate(catalog, folder=existing_folder(folder)) as h,
        stderr.status("planning all feeds …") as status,
    ):
        found = h.measure(
            since=first,
            master=master or None,
            local=local,
            note=lambda text: status.update(f"{text} …"),
        )
        tell_damaged(h)
    for feed, reason in found.refused.items():
        stderr.print(f"{feed} has no plan: {reason}")
    if json:
        sources = [_measured_json(each) for each in found.statistics]
        print_json({"ran": found.ran, "sources": sources})
        return
    print_line(f"{found.kept:,} sources over {ago(first, now)}, {found.ran}")
    if found.statistics:
        _print_measured(found.statistics, top)
        _print_atoms(found.statistics, top)
    else:
        print_line("-- nothing has come")


def _print_measured(measured: Sequence[SourceStatistics], top: int) -> None:
    ordered = sorted(measured, key=lambda each: (-each.items, each.source))
    rows = [
        [f"{each.items:,}", each.source, rate_text(each.rate_per_s), f"{len(each.matched):,}"]
        for each in ordered[:top]
    ]
    print_line("")
    print_table(["items", "source", "rate", "atoms"], rows)
    _print_more(len(ordered) - top, "source")


def _print_atoms(measured: Sequence[SourceStatistics], top: int) -> None:
    """Those that are true most often first: they let the most through to what comes behind them."""
    atoms = [
        (matched / each.items, each.source, atom, matched)
        for each in measured
        for atom, matched in each.matched.items()
    ]
    atoms.sort(key=lambda each: (-each[0], each[1:]))
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


def _measured_json(each: SourceStatistics) -> dict[str, object]:
    return {
        "source": each.source,
        "items": each.items,
        "span_s": each.span_s,
        "rate_per_s": each.rate_per_s,
        "atoms": each.matched,
    }
