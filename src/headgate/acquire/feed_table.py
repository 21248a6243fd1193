"""What can be said of the feeds of an inbox, by any process, while another one fetches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headgate.acquire.inbox_tables import FILE, LAYOUT, unpack_state
from headgate.store.database import DurableDatabase


@dataclass(frozen=True, slots=True)
class FeedRow:
    """A feed as `headgate show` shows it."""

    name: str
    url: str
    moved_to: str | None
    """Where the feed says it has moved to for good."""
    items: int
    rate_per_day: float
    """How many items are expected in a day."""
    window: int
    """How many entries its document holds."""
    fetched_at: datetime | None
    """When it was last fetched with success."""
    tried_at: datetime | None
    next_at: datetime | None
    """When it is fetched again at the earliest; nothing where it never was."""
    failures: int
    error: str
    broken_since: datetime | None


@dataclass(frozen=True, slots=True)
class BrokenFeed:
    name: str
    url: str
    error: str
    failures: int
    since: datetime
    next_at: datetime


def feed_table(folder: Path) -> list[FeedRow]:
    """All feeds that are fetched into this inbox, by name; none where there is no inbox yet."""
    return _read(folder, "dropped_at IS NULL")


def broken_feeds(folder: Path) -> list[BrokenFeed]:
    """The feeds whose last fetch has failed. They are tried again by themselves."""
    rows = _read(folder, "dropped_at IS NULL AND broken_since IS NOT NULL")
    return [
        BrokenFeed(row.name, row.url, row.error, row.failures, row.broken_since, row.next_at)
        for row in rows
        if row.broken_since is not None and row.next_at is not None
    ]


def _read(folder: Path, which: str) -> list[FeedRow]:
    path = folder / FILE
    if not path.exists():
        return []
    with (
        DurableDatabase(path, LAYOUT, read_only=True) as database,
        database.reading() as connection,
    ):
        found = connection.execute(
            "SELECT name, url, moved_to, items, state, tried_at, next_at, error, broken_since"
            f" FROM feeds WHERE {which} ORDER BY name"
        ).fetchall()
    return [_row(each) for each in found]


def _row(found: Sequence[object]) -> FeedRow:
    name, url, moved_to, items, stored, tried_at, next_at, error, broken_since = found
    state = unpack_state(str(stored))
    return FeedRow(
        str(name),
        str(url),
        None if moved_to is None else str(moved_to),
        int(str(items)),
        state.rate_per_s * 86_400,
        state.window,
        _time(state.fetched_at),
        _time(tried_at),
        _time(next_at) if tried_at is not None else None,
        state.failures,
        str(error),
        _time(broken_since),
    )


def _time(seconds: object) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, float) else None
