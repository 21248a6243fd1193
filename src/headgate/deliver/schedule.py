"""When what is for whom: subscriptions without a period at once, the others by a timetable.

    every 3 hours, subscription 7      ─┼──────────┼──────────┼──────────┼─►
                                       01:12      04:12      07:12      10:12
    items arrive                             x  x                 x
    runs                                          ■                      ■

*The timetable.* The boundaries of a subscription are the multiples of its period since 1970 in UTC,
moved by a phase that is a hash of its id. So the timetable needs no memory and is the same after a
restart; and 100,000 digests `every 3 hours` are spread over three hours instead of all being sent
at midnight. What waits goes out at the first boundary after the oldest of it was put.

Laws. Nothing waits longer than one period, unless its output fails. Between two boundaries nothing
new is sent. After a pause, however long, there is one run with everything that was put before
the last boundary, and not one for each that was missed. The agenda is stored, and it changes in
the transaction in which deliveries are put or marked: a process that dies forgets nothing.

*Retries.* A message that was refused by itself has a time of its own at which it is tried again,
and others do not wait for it. A receiver that cannot be reached is not tried before a time
(`not_before`), and everything for it waits. Neither waits for a boundary.

*A clock that goes back* would make everything that is planned wait for the clock to catch up, for
years if it had been wrong by years. The latest time seen is therefore stored; when it is ahead of
the clock by more than a minute, what waits is taken to have been put just now, and all that is
planned is planned anew. So it waits one period more at most.

Cost: asking what is due is a look at the front of an index, however many subscriptions wait for
their boundary. Each one is looked at twice: after its first item was put, to find its
boundary, and when that has come; further items do not make it due (`by_timetable`).

Rejected: periods counted from the last run (all subscriptions that were late after a pause
would stay in step forever); a thread or timer for each subscription.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from headgate.deliver.outbox import PENDING, Outbox

CLOCK_TOLERANCE_S = 60.0


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """What is planned for a subscription; nothing is due where `due_at_s` is missing."""

    subscription: int
    due_at_s: float | None
    not_before_s: float | None
    failures: int
    last_run_at_s: float | None
    halted: str | None


def phase_s(subscription: int, period_s: int) -> int:
    """By how much the boundaries of this subscription are moved: less than a period."""
    digest = hashlib.sha256(f"phase {subscription}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % period_s


def boundary_after_s(time_s: float, period_s: int, phase: int) -> int:
    """The first boundary that is later than this time; all are whole seconds.

    >>> boundary_after_s(131.9, 60, 12), boundary_after_s(132.0, 60, 12)
    (132, 192)
    """
    return (math.floor(time_s) - phase) // period_s * period_s + period_s + phase


def put_before_s(now_s: float, subscription: int, period_s: int | None) -> float:
    """What was put before this time goes out now: before the last boundary, or at any time."""
    if period_s is None:
        return math.inf
    return boundary_after_s(now_s, period_s, phase_s(subscription, period_s)) - period_s


def due_at_s(
    retry_at_s: float | None, waits_since_s: float | None, subscription: int, period_s: int | None
) -> tuple[float, bool] | None:
    """When something is to be done, and whether it is the timetable that says so.

    Retries know no timetable.
    """
    found: list[tuple[float, bool]] = []
    if retry_at_s is not None:
        found.append((retry_at_s, False))
    if waits_since_s is not None and period_s is None:
        found.append((waits_since_s, False))
    elif waits_since_s is not None and period_s is not None:
        phase = phase_s(subscription, period_s)
        found.append((boundary_after_s(waits_since_s, period_s, phase), True))
    return min(found, default=None)


class DeliverySchedule:
    """The agenda of an outbox. All methods may be called by any thread."""

    def __init__(self, outbox: Outbox) -> None:
        self._database = outbox.database

    def note_clock(self, now_s: float) -> bool:
        """To be told before asking what is due. Whether the clock has gone back."""
        with self._database.transaction() as connection:
            row = connection.execute("SELECT latest FROM clock").fetchone()
            went_back = row is not None and now_s < row[0] - CLOCK_TOLERANCE_S
            if went_back:
                connection.execute(
                    "UPDATE deliveries SET put_at = min(put_at, ?1), retry_at = NULL "
                    f"WHERE {PENDING}",
                    (now_s,),
                )
                connection.execute(
                    "UPDATE agenda SET due_at = ?1, not_before = NULL, by_timetable = 0 "
                    "WHERE due_at IS NOT NULL",
                    (now_s,),
                )
            connection.execute(
                "INSERT INTO clock VALUES (1, ?1) ON CONFLICT DO UPDATE SET latest = ?1", (now_s,)
            )
            return went_back

    def due(self, now_s: float, *, limit: int) -> list[int]:
        """The subscriptions for which something is to be done, the longest due first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT subscription FROM agenda WHERE due_at IS NOT NULL AND due_at <= ? "
                "ORDER BY due_at, subscription LIMIT ?",
                (now_s, limit),
            ).fetchall()
        return [row[0] for row in rows]

    def get(self, subscription: int) -> ScheduleEntry | None:
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT subscription, due_at, not_before, failures, last_run_at, halted "
                "FROM agenda WHERE subscription = ?",
                (subscription,),
            ).fetchone()
        return row and ScheduleEntry(*row)

    def plan(self, subscription: int, at_s: float, *, by_timetable: bool) -> None:
        """There is something to do, but not before this time."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE agenda SET due_at = max(?1, coalesce(not_before, ?1)), by_timetable = ?2 "
                "WHERE subscription = ?3",
                (at_s, by_timetable, subscription),
            )

    def settle(
        self,
        subscription: int,
        *,
        now_s: float,
        failures: int = 0,
        not_before_s: float | None = None,
    ) -> None:
        """A run has ended. What is pending is due again: when its receiver is tried again, when
        the first of it is retried, or at once."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE agenda SET last_run_at = ?1, failures = ?2, not_before = ?3, "
                "by_timetable = 0, due_at = (SELECT max(min(coalesce(retry_at, ?1)), "
                f"coalesce(?3, 0)) FROM deliveries WHERE subscription = ?4 AND {PENDING}) "
                "WHERE subscription = ?4",
                (now_s, failures, not_before_s, subscription),
            )

    def halt(self, subscription: int, reason: str) -> None:
        """Nothing is sent any more until it is replayed."""
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO agenda (subscription, halted) VALUES (?1, ?2) ON CONFLICT DO UPDATE "
                "SET halted = ?2, due_at = NULL",
                (subscription, reason),
            )
