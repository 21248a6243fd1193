"""What a run looks like: a screen that renews itself, or, without a terminal, a line now and then.

Everything from outside is printed as plain text: titles of feeds may hold anything.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headgate.deliver.entry import shown_value
from headgate.deliver.records import DeliveryState
from headgate.model.errors import printable
from headgate.model.items import Item
from headgate.pipeline.status import Status

LATEST_SHOWN = 12
SOURCES_SHOWN = 12
OPERATORS_SHOWN = 8
TROUBLES_SHOWN = 6
CONSOLE_LINES = 5
TITLE_WIDTH = 60


class ConsoleLines(io.StringIO):
    """What subscriptions with `output console` print while a screen is shown: the last lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=CONSOLE_LINES)
        self._begun = ""

    def write(self, text: str) -> int:
        *whole, self._begun = (self._begun + text).split("\n")
        self.lines.extend(whole)
        return len(text)


def screen(status: Status, *, uptime_s: float, console: Iterable[str] = ()) -> RenderableType:
    parts: list[RenderableType] = [_headline(status, uptime_s), Text(), _sources(status)]
    if any(each.learned.items for each in status.operators.values()):
        parts += [Text(), _operators(status)]
    if status.latest:
        parts += [Text(), _latest(status)]
    lines = [Text(printable(line), overflow="ellipsis", no_wrap=True) for line in console]
    if lines:
        parts += [Text(), Text("console", style="bold"), *lines]
    if troubles := _troubles(status):
        parts += [Text(), *troubles]
    return Group(*parts)


def line(status: Status, *, uptime_s: float) -> str:
    """One line for logs."""
    tally = status.tally
    return (
        f"{uptime_s:5.0f} s  {tally.items:,} items  {tally.items_per_s:,.1f}/s  "
        f"{tally.matched:,} matched  {tally.sent:,} delivered  {status.backlog:,} waiting  "
        f"p50 {tally.latency_p50_ms:.0f} ms  {len(status.broken)} broken feeds"
    )


def summary(status: Status, *, uptime_s: float) -> list[str]:
    """What is left to say at the end."""
    tally, outbox = status.tally, status.outbox
    return [
        f"ran for {uptime_s:.0f} s: {tally.items:,} items of {len(tally.by_source)} sources "
        f"in {tally.batches:,} batches (p50 {tally.latency_p50_ms:.0f} ms, "
        f"p99 {tally.latency_p99_ms:.0f} ms)",
        f"{tally.matched:,} items matched, {tally.matches:,} times in all; "
        f"{tally.joined:,} joined with others",
        f"{tally.sent:,} deliveries made, {status.backlog:,} wait, "
        f"{outbox[DeliveryState.DEAD]:,} dead",
        *(
            f"rejected: {count:,} of {name} (see 'headgate rejected {name}')"
            for name, count in status.rejected.items()
        ),
        *(f"broken: {each.name}: {each.error}" for each in status.broken),
        *(f"cannot run: {name}: {reason}" for name, reason in status.refused.items()),
        *(f"trouble: {name}: {reason}" for name, reason in status.errors.items()),
    ]


def _headline(status: Status, uptime_s: float) -> Table:
    tally = status.tally
    table = Table.grid(padding=(0, 3))
    figures = [
        ("running", f"{uptime_s:.0f} s"),
        ("items", f"{tally.items:,}"),
        ("in", f"{tally.items_per_s:,.1f}/s"),
        ("matched", f"{tally.matched:,}"),
        ("joined", f"{tally.joined:,}"),
        ("delivered", f"{tally.sent:,}"),
        ("waiting", f"{status.backlog:,}"),
        ("batch", f"{tally.latency_p50_ms:.0f} ms"),
        ("slowest", f"{tally.latency_p99_ms:.0f} ms"),
    ]
    table.add_row(*(Text(name, style="dim") for name, _ in figures))
    table.add_row(*(Text(value, style="bold") for _, value in figures))
    return table


def _sources(status: Status) -> Table:
    broken = {each.name for each in status.broken}
    table = Table.grid(padding=(0, 2))
    heads = [Text("sources", style="bold"), Text("items", style="dim")]
    table.add_row(*heads, Text("rejected" if status.rejected else "", style="dim"))
    items = dict.fromkeys(status.rejected, 0) | status.tally.by_source
    ordered = sorted(items.items(), key=lambda pair: -pair[1])
    for name, count in ordered[:SOURCES_SHOWN]:
        style = "red" if name in broken else ""
        rejected = status.rejected.get(name, 0)
        table.add_row(
            Text(name, style=style),
            Text(f"{count:,}", justify="right"),
            Text(f"{rejected:,}" if rejected else "", justify="right", style="yellow"),
        )
    more = len(ordered) - SOURCES_SHOWN
    if more > 0:
        table.add_row(Text(f"and {more:,} more", style="dim"))
    return table


def _operators(status: Status) -> Table:
    """Those that were asked, the costly ones first."""
    table = Table.grid(padding=(0, 2))
    heads = ("asked", "µs each", "true")
    table.add_row(Text("operators", style="bold"), *(Text(each, style="dim") for each in heads))
    asked = [(name, each.learned) for name, each in status.operators.items() if each.learned.items]
    asked.sort(key=lambda pair: -pair[1].cost_s * pair[1].items)
    for name, each in asked[:OPERATORS_SHOWN]:
        figures = (f"{each.items:,}", f"{1e6 * each.cost_s:,.1f}", f"{each.selectivity:.1%}")
        table.add_row(Text(name), *(Text(figure, justify="right") for figure in figures))
    return table


def _latest(status: Status) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row(Text("feeds", style="bold"))
    for found in list(status.latest)[-LATEST_SHOWN:]:
        table.add_row(
            Text(found.feed, style="green"),
            Text(found.item.source, style="dim"),
            Text(headline_of(found.item), overflow="ellipsis", no_wrap=True),
        )
    return table


def _troubles(status: Status) -> list[Text]:
    now = datetime.now(UTC)
    found = [
        f"broken feed {each.name}: {each.error} (again in {max((each.next_at - now).seconds, 0)} s)"
        for each in status.broken
    ]
    found += [f"cannot run {name}: {reason}" for name, reason in status.refused.items()]
    found += [f"{name}: {reason}" for name, reason in status.errors.items()]
    return [Text(printable(each), style="yellow") for each in _shortened(found)]


def _shortened(lines: Sequence[str]) -> list[str]:
    more = len(lines) - TROUBLES_SHOWN
    return [*lines[:TROUBLES_SHOWN], *([f"and {more:,} more"] if more > 0 else [])]


def headline_of(item: Item) -> str:
    """An item on one line: its title, or what it has."""
    title = item.attributes.get("title")
    if isinstance(title, str):
        return printable(title)[:TITLE_WIDTH]
    values = (f"{name} {shown_value(value)}" for name, value in item.attributes.items())
    return printable(", ".join(values))[:TITLE_WIDTH]
