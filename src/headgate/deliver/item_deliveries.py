"""What became of an item's deliveries, and the number of deliveries per state, for other processes.

The outbox is opened read-only, so the run that writes it is not disturbed. A folder where nothing
was delivered has no outbox, and gives empty answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headgate.deliver.outbox import Outbox
from headgate.deliver.records import DeliveryState, key_bytes


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """One item for one subscription."""

    version: int
    state: DeliveryState
    attempts: int
    error: str
    put_at: datetime
    retry_at: datetime | None
    done_at: datetime | None

    def text(self) -> str:
        tries = "1 attempt" if self.attempts == 1 else f"{self.attempts:,} attempts"
        match self.state:
            case DeliveryState.SENT:
                return f"sent at {_shown(self.done_at)}"
            case DeliveryState.WAITING:
                return f"waiting since {_shown(self.put_at)}"
            case DeliveryState.SENDING:
                return "being sent"
            case DeliveryState.FAILED:
                again = f"; again at {_shown(self.retry_at)}" if self.retry_at else ""
                return f"failed after {tries}: {self.error}{again}"
            case DeliveryState.DEAD:
                return f"dead since {_shown(self.done_at)}, after {tries}: {self.error}"


@dataclass(frozen=True, slots=True)
class DeadLetters:
    subscription: int
    count: int
    error: str
    """The error of the last one."""


def deliveries_of(
    outbox: Path, *, subscription: int, id_: str, source: str
) -> list[DeliveryStatus]:
    """By version; a subscription that was never changed has one."""
    if not outbox.exists():
        return []
    with Outbox.open(outbox, read_only=True) as opened, opened.database.reading() as connection:
        rows = connection.execute(
            "SELECT version, state, attempts, error, put_at, retry_at, done_at FROM deliveries "
            "WHERE subscription = ? AND item = ? AND source = ? ORDER BY version",
            (subscription, key_bytes(id_), key_bytes(source)),
        ).fetchall()
    return [
        DeliveryStatus(
            version=row[0],
            state=DeliveryState(row[1]),
            attempts=row[2],
            error=row[3],
            put_at=_utc(row[4]),
            retry_at=_optional(row[5]),
            done_at=_optional(row[6]),
        )
        for row in rows
    ]


def count_deliveries(outbox: Path) -> Mapping[DeliveryState, int]:
    if not outbox.exists():
        return dict.fromkeys(DeliveryState, 0)
    with Outbox.open(outbox, read_only=True) as opened:
        return opened.count()


def dead_letters(outbox: Path, *, limit: int) -> list[DeadLetters]:
    """The subscriptions with the most dead letters."""
    if not outbox.exists():
        return []
    with Outbox.open(outbox, read_only=True) as opened, opened.database.reading() as connection:
        # With max(), SQLite takes the other columns from the row that has it.
        rows = connection.execute(
            "SELECT subscription, count(*), error, max(number) FROM deliveries "
            "WHERE state = 'dead' GROUP BY subscription ORDER BY 2 DESC, 1 LIMIT ?",
            (limit,),
        ).fetchall()
    return [DeadLetters(*row[:3]) for row in rows]


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _optional(seconds: float | None) -> datetime | None:
    return None if seconds is None else _utc(seconds)


def _shown(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"
