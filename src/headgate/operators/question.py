"""One predicate for some rows of a batch, until each row has an answer or has failed.

    rows 0 … 99, item by item           rows 0 … 99, batch form

    0–41 answered, 42 hangs             0–99 raises
    42 failed                           0–49 answered    50–99 raises
    43–99 answered, of a new child                       50–74 …

A function that is called item by item loses the one item on which it hangs or dies: the answers
before it are there already, and the rest is asked of a new child. A batch form fails for all of its
items; so it is asked again for each half, and one bad item of 4,096 costs 24 calls and not 4,095
answers. That ends when it has taken too long (`split_s`), or when the breaker opens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headgate.model.errors import OperatorError
from headgate.operators.answers import FAILED, TRUE, Answers, Part, Rows, answers_of, failed_part
from headgate.operators.breaker import Breaker
from headgate.operators.call_items import Called
from headgate.operators.child_process import Stopped
from headgate.operators.declaration import OperatorLimits
from headgate.operators.failures import Failure
from headgate.operators.forms import Form
from headgate.operators.ledger import Ledger
from headgate.operators.workshop import Workshop

RETRIES_MAX = 1
"""Of what stopped without being in an operator, so that nobody knows whose fault it was."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A call, as it is asked again and again; a problem is why it cannot be asked at all."""

    operator: str
    encoded: bytes
    types: tuple[pa.DataType, ...]
    problem: str = ""
    marks: tuple[type[str] | None, ...] = ()
    """What the texts of each variable are, if not only texts."""


@dataclass(frozen=True, slots=True)
class ItemsToAsk:
    """The items of a batch: what tells them from others, and how they are packed for the child."""

    token: object
    pack: Callable[[], bytes]


@dataclass(slots=True)
class Question:
    predicate: Predicate
    rows: Rows
    items: ItemsToAsk
    workshop: Workshop
    limits: OperatorLimits
    breaker: Breaker
    ledger: Ledger
    clock: Callable[[], float]
    _parts: list[tuple[Rows, Part]] = field(default_factory=list)
    _pending: list[tuple[int, int]] = field(default_factory=list)
    _retries: int = 0
    _split_until: float = 0.0

    def answer(self) -> Answers:
        count = len(self.rows)
        problem = self._why_not()
        if problem:
            self._fail(0, count, Failure.NOT_LOADED, problem)
        elif count:
            self._pending = [(0, count)]
            self._split_until = self.clock() + self.limits.split_s
        while self._pending:
            self._next()
        return answers_of(self._parts, self.predicate.types)

    def _why_not(self) -> str:
        name = self.predicate.operator
        try:
            return self.workshop.refused().get(name, "") or self.predicate.problem
        except OperatorError as error:
            return str(error)

    def _next(self) -> None:
        first, end = self._pending.pop()
        if self.breaker.paused:
            self._fail(first, end, Failure.PAUSED, "it is not called, as it failed too often")
            return
        if self.breaker.probing and end - first > 1:
            self._pending.append((first + 1, end))
            end = first + 1
        is_batch, reached = False, first
        try:
            is_batch = self.workshop.forms().get(self.predicate.operator, Form()).batch
            for called in self._exchange(first, end, is_batch=is_batch):
                if is_batch and called.failures and Failure.NOT_LOADED not in called.failures:
                    self._estimate(called)
                    ((failure, (_, message)),) = called.failures.items()
                    self._split(first, end, failure, message, stopped=False)
                else:
                    self._note(called, reached)
                reached += len(called.part)
        except Stopped as stop:
            self._after_stop(first, reached, end, stop, is_batch=is_batch)
        except OperatorError as error:
            self._fail(reached, end, Failure.DIED, str(error))
        else:
            if reached < end:  # it ran out of memory, and was replaced
                self.breaker.failed(0, stopped=True)
                self._pending.append((reached, end))

    def _exchange(self, first: int, end: int, *, is_batch: bool) -> Iterator[Called]:
        return self.workshop.exchange(
            self.predicate.encoded,
            self.rows[first:end],
            token=self.items.token,
            pack_items=self.items.pack,
            limit_s=self.limits.batch_s if is_batch else self.limits.item_s,
        )

    def _after_stop(
        self, first: int, reached: int, end: int, stop: Stopped, *, is_batch: bool
    ) -> None:
        """The child is gone: who fails, and what is asked again?"""
        guilty = None if stop.position is None else first + stop.position
        if stop.failure is Failure.LATE and guilty is not None:
            wasted_s = self.limits.batch_s if is_batch else self.limits.item_s
            self.ledger.estimates.observe(
                self.predicate.operator, self.predicate.encoded, items=0, true=0, seconds=wasted_s
            )
        if guilty is None or guilty < reached:
            self._retries += 1
            if self._retries > RETRIES_MAX:
                self._fail(reached, end, stop.failure, str(stop), stopped=True)
            else:
                self._pending.append((reached, end))
        elif is_batch:
            self._split(first, end, stop.failure, str(stop), stopped=True)
        else:
            self._fail(guilty, guilty + 1, stop.failure, str(stop), stopped=True)
            self._pending += [
                each for each in ((guilty + 1, end), (reached, guilty)) if each[0] < each[1]
            ]

    def _split(
        self, first: int, end: int, failure: Failure, message: str, *, stopped: bool
    ) -> None:
        if end - first == 1 or self.clock() >= self._split_until:
            self._fail(first, end, failure, message, stopped=stopped)
        else:
            middle = (first + end) // 2
            self._pending += [(middle, end), (first, middle)]

    def _note(self, called: Called, first: int) -> None:
        states = called.part.states
        self._parts.append((_positions(first, first + len(states)), called.part))
        self._estimate(called)
        for failure, (count, message) in called.failures.items():
            self.ledger.fail(self.predicate.operator, failure, count, message)
        answered = np.flatnonzero(states != FAILED)
        if answered.size:
            self.breaker.answered()
        failed_since = len(states) - (int(answered[-1]) + 1 if answered.size else 0)
        if failed_since:
            self.breaker.failed(failed_since)

    def _estimate(self, called: Called) -> None:
        states = called.part.states
        self.ledger.estimates.observe(
            self.predicate.operator,
            self.predicate.encoded,
            items=int(np.count_nonzero(states != FAILED)),
            true=int(np.count_nonzero(states == TRUE)),
            seconds=called.seconds,
        )

    def _fail(
        self, first: int, end: int, failure: Failure, message: str, *, stopped: bool = False
    ) -> None:
        count = end - first
        self._parts.append((_positions(first, end), failed_part(count, self.predicate.types)))
        if count:
            self.ledger.fail(self.predicate.operator, failure, count, message)
        if failure not in (Failure.PAUSED, Failure.NOT_LOADED):
            self.breaker.failed(count, stopped=stopped)


def _positions(first: int, end: int) -> Rows:
    return np.arange(first, end, dtype=np.int32)
