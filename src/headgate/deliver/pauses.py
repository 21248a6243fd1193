"""Subscriptions that are paused: they keep their place in the log, and nothing is begun for them.

    paused    a lag row where the subscription is; the cursor of its slot moves on without it
    resumed   the row is due: what has arrived meanwhile is sent, then it rejoins the slot

The row is what makes it exact, as for pending mails (confirmations.py): whichever worker holds the
slot when the subscription is resumed, the row says where it goes on. If retention removes items
before that, the subscription is told which (catch_up.py).

A message that is being sent ends; no other of its job is begun. Messages that were refused wait as
well. What somebody has asked to be sent again (replay.py) is sent: a receiver is repaired, tried
with one dead letter, and then resumed.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.deliver.delivery_tables import LagRow
from headgate.deliver.held_slots import HeldSlots, RowChanges
from headgate.deliver.message_jobs import MessageJob
from headgate.deliver.subscription_table import SubscriptionTable


class Pauses:
    """For one thread."""

    def __init__(
        self, table: SubscriptionTable, held: HeldSlots, busy: Mapping[int, MessageJob]
    ) -> None:
        self._table, self._held, self._busy = table, held, busy
        self._known: frozenset[int] = frozenset()

    def step(self, now_s: float) -> None:
        """Before the rounds of a step: every paused subscription of our slots has a lag row."""
        paused = self._table.paused
        if paused is not self._known:
            self._held.resume(self._known - paused)
            for id_ in paused - self._known:
                if id_ in self._busy:
                    self._busy[id_].until = 0.0  # it begins no further message
            self._known = paused
        changes = RowChanges()
        for id_ in paused.difference(self._held.lags):
            row = self._table.row_of(id_)
            slot = -1 if row is None else int(self._table.rows.slot[row])
            if row is not None and slot in self._held.slots:
                version, cursor = int(self._table.rows.version[row]), self._held.slots[slot].cursor
                changes.lags[id_] = LagRow(id_, version, slot, cursor, now_s)
        self._held.commit(changes)
