"""The screen, log line and summary of a run; nothing in them can harm a terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO

import pyarrow as pa
from rich.console import Console

from headgate.acquire.inbox_tables import BrokenFeed
from headgate.cli.run_display import ConsoleLines, line, screen, summary
from headgate.deliver.delivery_status import DeliveryCounts
from headgate.operators.statistics import CallEstimate
from headgate.pipeline.latest_matches import LatestMatch
from headgate.pipeline.operator_stage import OperatorStatus
from headgate.pipeline.run_context import Meters
from headgate.pipeline.status import Status
from headgate.store.log_items import LoggedItem

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOSTILE = "\x1b[2J[bold red]Muse[/] live\x07"


def item(id_: str, source: str, attributes: dict[str, object]) -> LoggedItem:
    return LoggedItem(0, 0, source, id_, NOON, attributes, [], pa.RecordBatch.from_pydict({}))


def status(**changes: object) -> Status:
    meters = Meters()
    meters.add_batch([("MuseNews", 12), ("Tickets", 3)], seconds=0.08)
    meters.add(matched=7, matches=9)
    values = {
        "tally": meters.tally(),
        "sources": 2,
        "feeds": 3,
        "catalog_version": 5,
        "deliveries": DeliveryCounts({"file": 5, "mail": 3}, 4, 2, 3, 0, 1, 17),
        "behind": 6,
        "rejected": {"Tickets": 4},
        "broken": (
            BrokenFeed("MuseNews", "http://muse.mu", f"it is gone {HOSTILE}", 3, NOON, NOON),
        ),
        "refused": {"Mobs": "operator 'mobs' is not allowed"},
        "operators": {"near": OperatorStatus(CallEstimate(3e-6, 0.25, 1_234))},
        "errors": {"files-1f": "the disk is full"},
        "latest": (
            LatestMatch("Rock", item("1", "MuseNews", {"title": HOSTILE})),
            LatestMatch("Trips", item("2", "Tickets", {"price": 150})),
        ),
    }
    return Status(**{**values, **changes})


def shown(status: Status, console: tuple[str, ...] = ()) -> str:
    out = StringIO()
    Console(file=out, width=140, no_color=True, markup=False).print(
        screen(status, uptime_s=61.0, console=console)
    )
    return out.getvalue()


def test_the_screen_shows_all_sections() -> None:
    text = shown(status(), ("a line of the console",))
    for part in ("61 s", "15", "MuseNews", "Tickets", "Rock", "Trips", "price 150", "80 ms"):
        assert part in text
    for part in ("near", "1,234", "3.0", "25.0%"):
        assert part in text
    for part in ("it is gone", "is not allowed", "the disk is full", "a line of the"):
        assert part in text


def test_no_control_character_and_no_markup_comes_through() -> None:
    text = shown(status(), (HOSTILE,))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold red]Muse" in text


def test_long_lists_are_cut() -> None:
    meters = Meters()
    meters.add_batch(((f"S{n}", n) for n in range(50)), seconds=0.1)
    refused = {f"F{n}": "why" for n in range(50)}
    text = shown(status(tally=meters.tally(), refused=refused, rejected={}))
    assert "and 38 more" in text
    assert len(text.splitlines()) < 45


def test_line_and_summary() -> None:
    found = status()
    assert "15 items" in line(found, uptime_s=9.0)
    assert "6 behind" in line(found, uptime_s=9.0)
    text = "\n".join(summary(found, uptime_s=60.0))
    assert "8 deliveries made, 3 subscriptions behind, 1 dead letters" in text
    assert "cannot run: Mobs" in text
    assert "rejected: 4 of Tickets (see 'headgate rejected Tickets')" in text


def test_console_lines_are_shown_when_complete() -> None:
    lines = ConsoleLines()
    lines.write("one\ntw")
    assert list(lines.lines) == ["one"]
    lines.write("o\n")
    assert list(lines.lines) == ["one", "two"]
