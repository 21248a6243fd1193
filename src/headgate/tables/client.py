"""The client of one subscription: it holds the semijoins and puts the join together (§3.1).

    held by join value     LEFT rows    RIGHT rows
    GOOG                   s1, s4       r2, r3            join: s1 r2, s1 r3, s4 r2, s4 r3

Law: after all messages that are for it, in order, `join()` is the select-join. Within one join
value all left rows join with all right ones; so where one side becomes empty, the other side's rows
are in no semijoin any more, and go without a message. (Not with Rel-Sel, whose clients hold what
they select, joined or not.)

Deliveries are numbered one by one for each subscription, by whoever sends the last hop. One that
was applied is ignored when it comes again. One that comes too early shows a gap: the client says
from where it misses something, refuses everything until it gets the content anew, and keeps what it
has.

Plain Python: no NumPy, no Numba, so that a client can run anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.tables.messages import Key, Message, Row

LEFT, RIGHT = 0, 1
DELETE = 1


@dataclass(frozen=True, slots=True)
class Gap:
    """Deliveries from `first` up to, but without, `next` did not come: ask for the content."""

    first: int
    next: int


@dataclass(slots=True)
class Client:
    """`expected` is the number of the next delivery."""

    keeps_unjoined: bool = False
    expected: int = 0
    is_stale: bool = False
    _rows: dict[int, Row] = field(default_factory=dict)
    _held: tuple[dict[Key, set[int]], ...] = field(default_factory=lambda: ({}, {}))

    def receive(self, number: int, message: Message) -> Gap | None:
        """Apply one delivery; a gap if something before it is missing."""
        if number < self.expected:
            return None
        if self.is_stale or number > self.expected:
            self.is_stale = True
            return Gap(self.expected, number)
        self.expected += 1
        if message.kind == DELETE:
            for row in message.rows:
                self._drop(row.number, prune=not self.keeps_unjoined)
            return None
        if message.replaces is not None:
            # The new row is there in the same moment: nothing is left without a partner.
            self._drop(message.replaces, prune=False)
        for row in message.rows:
            self._hold(row)
        return None

    def resync(self, rows: Iterable[Row], *, expected: int) -> None:
        """Forget everything and hold these rows, as they are before delivery `expected`."""
        self._rows.clear()
        for side in self._held:
            side.clear()
        for row in rows:
            self._hold(row)
        self.expected, self.is_stale = expected, False

    def rows(self) -> Iterator[Row]:
        """All rows that are held."""
        return iter(self._rows.values())

    def join(self) -> Iterator[tuple[Row, Row]]:
        """The content of the subscription: every left row with every right row that it joins
        with."""
        left, right = self._held
        for join, numbers in left.items():
            for one in numbers:
                for other in right.get(join, ()):
                    yield self._rows[one], self._rows[other]

    def _hold(self, row: Row) -> None:
        self._rows[row.number] = row
        self._held[row.table].setdefault(row.join, set()).add(row.number)

    def _drop(self, number: int, *, prune: bool) -> None:
        row = self._rows.pop(number, None)
        if row is None:
            return
        own, other = self._held[row.table], self._held[1 - row.table]
        own[row.join].discard(number)
        if own[row.join]:
            return
        del own[row.join]
        if prune:
            for each in other.pop(row.join, ()):
                del self._rows[each]
