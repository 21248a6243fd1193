"""The front of the room: predicates are asked of the items of a batch, and always answered.

    operators = OperatorRuntime(declarations, allowed=["city.operators"])      one for each process
    predicates = PlanCalls(operators, calls)                            one for each plan
    asking = BatchCalls(predicates, batch, schema)                           one for each batch
    asking.evaluate_round([3, 8], [0, 40, 41], rows)                          as often as one likes

`ask_round` is what an order of evaluation calls: predicate 3 for forty rows of the batch, and 8 for
one more. Items go to the child when the first question about them is asked, once; questions name
rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from headgate.match.arrow_types import STORED_AS
from headgate.model.atoms import Call
from headgate.model.errors import OperatorError
from headgate.model.schema import Schema
from headgate.model.values import Link, Type, Xml
from headgate.operators import frames
from headgate.operators.answers import (
    BoundValues,
    CallAnswers,
    Floats,
    Longs,
    RoundAnswers,
    Rows,
    TypedTexts,
)
from headgate.operators.child_supervisor import ChildSupervisor
from headgate.operators.declaration import Declaration, Form, OperatorLimits
from headgate.operators.failures import Breaker, Failures
from headgate.operators.load import check_call
from headgate.operators.prepared_call import encode_call, variable_types
from headgate.operators.round import EncodedCall, Round, RoundContext, RoundItems
from headgate.operators.statistics import OperatorStatistics, Report

TEXTS: dict[Type, type[str]] = {Type.LINK: Link, Type.XML: Xml}


class OperatorRuntime:
    """The operators of a run, in one process. Any thread may ask; one round at a time."""

    def __init__(
        self,
        declarations: Sequence[Declaration],
        *,
        allowed: Sequence[str] = (),
        limits: OperatorLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.declarations = {each.name: each for each in declarations}
        self.limits = limits or OperatorLimits()
        self.ledger = OperatorStatistics(declarations)
        self._lock = threading.Lock()
        self._workshop = ChildSupervisor(declarations, allowed, self.limits, clock)
        breakers = {name: Breaker(clock) for name in self.declarations}
        self._means = RoundContext(self._workshop, self.limits, breakers, self.ledger, clock)

    def __enter__(self) -> OperatorRuntime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._workshop.close()

    @property
    def child_pid(self) -> int | None:
        """The process that calls, if there is one now."""
        return self._workshop.pid

    def refused(self) -> dict[str, str]:
        """Which operators cannot be loaded, and why. The child is started for this."""
        with self._lock:
            return dict(self._workshop.refused())

    @property
    def failures(self) -> Mapping[str, Failures]:
        return self.ledger.failures

    def observed(self, found: Iterable[tuple[EncodedCall, Sequence[float]]]) -> None:
        with self._lock:
            for predicate, (items, true, seconds) in found:
                self.ledger.estimates.observe(
                    predicate.operator, predicate.encoded, items=items, true=true, seconds=seconds
                )

    def take_report(self) -> Report:
        """What was observed and counted since the last report, for the ledger of the driver."""
        with self._lock:
            return self.ledger.take_report()

    def answer(
        self, predicates: Sequence[EncodedCall], starts: Longs, rows: Rows, items: RoundItems
    ) -> RoundAnswers:
        with self._lock:
            return Round(predicates, starts, rows, items, self._means).answer()


class PlanCalls:
    """The operator calls of a plan, by number. No process is started for them yet."""

    def __init__(self, operators: OperatorRuntime, calls: Sequence[Call]) -> None:
        self.operators = operators
        self.calls = tuple(calls)
        self.predicates = tuple(self._predicate(each) for each in calls)

    def observed(self, predicates: Longs, found: Floats) -> None:
        """What an order has learned of some of them: items, items true and seconds of each."""
        self.operators.observed(
            (self.predicates[number], each)
            for number, each in zip(predicates.tolist(), found.tolist(), strict=True)
        )

    def _predicate(self, call: Call) -> EncodedCall:
        declared = self.operators.declarations.get(call.operator)
        if declared is None:
            raise OperatorError(f"operator '{call.operator}' is not declared")
        problem = ""
        try:
            check_call(declared, Form(), call)
        except OperatorError as error:
            problem = str(error)
        if problem:
            return EncodedCall(call.operator, encode_call(call), (), problem)
        types = variable_types(declared, call)
        marks = tuple(TEXTS.get(each) for each in types)
        stored = tuple(STORED_AS[each] for each in types)
        return EncodedCall(call.operator, encode_call(call), stored, marks=marks)


class BatchCalls:
    """Operator calls for one batch of items, with the columns of match/item_columns.py."""

    def __init__(self, predicates: PlanCalls, batch: pa.RecordBatch, schema: Schema) -> None:
        self._predicates, self._batch, self._schema = predicates, batch, schema

    def evaluate_round(self, predicates: Rows, starts: Longs, rows: Rows) -> RoundAnswers:
        """EncodedCall n for rows[starts[n]] … rows[starts[n + 1]]."""
        asked = np.ascontiguousarray(rows, np.int32)
        if asked.size and not 0 <= int(asked.min()) <= int(asked.max()) < self._batch.num_rows:
            raise IndexError(f"a row is from 0 to {self._batch.num_rows - 1}")
        known = self._predicates.predicates
        own = [known[each] for each in predicates.tolist()]
        items = RoundItems(self, self._packed)
        answers = self._predicates.operators.answer(own, starts, asked, items)
        for question, bound in answers.bound.items():
            answers.bound[question] = _marked(bound, own[question].marks)
        return answers

    def evaluate(self, predicate: int, rows: Rows) -> CallAnswers:
        """One predicate."""
        starts = np.array([0, len(rows)], np.int64)
        found = self.evaluate_round(np.array([predicate], np.int32), starts, rows)
        if not found.bound:
            return CallAnswers(found.answered, found.true)
        return CallAnswers(found.answered, found.true, found.bound[0].starts, found.bound[0].values)

    def _packed(self) -> bytes:
        return frames.pack_batch(self._batch, self._schema)


def _marked(bound: BoundValues, marks: Sequence[type[str] | None]) -> BoundValues:
    columns = zip(bound.values, marks, strict=True)
    values = tuple(TypedTexts(each, mark) if mark else each for each, mark in columns)
    return BoundValues(bound.starts, values)
