"""When a subscription is due: at once without a period, otherwise at fixed boundaries.

    every 3 hours, subscription 7      ─┼──────────┼──────────┼──────────┼─►
                                       01:12      04:12      07:12      10:12
    items arrive                             x  x                 x
    runs                                          ■                      ■

*Boundaries.* They are the multiples of the period since 1970 (UTC), shifted by a hash of the id
of the subscription. So they need no memory, are the same after a restart, and 100,000 digests
`every 3 hours` are spread over three hours. Waiting items are sent at the first boundary after the
oldest of them was put.

Invariants. Nothing waits longer than one period unless its output fails. Between two boundaries
nothing new is sent. After an outage of any length there is one run with everything put before the
last boundary, not one for each missed boundary. The schedule is stored, and changes in the
transaction that puts or marks deliveries.

*Retries.* A message that was refused by itself has its own retry time, and others do not wait for
it. A receiver that cannot be reached is not tried before `not_before`, and everything for it waits.
Neither waits for a boundary.

*A clock that is set back* would delay everything that is planned until the clock catches up. So the
latest time seen is stored. If it is ahead of the clock by more than a minute, waiting deliveries
count as put now, and all plans are made again: the delay is at most one period.

Cost: finding what is due reads the front of an index. A subscription is looked at twice: after its
first item was put, to find its boundary, and at the boundary; further items do not make it due
(`by_timetable`).

Rejected: periods counted from the last run (subscriptions that were late together would stay
together); a thread or timer per subscription.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from headgate.deliver.outbox import PENDING, Outbox

CLOCK_TOLERANCE_S = 60.0


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """The plan of a subscription; without `due_at_s` nothing is due."""

    subscription: int
    due_at_s: float | None
    not_before_s: float | None
    failures: int
    last_run_at_s: float | None
    halted: str | None


def phase_s(subscription: int, period_s: int) -> int:
    """The shift of this subscription's boundaries, less than a period."""
    digest = hashlib.sha256(f"phase {subscription}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % period_s


def boundary_after_s(time_s: float, period_s: int, phase: int) -> int:
    """The first boundary that is later than this time; all are whole seconds.

    >>> boundary_after_s(131.9, 60, 12), boundary_after_s(132.0, 60, 12)
    (132, 192)
    """
    return (math.floor(time_s) - phase) // period_s * period_s + period_s + phase


def put_before_s(now_s: float, subscription: int, period_s: int | None) -> float:
    """Deliveries put before this time are sent now: the last boundary, or any time."""
    if period_s is None:
        return math.inf
    return boundary_after_s(now_s, period_s, phase_s(subscription, period_s)) - period_s


def due_at_s(
    retry_at_s: float | None, waits_since_s: float | None, subscription: int, period_s: int | None
) -> tuple[float, bool] | None:
    """When the subscription is due, and whether that is a boundary. Retries have none."""
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
    """The schedule of an outbox. All methods may be called by any thread."""

    def __init__(self, outbox: Outbox) -> None:
        self._database = outbox.database

    def note_clock(self, now_s: float) -> bool:
        """Called before `due`; returns whether the clock was set back."""
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
        """The subscriptions that are due, the longest due first."""
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
        """Make the subscription due at this time."""
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
        """A run has ended. Pending deliveries make it due again: when the receiver may be tried,
        at the first retry, or at once."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE agenda SET last_run_at = ?1, failures = ?2, not_before = ?3, "
                "by_timetable = 0, due_at = (SELECT max(min(coalesce(retry_at, ?1)), "
                f"coalesce(?3, 0)) FROM deliveries WHERE subscription = ?4 AND {PENDING}) "
                "WHERE subscription = ?4",
                (now_s, failures, not_before_s, subscription),
            )

    def halt(self, subscription: int, reason: str) -> None:
        """Send nothing more until `replay`."""
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO agenda (subscription, halted) VALUES (?1, ?2) ON CONFLICT DO UPDATE "
                "SET halted = ?2, due_at = NULL",
                (subscription, reason),
            )
