"""`headgate stats`: what came, what feeds had of it, and what was delivered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.catalog.catalog import Catalog
from headgate.cli.options import CATALOG_DEFAULT, FOLDER_DEFAULT, AsJson, CatalogUrl, RunFolder
from headgate.cli.output import print_json, print_line, print_table, stderr
from headgate.cli.sparkline import sparkline
from headgate.cli.stored import Since, folder_of, since_moment, tell_damaged
from headgate.deliver.item_deliveries import DeadLetters, count_deliveries, dead_letters
from headgate.store.read_store import StoreReader
from headgate.store.stats import Stats
from headgate.store.stats import stats as count_store

DAYS_SHOWN_MAX = 60
ERROR_SHOWN_MAX = 60
_UNITS = ("B", "kB", "MB", "GB", "TB")


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
    opened_folder = folder_of(folder)
    moment = since_moment(since, datetime.now(UTC))
    with StoreReader(opened_folder) as reader:
        with stderr.status("reading the store …") as status:
            found = count_store(reader, since=moment, note=lambda text: status.update(f"{text} …"))
        tell_damaged(reader.damaged)
    outbox = {str(state): n for state, n in count_deliveries(opened_folder.outbox).items()}
    dead = dead_letters(opened_folder.outbox, limit=top)
    with Catalog.open(catalog) as opened:
        shown = list(found.feeds) if json else list(found.feeds)[:top]
        names = opened.names_of_numbers(shown)
    if json:
        print_json(_as_json(found, names, outbox, dead))
        return
    if not found.sources:
        print_line(f"-- nothing has come since {since}")
    else:
        _print_summary(found)
        _print_sources(found, top)
        _print_feeds(found, names, top)
    _print_outbox(outbox, dead)


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


def _print_feeds(found: Stats, names: dict[int, str], top: int) -> None:
    if not found.feeds:
        return
    rows = [
        [f"{items:,}", names.get(number, f"(dropped: {number})"), f"{items / found.items:.2%}"]
        for number, items in list(found.feeds.items())[:top]
    ]
    print_line("")
    print_table(["items", "feed", "of all"], rows)
    _print_rest(len(found.feeds) - top, "feed")


def _print_outbox(outbox: dict[str, int], dead: list[DeadLetters]) -> None:
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


def rate_text(rate_per_s: float | None) -> str:
    """In the unit in which there is at least one.

    >>> rate_text(2.5), rate_text(0.01), rate_text(None)
    ('2.5/s', '36/h', 'at once')
    """
    if rate_per_s is None:
        return "at once"
    for unit, seconds in (("s", 1), ("min", 60), ("h", 3_600)):
        if rate_per_s * seconds >= 1:
            return f"{rate_per_s * seconds:,.3g}/{unit}"
    return f"{rate_per_s * 86_400:,.3g}/day"


def size_text(count: float) -> str:
    """
    >>> size_text(999), size_text(1_500_000)
    ('999 B', '1.5 MB')
    """
    unit = 0
    while count >= 1_000 and unit < len(_UNITS) - 1:
        count, unit = count / 1_000, unit + 1
    return f"{count:.3g} {_UNITS[unit]}"


def _as_json(
    found: Stats, names: dict[int, str], outbox: dict[str, int], dead: list[DeadLetters]
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
