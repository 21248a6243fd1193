"""The slots that a worker holds, with their rows in memory; changes go to the database first.

    RowChanges ──► one transaction that compares the epochs ──► the same in memory

A worker is the only one that changes the rows of its slots, so memory is right as long as it holds
them. If another worker has taken some, the transaction says so (`LeaseLost`); these slots are
dropped with everything that belongs to them, and the changes of the others are written.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Hashable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from headgate.deliver.attempts import AttemptLog, AttemptRow
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_tables import SLOTS, DeadLetter, LagRow, RetryRow, SlotLease
from headgate.deliver.errors import LeaseLost

PER_STEP_MAX = 2_000
"""So many lag rows, and so many retries, are taken in one step."""
K = TypeVar("K", bound=Hashable)
RetryKey = tuple[int, str]


class DueTimes(Generic[K]):
    """Keys by the time at which they are due; a key has one time."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._time_of: dict[K, float] = {}
        self._pushes = 0

    def __len__(self) -> int:
        return len(self._time_of)

    def set(self, key: K, time_s: float) -> None:
        self._time_of[key] = time_s
        self._pushes += 1
        heapq.heappush(self._heap, (time_s, self._pushes, key))

    def remove(self, key: K) -> None:
        self._time_of.pop(key, None)

    def due(self, now_s: float, limit: int) -> list[K]:
        """Take the keys that are due; who is not done with one sets it again."""
        found: list[K] = []
        while self._heap and self._heap[0][0] <= now_s and len(found) < limit:
            time_s, _, key = heapq.heappop(self._heap)
            if self._time_of.get(key) == time_s:
                del self._time_of[key]
                found.append(key)
        return found

    def bring_forward(self, now_s: float) -> None:
        """Everything is due by now, as after the clock was set back."""
        for key, time_s in list(self._time_of.items()):
            if time_s > now_s:
                self.set(key, now_s)


@dataclass(slots=True)
class RowChanges:
    """What one round changes."""

    lags: dict[int, LagRow] = field(default_factory=dict)
    ended_lags: dict[int, int] = field(default_factory=dict)
    """The slot of each subscription that is where its slot is."""
    retries: dict[RetryKey, RetryRow] = field(default_factory=dict)
    ended_retries: dict[RetryKey, int] = field(default_factory=dict)
    dead: list[DeadLetter] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    attempts: list[AttemptRow] = field(default_factory=list)
    cursors: dict[int, int] = field(default_factory=dict)
    seen_id: int = 0

    def without(self, slots: Collection[int]) -> RowChanges:
        return replace(
            self,
            lags={key: each for key, each in self.lags.items() if each.slot not in slots},
            ended_lags={k: slot for k, slot in self.ended_lags.items() if slot not in slots},
            retries={key: each for key, each in self.retries.items() if each.slot not in slots},
            ended_retries={k: slot for k, slot in self.ended_retries.items() if slot not in slots},
            dead=[each for each in self.dead if each.slot not in slots],
            attempts=[each for each in self.attempts if each.slot not in slots],
            cursors={slot: each for slot, each in self.cursors.items() if slot not in slots},
        )

    @property
    def is_empty(self) -> bool:
        return not (
            self.lags
            or self.ended_lags
            or self.retries
            or self.ended_retries
            or self.dead
            or self.counts
            or self.attempts
            or self.cursors
        )


@dataclass(slots=True)
class HeldSlot:
    epoch: int
    cursor: int
    seen_id: int


