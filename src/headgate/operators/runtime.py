"""Calling operators for the rows of a batch; every row gets an answer or counts as failed.

    runtime = OperatorRuntime(declarations, allowed=["city.operators"])  one for each process
    plan_calls = PlanCalls(runtime, calls)                               one for each plan
    batch_calls = BatchCalls(plan_calls, batch, schema)                  one for each batch
    batch_calls.evaluate_round([3, 8], [0, 40, 41], rows)                any number of times

An evaluation order calls `evaluate_round` (orders/evaluator.py): here call 3 for forty rows of the
batch, and call 8 for one more. The items are sent to the child process with the first round, once;
later rounds name their rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from headgate.match.item_columns import STORED_AS
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
from headgate.operators.declaration import Declaration, Form, OperatorGrants, OperatorLimits
from headgate.operators.failures import Breaker, Failures
from headgate.operators.load import check_call
from headgate.operators.prepared_call import encode_call, variable_types
from headgate.operators.round import EncodedCall, Round, RoundContext, RoundItems
from headgate.operators.statistics import OperatorStatistics, Report

TEXTS: dict[Type, type[str]] = {Type.LINK: Link, Type.XML: Xml}


class OperatorRuntime:
    """The operators of a run, in one process. Thread-safe; one round runs at a time."""

    def __init__(
        self,
        declarations: Sequence[Declaration],
        *,
        allowed: Sequence[str] = (),
        limits: OperatorLimits | None = None,
        grants: OperatorGrants | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.declarations = {each.name: each for each in declarations}
        self.limits = limits or OperatorLimits()
        self.statistics = OperatorStatistics(declarations)
        self._lock = threading.Lock()
        granted = grants or OperatorGrants()
        self._child = ChildSupervisor(declarations, allowed, self.limits, clock, granted)
        breakers = {name: Breaker(clock) for name in self.declarations}
        self._context = RoundContext(self._child, self.limits, breakers, self.statistics, clock)

    def __enter__(self) -> OperatorRuntime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._child.close()

    @property
    def child_pid(self) -> int | None:
        """The process id of the child, if it is running."""
        return self._child.pid

    def refused(self) -> dict[str, str]:
        """The operators that cannot be loaded, with the reason. Starts the child if needed."""
        with self._lock:
            return dict(self._child.refused())

    @property
    def failures(self) -> Mapping[str, Failures]:
        return self.statistics.failures

    def observed(self, observed: Iterable[tuple[EncodedCall, Sequence[float]]]) -> None:
        with self._lock:
            for predicate, (items, true, seconds) in observed:
                self.statistics.estimates.observe(
                    predicate.operator, predicate.encoded, items=items, true=true, seconds=seconds
                )

    def take_report(self) -> Report:
        """What was observed and counted since the last report, for the statistics of the driver."""
        with self._lock:
            return self.statistics.take_report()

    def answer(
        self, predicates: Sequence[EncodedCall], starts: Longs, rows: Rows, items: RoundItems
    ) -> RoundAnswers:
        with self._lock:
            return Round(predicates, starts, rows, items, self._context).answer()


class PlanCalls:
    """The operator calls of a plan, by number. Making it starts no process."""

    def __init__(self, runtime: OperatorRuntime, calls: Sequence[Call]) -> None:
        self.runtime = runtime
        self.calls = tuple(calls)
        self.encoded = tuple(self._encode(call) for call in calls)

    def observed(self, predicates: Longs, observed: Floats) -> None:
        """Add what an evaluation order has counted: items, items true and seconds of each."""
        self.runtime.observed(
            (self.encoded[number], counts)
            for number, counts in zip(predicates.tolist(), observed.tolist(), strict=True)
        )

    def _encode(self, call: Call) -> EncodedCall:
        declared = self.runtime.declarations.get(call.operator)
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

    def __init__(self, calls: PlanCalls, batch: pa.RecordBatch, schema: Schema) -> None:
        self._calls, self._batch, self._schema = calls, batch, schema

    def evaluate_round(self, predicates: Rows, starts: Longs, rows: Rows) -> RoundAnswers:
        """Evaluate predicates[n] for rows[starts[n]] … rows[starts[n + 1] - 1], for each n."""
        batch_rows = np.ascontiguousarray(rows, np.int32)
        if (
            batch_rows.size
            and not 0 <= int(batch_rows.min()) <= int(batch_rows.max()) < self._batch.num_rows
        ):
            raise IndexError(f"rows must be from 0 to {self._batch.num_rows - 1}")
        encoded = self._calls.encoded
        calls = [encoded[each] for each in predicates.tolist()]
        items = RoundItems(self, self._packed)
        answers = self._calls.runtime.answer(calls, starts, batch_rows, items)
        for call, bound in answers.bound.items():
            answers.bound[call] = _with_text_types(bound, calls[call].marks)
        return answers

    def evaluate(self, predicate: int, rows: Rows) -> CallAnswers:
        """Evaluate one predicate."""
        starts = np.array([0, len(rows)], np.int64)
        answers = self.evaluate_round(np.array([predicate], np.int32), starts, rows)
        if not answers.bound:
            return CallAnswers(answers.answered, answers.true)
        return CallAnswers(
            answers.answered, answers.true, answers.bound[0].starts, answers.bound[0].values
        )

    def _packed(self) -> bytes:
        return frames.pack_batch(self._batch, self._schema)


def _with_text_types(bound: BoundValues, marks: Sequence[type[str] | None]) -> BoundValues:
    columns = zip(bound.values, marks, strict=True)
    values = tuple(TypedTexts(each, mark) if mark else each for each, mark in columns)
    return BoundValues(bound.starts, values)
