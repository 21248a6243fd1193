"""One round of operator calls: each evaluates a predicate for some rows of a batch. A round ends
when every row is answered or has failed.

    call         0                   1           2
    predicate    locIn('Bronx')      mob(?n)     locIn('Queens')
    rows         0 … 99              5           7               all in one message

All open rows go into one message to the child process, however many calls there are. Where
something goes wrong, the rest goes into the next message:

    rows 0 … 99, item by item               rows 0 … 99, batch form

    0–41 answered, 42 hangs                 0–99 raises
    42 failed                               0–49 answered    50–99 raises
    43–99 answered, by a new child                           50–74 …

A function that is called item by item loses the one item on which it hangs or dies: the answers
before it have arrived already, and the rest goes to a new child. A batch form fails for all of its
items, so it is called again for each half: one bad item of 4,096 costs 24 calls instead of 4,095
answers. Splitting ends after `split_s`, or when the circuit breaker opens.

Cost: about 10 µs for a call, in both processes together, besides the exchange itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.model.errors import OperatorError
from headgate.operators import frames
from headgate.operators.answers import (
    FAILED,
    TRUE,
    Longs,
    PartialAnswers,
    RoundAnswers,
    Rows,
    bound_of,
    failed_part,
)
from headgate.operators.child_process import Stopped
from headgate.operators.child_supervisor import ChildSupervisor
from headgate.operators.declaration import Form, OperatorLimits
from headgate.operators.failures import Breaker, Failure, FailureCounts
from headgate.operators.statistics import OperatorStatistics

Span = tuple[int, int, int]
"""(call, first, end): rows of a call that are open, as positions in the round."""


@dataclass(frozen=True, slots=True, eq=False)
class CallMessage:
    """Spans that are sent together:

        round      call 0: rows 0 … 99           call 1: row 100         call 2: rows 101, 102
        open       0: 43 … 99                                            2: 101, 102
        message    places 0 … 56                                         places 57, 58

    A *place* is a row of the message; positions[place] is its row of the round.
    """

    spans: list[Span]
    ends: Rows
    positions: Rows

    @staticmethod
    def of(spans: list[Span]) -> CallMessage:
        _, first, end = np.array(spans, np.int32).T
        counts = end - first
        ends = np.cumsum(counts).astype(np.int32)
        positions = np.arange(ends[-1], dtype=np.int32) + np.repeat(end - ends, counts)
        return CallMessage(spans, ends, positions)

    def span_at(self, place: int) -> Span:
        number = int(np.searchsorted(self.ends, place, side="right"))
        return self.spans[min(number, len(self.spans) - 1)]

    def spans_between(self, first: int, last: int | None = None) -> list[Span]:
        """The spans from one place up to another."""
        last = len(self.positions) if last is None else last
        spans: list[Span] = []
        if first < last:
            begin = 0
            for (call, row, _), end in zip(self.spans, self.ends.tolist(), strict=True):
                low, high = max(first, begin), min(last, end)
                if low < high:
                    spans.append((call, row + low - begin, row + high - begin))
                begin = end
        return spans


RETRIES_MAX = 1
"""How often a call is sent again after its child stopped outside of an operator, where nobody
knows which call was the cause."""


@dataclass(frozen=True, slots=True)
class EncodedCall:
    """A call as it is sent to the child; `problem` says why it cannot be called at all."""

    operator: str
    encoded: bytes
    types: tuple[pa.DataType, ...]
    problem: str = ""
    marks: tuple[type[str] | None, ...] = ()
    """For each variable Link or Xml, if its texts are one."""


@dataclass(frozen=True, slots=True)
class RoundItems:
    """The items of a batch: a token that identifies them, and a function that packs them."""

    token: object
    pack: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class RoundContext:
    """What all rounds of a process share."""

    child: ChildSupervisor
    limits: OperatorLimits
    breakers: Mapping[str, Breaker]
    statistics: OperatorStatistics
    clock: Callable[[], float]


class Round:
    """Call n evaluates predicates[n] for rows[starts[n]] … rows[starts[n + 1] - 1]."""

    def __init__(
        self,
        predicates: Sequence[EncodedCall],
        starts: Longs,
        rows: Rows,
        items: RoundItems,
        context: RoundContext,
    ) -> None:
        self._predicates, self._starts, self._rows = predicates, starts.tolist(), rows
        self._items, self._context = items, context
        self._states = np.full(len(rows), FAILED, np.uint8)
        self._seconds = np.zeros(len(predicates))
        self._bound: dict[int, list[tuple[Rows, PartialAnswers]]] = {
            call: [] for call, each in enumerate(predicates) if each.types
        }
        self._pending: list[Span] = []
        self._halves: list[Span] = []
        self._forms: Mapping[str, Form] = {}
        self._retries: dict[int, int] = {}
        self._split_until: dict[int, float] = {}

    def answer(self) -> RoundAnswers:
        self._open_calls()
        while self._pending or self._halves:
            pending, self._pending = self._pending, []
            if self._halves:  # one at a time, so that the breaker opens before all have failed
                pending.append(self._halves.pop())
            if self._retries:  # a call ends the child: sent one by one, the calls show which
                pending, self._pending = pending[:1], pending[1:]
            admitted = self._not_paused(pending)
            if admitted:
                self._exchange(admitted)
        bound = {
            call: bound_of(parts, self._predicates[call].types)
            for call, parts in self._bound.items()
        }
        states = self._states
        return RoundAnswers(states != FAILED, states == TRUE, self._seconds, bound)

    def _open_calls(self) -> None:
        """Fail the calls whose operator cannot be called; all others are pending."""
        start_problem, refused = "", {}
        try:
            refused = dict(self._context.child.refused())
            self._forms = self._context.child.forms()
        except OperatorError as error:
            start_problem = str(error)
        for call, predicate in enumerate(self._predicates):
            first, end = self._starts[call], self._starts[call + 1]
            problem = start_problem or refused.get(predicate.operator, "") or predicate.problem
            if problem:
                self._fail((call, first, end), Failure.NOT_LOADED, problem)
            elif first < end:
                self._pending.append((call, first, end))

    def _not_paused(self, spans: list[Span]) -> list[Span]:
        """The spans whose operators are not paused; of one that is probing, a single item."""
        operators = {self._operator(call) for call, _, _ in spans}
        paused = {name for name in operators if self._context.breakers[name].paused}
        probing = {name for name in operators if self._context.breakers[name].probing}
        if not paused and not probing:
            return spans
        admitted: list[Span] = []
        tried: set[str] = set()
        for span in spans:
            name, (call, first, end) = self._operator(span[0]), span
            if name in paused:
                message = "it is not called, as it failed too often"
                self._fail(span, Failure.PAUSED, message)
            elif name not in probing:
                admitted.append(span)
            elif name in tried:
                self._pending.append(span)
            else:
                tried.add(name)
                admitted.append((call, first, first + 1))
                self._pending += [(call, first + 1, end)] if first + 1 < end else []
        return admitted

    def _exchange(self, spans: list[Span]) -> None:
        message = CallMessage.of(spans)
        request = frames.CallRequest(
            [self._predicates[call].encoded for call, _, _ in spans],
            message.ends,
            self._rows[message.positions],
        )
        reached = 0
        try:
            for response in self._context.child.exchange(
                request,
                token=self._items.token,
                pack_items=self._items.pack,
                limit_s=lambda place: self._limit_s(message.span_at(place)[0]),
            ):
                self._apply_response(message, reached, response)
                reached += len(response.states)
        except Stopped as stop:
            self._handle_stop(message, reached, stop)
        except OperatorError as error:
            for span in message.spans_between(reached):
                self._fail(span, Failure.DIED, str(error))
        else:
            self._pending += message.spans_between(reached)  # the child gave up on an operator

    def _apply_response(
        self, message: CallMessage, reached: int, response: frames.CallResponse
    ) -> None:
        positions = message.positions[reached : reached + len(response.states)]
        spans = message.spans[response.first : response.first + len(response.counts)]
        calls = [call for call, _, _ in spans]
        self._states[positions] = response.states
        np.add.at(self._seconds, calls, response.seconds)
        operators = {self._operator(call) for call in calls}
        if response.failures or response.lists or any(each in self._bound for each in calls):
            place = 0
            for n, count in enumerate(response.counts.tolist()):
                first = int(positions[place])
                span = (calls[n], first, first + count)
                states, place = response.states[place : place + count], place + count
                part = PartialAnswers(states, response.lists.get(n, ()))
                self._apply_part(span, part, response.failures.get(n, {}))
        else:
            for name in operators:
                self._context.breakers[name].answered()
        if response.then == frames.REPLACE:
            self._context.breakers[self._operator(calls[-1])].failed(0, stopped=True)

    def _apply_part(self, span: Span, part: PartialAnswers, failures: FailureCounts) -> None:
        call, first, end = span
        predicate, breaker = self._predicates[call], self._breaker(call)
        if self._is_batch(call) and failures and Failure.NOT_LOADED not in failures:
            failure, (_, message) = next(iter(failures.items()))
            self._split(span, failure, message, stopped=False)
            return
        if [each.type.value_type for each in part.lists] != list(predicate.types):
            self._fail(span, Failure.WRONG, "its values are not of the types that it binds")
            return
        if predicate.types:
            self._bound[call].append((np.arange(first, end, dtype=np.int32), part))
        for failure, (count, message) in failures.items():
            self._context.statistics.fail(predicate.operator, failure, count, message)
        answered = np.flatnonzero(part.states != FAILED)
        if answered.size:
            breaker.answered()
        failed_since = len(part) - (int(answered[-1]) + 1 if answered.size else 0)
        if failed_since:
            breaker.failed(failed_since)

    def _handle_stop(self, message: CallMessage, reached: int, stop: Stopped) -> None:
        """The child stopped: fail the row that it was at, and send the others again."""
        stopped_at = stop.position
        if stopped_at is None or not reached <= stopped_at < len(message.positions):
            self._retry(message.spans_between(reached), stop)
            return
        call, first, end = message.span_at(stopped_at)
        if stop.failure is Failure.LATE:
            self._seconds[call] += self._limit_s(call)
        row = int(message.positions[stopped_at])
        unanswered = message.spans_between(reached)
        if self._is_batch(call):
            self._pending += [each for each in unanswered if each[0] != call or each[1] != first]
            self._split((call, first, end), stop.failure, str(stop), stopped=True)
        else:
            self._fail((call, row, row + 1), stop.failure, str(stop), stopped=True)
            self._pending += message.spans_between(reached, stopped_at) + message.spans_between(
                stopped_at + 1
            )

    def _retry(self, unanswered: list[Span], stop: Stopped) -> None:
        if not unanswered:
            return
        call = unanswered[0][0]
        self._retries[call] = self._retries.get(call, 0) + 1
        if self._retries[call] > RETRIES_MAX:
            self._fail(unanswered.pop(0), stop.failure, str(stop), stopped=True)
        self._pending += unanswered

    def _split(self, span: Span, failure: Failure, message: str, *, stopped: bool) -> None:
        call, first, end = span
        now = self._context.clock()
        until = self._split_until.setdefault(call, now + self._context.limits.split_s)
        if end - first == 1 or now >= until:
            self._fail(span, failure, message, stopped=stopped)
        else:
            middle = (first + end) // 2
            self._halves += [(call, middle, end), (call, first, middle)]

    def _fail(self, span: Span, failure: Failure, message: str, *, stopped: bool = False) -> None:
        call, first, end = span
        count, predicate = end - first, self._predicates[call]
        self._states[first:end] = FAILED
        if predicate.types:
            part = failed_part(count, predicate.types)
            self._bound[call].append((np.arange(first, end, dtype=np.int32), part))
        if count:
            self._context.statistics.fail(predicate.operator, failure, count, message)
        if failure not in (Failure.PAUSED, Failure.NOT_LOADED):
            self._breaker(call).failed(count, stopped=stopped)

    def _operator(self, call: int) -> str:
        return self._predicates[call].operator

    def _breaker(self, call: int) -> Breaker:
        return self._context.breakers[self._operator(call)]

    def _is_batch(self, call: int) -> bool:
        return self._forms.get(self._operator(call), Form()).batch

    def _limit_s(self, call: int) -> float:
        limits = self._context.limits
        return limits.batch_s if self._is_batch(call) else limits.item_s
