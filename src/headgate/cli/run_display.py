"""How a run is shown: a live screen on a terminal, else a log line every few seconds and a
summary.

Titles of items, error messages and console lines come from outside. They are printed as plain text,
without markup and control characters.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headgate.model.errors import printable
from headgate.pipeline.status import Status

LATEST_SHOWN = 12
SOURCES_SHOWN = 12
OPERATORS_SHOWN = 8
PROBLEMS_SHOWN = 6
CONSOLE_LINES = 5
TITLE_WIDTH = 60


class ConsoleLines(io.StringIO):
    """A stream that keeps the last lines of subscriptions with `output console`, for the screen."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=CONSOLE_LINES)
        self._partial_line = ""

    def write(self, text: str) -> int:
        *complete_lines, self._partial_line = (self._partial_line + text).split("\n")
        self.lines.extend(complete_lines)
        return len(text)


def screen(
    status: Status, *, uptime_s: float, console: Iterable[str] = (), notice: str = ""
) -> RenderableType:
    """The live screen: totals, sources, operators, latest matches, console lines, problems."""
    parts: list[RenderableType] = [_headline(status, uptime_s), Text(), _sources(status)]
    if notice:
        parts = [Text(notice, style="bold"), Text(), *parts]
    if any(operator.learned.items for operator in status.operators.values()):
        parts += [Text(), _operators(status)]
    if status.latest:
        parts += [Text(), _latest(status)]
    lines = [Text(printable(line), overflow="ellipsis", no_wrap=True) for line in console]
    if lines:
        parts += [Text(), Text("console", style="bold"), *lines]
    if problems := _problems(status):
        parts += [Text(), *problems]
    return Group(*parts)


def line(status: Status, *, uptime_s: float) -> str:
    """The log line of a run without a terminal."""
    tally = status.tally
    return (
        f"{uptime_s:5.0f} s  {tally.items:,} items  {tally.items_per_s:,.1f}/s  "
        f"{tally.matched:,} matched  {status.deliveries.total:,} delivered  "
        f"{status.behind:,} behind  "
        f"p50 {tally.latency_p50_ms:.0f} ms  {len(status.broken)} broken feeds"
    )


def figures(status: Status, uptime_s: float) -> dict[str, object]:
    """The same as fields of a log record."""
    tally = status.tally
    return {
        "uptime_s": round(uptime_s),
        "items": tally.items,
        "items_per_s": tally.items_per_s,
        "matched": tally.matched,
        "delivered": status.deliveries.total,
        "behind": status.behind,
        "batch_p50_ms": round(tally.latency_p50_ms),
        "broken_feeds": len(status.broken),
        "problems": len(status.errors),
    }


def summary(status: Status, *, uptime_s: float) -> list[str]:
    """The lines that are printed when a run ends."""
    tally, deliveries = status.tally, status.deliveries
    return [
        f"ran for {uptime_s:.0f} s: {tally.items:,} items of {len(tally.by_source)} sources "
        f"in {tally.batches:,} batches (p50 {tally.latency_p50_ms:.0f} ms, "
        f"p99 {tally.latency_p99_ms:.0f} ms)",
        f"{tally.matched:,} items matched, {tally.matches:,} times in all; "
        f"{tally.joined:,} joined with others",
        f"{deliveries.total:,} deliveries made, {deliveries.lagging:,} subscriptions behind, "
        f"{deliveries.dead:,} dead letters",
        *(
            f"rejected: {count:,} of {name} (see 'headgate rejected {name}')"
            for name, count in status.rejected.items()
        ),
        *(f"broken: {feed.name}: {feed.error}" for feed in status.broken),
        *(f"cannot run: {name}: {reason}" for name, reason in status.refused.items()),
        *(f"problem: {name}: {reason}" for name, reason in status.errors.items()),
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
        ("delivered", f"{status.deliveries.total:,}"),
        ("behind", f"{status.behind:,}"),
        ("batch", f"{tally.latency_p50_ms:.0f} ms"),
        ("slowest", f"{tally.latency_p99_ms:.0f} ms"),
    ]
    table.add_row(*(Text(name, style="dim") for name, _ in figures))
    table.add_row(*(Text(value, style="bold") for _, value in figures))
    return table


def _sources(status: Status) -> Table:
    broken = {feed.name for feed in status.broken}
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
    hidden = len(ordered) - SOURCES_SHOWN
    if hidden > 0:
        table.add_row(Text(f"and {hidden:,} more", style="dim"))
    return table


def _operators(status: Status) -> Table:
    """Operators that were called, by total cost, the highest first."""
    table = Table.grid(padding=(0, 2))
    heads = ("calls", "µs each", "true")
    table.add_row(Text("operators", style="bold"), *(Text(head, style="dim") for head in heads))
    called = [
        (name, operator.learned)
        for name, operator in status.operators.items()
        if operator.learned.items
    ]
    called.sort(key=lambda pair: -pair[1].cost_s * pair[1].items)
    for name, estimate in called[:OPERATORS_SHOWN]:
        figures = (
            f"{estimate.items:,}",
            f"{1e6 * estimate.cost_s:,.1f}",
            f"{estimate.selectivity:.1%}",
        )
        table.add_row(Text(name), *(Text(figure, justify="right") for figure in figures))
    return table


def _latest(status: Status) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row(Text("feeds", style="bold"))
    for match in list(status.latest)[-LATEST_SHOWN:]:
        table.add_row(
            Text(match.feed, style="green"),
            Text(match.item.source, style="dim"),
            Text(headline_of(match.item.attributes), overflow="ellipsis", no_wrap=True),
        )
    return table


def _problems(status: Status) -> list[Text]:
    now = datetime.now(UTC)
    problems = [
        f"broken feed {feed.name}: {feed.error} (again in {max((feed.next_at - now).seconds, 0)} s)"
        for feed in status.broken
    ]
    problems += [f"cannot run {name}: {reason}" for name, reason in status.refused.items()]
    problems += [f"{name}: {reason}" for name, reason in status.errors.items()]
    return [Text(printable(problem), style="yellow") for problem in _shortened(problems)]


def _shortened(lines: Sequence[str]) -> list[str]:
    hidden = len(lines) - PROBLEMS_SHOWN
    return [*lines[:PROBLEMS_SHOWN], *([f"and {hidden:,} more"] if hidden > 0 else [])]


def headline_of(attributes: Mapping[str, object]) -> str:
    """An item on one line: its title, or its attributes if it has none."""
    title = attributes.get("title")
    if isinstance(title, str):
        return printable(title)[:TITLE_WIDTH]
    values = (f"{name} {value}" for name, value in attributes.items())
    return printable(", ".join(values))[:TITLE_WIDTH]
