"""`headgate status`: whether all is well with the run of a folder, on one screen.

The first line says it in a sentence. The exit code says it to programs: 0 all is well, 1 something
is wrong, 2 it cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from headgate.api.headgate import open as open_headgate
from headgate.catalog.database import sqlite_file
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FOLDER_DEFAULT,
    AsJson,
    CatalogUrl,
    LogUrl,
    RunFolder,
    existing_folder,
    log_option,
)
from headgate.cli.output import print_error, print_json, print_line, report_error, size_text
from headgate.model.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.api.operating import OperatingStatus
    from headgate.pipeline.folder_status import FolderStatus

WRONG, CANNOT_TELL = 1, 2
SHOWN_MAX = 10
REASON_LENGTH_MAX = 100


def status(
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    *,
    json: AsJson = False,
) -> None:
    """Show whether all is well: the run, its sources, feeds, deliveries and disks.

    Exit codes: 0 all is well, 1 something is wrong, 2 it cannot be told.

    [bold]headgate status --folder headgate-data[/bold]
    """
    file = sqlite_file(catalog)
    if file is not None and not file.exists():
        print_error(f"there is no catalog '{file}': --catalog names another")
        raise typer.Exit(CANNOT_TELL)
    try:
        with open_headgate(catalog, folder=existing_folder(folder, log), log=log_option(log)) as h:
            found = h.status()
    except HeadgateError as error:
        report_error(error, as_json=json)
        raise typer.Exit(CANNOT_TELL) from None
    if json:
        print_json(_as_json(found))
    else:
        _print(found)
    if found.is_well is not True:
        raise typer.Exit(WRONG if found.problems else CANNOT_TELL)


def _as_json(found: OperatingStatus) -> dict[str, object]:
    return {
        "ok": found.is_well,
        "sentence": found.sentence,
        "problems": [asdict(each) for each in found.problems],
        "run": str(found.folder.run_state),
        "registered": {
            "sources": found.sources,
            "feeds": found.feeds,
            "subscriptions": found.subscriptions,
        },
        **asdict(found.folder),
    }


def _print(found: OperatingStatus) -> None:
    print_line(found.sentence, style="bold green" if found.is_well else "bold red")
    for each in found.problems[1:]:
        print_line(f"also: {each.text}", style="yellow")
    print_line("")
    groups = {
        "run": _run(found.folder),
        "sources": _sources(found),
        "feeds": _feeds(found),
        "delivery": _delivery(found),
        "storage": _storage(found.folder),
    }
    for name, lines in groups.items():
        for number, line in enumerate(lines):
            print_line(f"{'' if number else name:<10}{line}")


def _run(status: FolderStatus) -> Iterator[str]:
    from headgate.api.operating import span_text  # noqa: PLC0415 - kernels

    beat, now_s = status.heartbeat, status.at_s
    if beat is None:
        yield "none yet"
        return
    if beat.ended_s is not None:
        took = span_text(beat.ended_s - beat.started_s)
        yield f"ended at {_instant(beat.ended_s)}, after {took} and {beat.items:,} items"
        return
    sign = f"last sign of life {span_text(now_s - beat.at_s)} ago"
    yield f"since {_instant(beat.started_s)}, process {beat.pid} on {beat.host}; {sign}"
    if beat.last_batch_s is not None:
        yield f"last batch {span_text(now_s - beat.last_batch_s)} ago; {beat.items:,} items in all"
    active = sum(beat.queries.values())
    yield f"{active:,} of {len(beat.queries):,} queries active"
    for name, stage in beat.stages.items():
        if stage.lag_items and name != "deliver":
            yield f"{name} is {stage.lag_items:,} items and {span_text(stage.lag_s)} behind"


def _sources(found: OperatingStatus) -> Iterator[str]:
    from headgate.api.operating import reason_of, span_text  # noqa: PLC0415 - kernels

    figures, now_s = found.folder.sources, found.folder.at_s
    if figures is None:
        yield f"{found.sources:,} registered"
        return
    late = f", {figures.due:,} late" if figures.due else ""
    new = f", {figures.untried:,} not fetched yet" if figures.untried else ""
    yield (
        f"{found.sources:,} registered; {figures.feeds:,} web feeds, "
        f"{len(figures.broken):,} of them broken{late}{new}"
    )
    for each in figures.broken[:SHOWN_MAX]:
        wait_s = each.next_at.timestamp() - now_s
        again = f"again in {span_text(wait_s)}" if wait_s > 0 else "again soon"
        since = span_text(now_s - each.since.timestamp())
        yield f"{each.name}: {reason_of(each)[:REASON_LENGTH_MAX]}, for {since}; {again}"
    yield from _rest(len(figures.broken))


def _feeds(found: OperatingStatus) -> Iterator[str]:
    suspended = found.folder.suspended
    yield f"{found.feeds:,} registered, {len(suspended):,} of them suspended"
    for name in sorted(suspended)[:SHOWN_MAX]:
        each = suspended[name]
        yield f"{name}: since {each.suspended_at:%Y-%m-%d %H:%M} UTC, {each.reason}"
    yield from _rest(len(suspended))


def _delivery(found: OperatingStatus) -> Iterator[str]:
    from headgate.api.operating import counted, span_text  # noqa: PLC0415 - kernels

    figures = found.folder.delivery
    if figures is None:
        return
    yield (
        f"{counted(found.subscriptions, 'subscription')}, {counted(figures.workers, 'worker')}; "
        f"{figures.counts.total:,} items delivered"
    )
    oldest = f", the oldest item for {span_text(figures.oldest_s)}" if figures.oldest_s else ""
    waiting = sum(figures.waiting.values())
    yield f"{figures.behind:,} items not reached, {waiting:,} messages waiting{oldest}"
    dead = ", ".join(f"{count:,} {output}" for output, count in figures.dead.items())
    yield f"dead letters: {dead or 'none'}"


def _storage(status: FolderStatus) -> Iterator[str]:
    if (log := status.log) is not None:
        yield f"{log.items:,} items in {log.files:,} files, {size_text(log.bytes)}"
    if (storage := status.storage) is not None:
        sizes = (f"{name} {size_text(size)}" for name, size in storage.bytes.items())
        yield ", ".join(sizes)
        for place, disk in storage.disks.items():
            yield f"{size_text(disk.free)} free of {size_text(disk.total)} ({place})"


def _rest(count: int) -> Iterator[str]:
    if count > SHOWN_MAX:
        yield f"and {count - SHOWN_MAX:,} more; --json has all"


def _instant(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