class HeldSlots:
    """For one thread."""

    def __init__(self, database: DeliveryDatabase, worker: str) -> None:
        self._database, self.worker = database, worker
        self.slots: dict[int, HeldSlot] = {}
        self.lags: dict[int, LagRow] = {}
        self.retries: dict[RetryKey, RetryRow] = {}
        self.retry_counts: Counter[int] = Counter()
        """How many retries each subscription has."""
        self.sent: set[RetryKey] = set()
        """Messages that an earlier holder has sent behind the cursor."""
        self.lag_times: DueTimes[int] = DueTimes()
        self.retry_times: DueTimes[RetryKey] = DueTimes()
        self._attempt_log = AttemptLog()

    @property
    def epochs(self) -> dict[int, int]:
        return {slot: each.epoch for slot, each in self.slots.items()}

    def is_held(self, slot: int, epoch: int) -> bool:
        held = self.slots.get(slot)
        return held is not None and held.epoch == epoch

    def lease(self, *, now_s: float, lease_s: float, first_position: int) -> tuple[int, list[int]]:
        """Renew, give back and take slots; how many were lost, and which were taken."""
        leases = self._database.lease(self.worker, self.epochs, now_s=now_s, lease_s=lease_s)
        lost = [s for s, e in self.epochs.items() if s not in leases or leases[s].epoch != e]
        self.drop(lost)
        taken = [each for slot, each in leases.items() if slot not in self.slots]
        if taken:
            self._load(taken, first_position)
        return len(lost), [each.slot for each in taken]

    def _load(self, taken: list[SlotLease], first_position: int) -> None:
        numbers = [each.slot for each in taken]
        for each in taken:
            cursor = first_position if each.cursor is None else each.cursor
            self.slots[each.slot] = HeldSlot(each.epoch, cursor, each.seen_id)
        for lag in self._database.lags_of(numbers):
            self._remember_lag(lag)
        for retry in self._database.retries_of(numbers):
            self._remember_retry(retry)
        self.sent |= self._database.sent_in(numbers)

    def drop(self, slots: Collection[int]) -> None:
        """Forget slots that another worker holds."""
        gone = set(slots) & self.slots.keys()
        if not gone:
            return
        for slot in gone:
            del self.slots[slot]
        for id_ in [key for key, each in self.lags.items() if each.slot in gone]:
            del self.lags[id_]
            self.lag_times.remove(id_)
        for key in [key for key, each in self.retries.items() if each.slot in gone]:
            self._forget_retry(key)

    def give_back(self) -> None:
        self.drop(list(self.slots))
        self._database.give_back(self.worker)

    def reload(self) -> None:
        """Read the rows again, after the operator has changed some (`replay`)."""
        numbers = list(self.slots)
        for lag in self._database.lags_of(numbers):
            known = self.lags.get(lag.subscription)
            if known is not None and known.halted is not None and lag.halted is None:
                self._remember_lag(lag)
        for retry in self._database.retries_of(numbers):
            if (retry.subscription, retry.message) not in self.retries:
                self._remember_retry(retry)

    def due_lags(self, now_s: float, paused: Collection[int]) -> list[int]:
        """Take the lag rows that are due. Those of paused subscriptions wait for `resume`."""
        return [each for each in self.lag_times.due(now_s, PER_STEP_MAX) if each not in paused]

    def due_retries(self, now_s: float, paused: Collection[int]) -> list[RetryKey]:
        """The same for retries; what was asked to be sent again goes to paused ones, too."""
        return [
            key
            for key in self.retry_times.due(now_s, PER_STEP_MAX)
            if key[0] not in paused or not self.retries[key].attempts
        ]

    def resume(self, ids: frozenset[int]) -> None:
        """These subscriptions are not paused any more: their rows are due at their times."""
        for id_ in ids & self.lags.keys():
            self._remember_lag(self.lags[id_])
        for key, retry in self.retries.items() if ids else ():
            if key[0] in ids:
                self.retry_times.set(key, retry.retry_at)

    def refusals_left(self, quota: int | None) -> int | None:
        """How many more retries there may be of these slots' share of a quota; None: any number."""
        if quota is None:
            return None
        return max(quota * len(self.slots) // SLOTS - len(self.retries), 0)

    def is_still_held(self) -> bool:
        """Whether all slots are still ours; those that are not are dropped."""
        try:
            with self._database.writing(self.worker, self.epochs):
                return True
        except LeaseLost as error:
            self.drop(error.slots)
            return False

    def commit(self, changes: RowChanges) -> None:
        """Write the changes, and remember them. Those of slots that were lost are left out."""
        while not changes.is_empty:
            try:
                self._write(changes)
            except LeaseLost as error:
                self.drop(error.slots)
                changes = changes.without(error.slots)
            else:
                self._remember(changes)
                return

    def _write(self, changes: RowChanges) -> None:
        with self._database.writing(self.worker, self.epochs) as change:
            change.put_lags(list(changes.lags.values()))
            change.end_lags(list(changes.ended_lags))
            change.forget_sent(list(changes.ended_lags))
            change.put_retries(list(changes.retries.values()))
            change.end_retries(list(changes.ended_retries))
            change.put_dead(changes.dead)
            change.count(changes.counts)
            self._attempt_log.write(change.connection, changes.attempts)
            for cursor in set(changes.cursors.values()):
                moved = [slot for slot, each in changes.cursors.items() if each == cursor]
                change.move_cursors(moved, cursor, seen_id=changes.seen_id)

    def _remember(self, changes: RowChanges) -> None:
        for lag in changes.lags.values():
            self._remember_lag(lag)
        for id_ in changes.ended_lags:
            self.lags.pop(id_, None)
            self.lag_times.remove(id_)
        for retry in changes.retries.values():
            self._remember_retry(retry)
        for key in changes.ended_retries:
            self._forget_retry(key)
        for slot, cursor in changes.cursors.items():
            held = self.slots[slot]
            held.cursor, held.seen_id = cursor, changes.seen_id

    def _remember_lag(self, lag: LagRow) -> None:
        self.lags[lag.subscription] = lag
        if lag.halted is None:
            self.lag_times.set(lag.subscription, lag.not_before)
        else:
            self.lag_times.remove(lag.subscription)

    def _remember_retry(self, retry: RetryRow) -> None:
        key = (retry.subscription, retry.message)
        self.retry_counts[retry.subscription] += key not in self.retries
        self.retries[key] = retry
        self.retry_times.set(key, retry.retry_at)

    def _forget_retry(self, key: RetryKey) -> None:
        if self.retries.pop(key, None) is not None:
            self.retry_counts[key[0]] -= 1
            if not self.retry_counts[key[0]]:
                del self.retry_counts[key[0]]
        self.retry_times.remove(key)
