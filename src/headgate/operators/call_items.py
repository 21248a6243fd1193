"""Calling an operator item by item, or for a whole batch, in the process that has its function.

Exceptions and invalid answers are caught and counted here. Limits on time and memory are those of
the process (child.py).

Cost: 1 µs for each item besides the function itself, measured by `headgate bench operator-calls`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from headgate.match.item_columns import STORED_AS, items_from_arrow, items_to_arrow
from headgate.model.atoms import Argument, Call
from headgate.model.errors import OperatorError
from headgate.model.evaluate import Answer, Operator
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.model.values import Value
from headgate.operators.answers import (
    FAILED,
    FALSE,
    TRUE,
    CallAnswers,
    PartialAnswers,
    Rows,
    answers_of,
    arrow_of,
    arrow_of_lists,
)
from headgate.operators.check_answer import WrongAnswer, checked_batch, solutions_of, truth_of
from headgate.operators.declaration import OperatorLimits
from headgate.operators.failures import Failure, FailureCounts, short
from headgate.operators.load import LoadedOperator
from headgate.operators.prepared_call import PreparedCall, prepare, select

Mark = Callable[[int, float], None]
"""Called before each item with its position and the time."""


@dataclass(slots=True)
class CallResult:
    """The answers for the first items of a list, as many as there was time for."""

    part: PartialAnswers
    seconds: float
    failures: FailureCounts = field(default_factory=dict)
    out_of_memory: bool = False


class RowItems:
    """The rows of a record batch as items, each made when it is first needed."""

    def __init__(self, batch: pa.RecordBatch, schema: Schema) -> None:
        self.batch = batch
        self.schema = schema
        self._items: list[Item | None] = [None] * batch.num_rows

    def items(self, rows: Rows) -> list[Item]:
        items = self._items
        missing = np.array([row for row in rows.tolist() if items[row] is None], np.int32)
        if missing.size:
            new_items = items_from_arrow(self.batch.take(arrow_of(missing)), self.schema)
            for row, item in zip(missing.tolist(), new_items, strict=True):
                # One operator must not change what the next one sees.
                attributes = MappingProxyType(dict(item.attributes))
                items[row] = Item(item.id, item.source, item.time, attributes)
        return [item for row in rows.tolist() if (item := items[row]) is not None]

    def take(self, rows: Rows) -> pa.RecordBatch:
        """Without a copy where the rows lie side by side."""
        if rows.size and rows[-1] - rows[0] == rows.size - 1 and np.all(np.diff(rows) == 1):
            return self.batch.slice(int(rows[0]), rows.size)
        return self.batch.take(arrow_of(rows))


def call_items(
    prepared: PreparedCall,
    items: Sequence[Item],
    *,
    bindings_max: int,
    mark: Mark = lambda _position, _now: None,
    first: int = 0,
    until: float = float("inf"),
) -> CallResult:
    """Call the function on one item after the other, until all are done or `until` is reached.

    `mark` is called before each item; `first` is the position of the first one.
    """
    states: list[int] = []
    solutions: list[list[tuple[Value, ...]]] = []
    called = CallResult(PartialAnswers(np.zeros(0, np.uint8)), 0.0)
    began = now = time.monotonic()
    for position, item in enumerate(items, first):
        mark(position, now)
        answer: bool | list[tuple[Value, ...]] | None = None
        try:
            answer = solve(prepared, item, bindings_max=bindings_max)
        except WrongAnswer as error:
            _failed(called, Failure.WRONG, str(error))
        except (Exception, SystemExit) as error:
            called.out_of_memory |= isinstance(error, MemoryError)
            _failed(called, Failure.RAISED, f"{type(error).__name__}: {_message_of(error)}")
        if answer is None:
            states.append(FAILED)
            solutions.append([])
        else:
            states.append(TRUE if answer else FALSE)
            solutions.append([] if isinstance(answer, bool) else answer)
        now = time.monotonic()
        if now >= until or called.out_of_memory:
            break
    called.seconds = now - began
    called.part = PartialAnswers(np.array(states, np.uint8), _lists(prepared, solutions))
    return called


def solve(
    prepared: PreparedCall, item: Item, *, bindings_max: int
) -> bool | list[tuple[Value, ...]]:
    """The answer of a function that is called item by item, for one item."""
    answer = prepared.operator.function(item, *prepared.arguments)
    if not prepared.types:
        return truth_of(answer)
    selected = select(prepared, solutions_of(answer, prepared.types, bindings_max=bindings_max))
    return selected if prepared.variables else bool(selected)


def call_batch(prepared: PreparedCall, batch: pa.RecordBatch, *, bindings_max: int) -> CallResult:
    """Call a batch form once. If it fails, all its items fail."""
    part = PartialAnswers(
        np.full(batch.num_rows, FAILED, np.uint8), _lists(prepared, [[]] * batch.num_rows)
    )
    called = CallResult(part, 0.0)
    began = time.monotonic()
    try:
        answer = prepared.operator.function(batch, *prepared.arguments)
        called.part = checked_batch(
            answer, prepared, count=batch.num_rows, bindings_max=bindings_max
        )
    except WrongAnswer as error:
        _failed(called, Failure.WRONG, str(error), batch.num_rows)
    except (Exception, SystemExit) as error:
        called.out_of_memory = isinstance(error, MemoryError)
        message = f"{type(error).__name__}: {_message_of(error)}"
        _failed(called, Failure.RAISED, message, batch.num_rows)
    called.seconds = time.monotonic() - began
    return called


def call_here(
    operator: LoadedOperator, call: Call, rows: Rows, items: RowItems, limits: OperatorLimits
) -> CallAnswers:
    """Call an operator in this process, without limits on time or memory."""
    prepared = prepare(operator, call)
    if operator.form.batch:
        called = call_batch(prepared, items.take(rows), bindings_max=limits.bindings_max)
    else:
        called = call_items(prepared, items.items(rows), bindings_max=limits.bindings_max)
    types = [STORED_AS[prepared.types[at]] for at in prepared.variables]
    return answers_of(called.part, types)


def oracle_operators(
    loaded: Mapping[str, LoadedOperator], schema: Schema, limits: OperatorLimits | None = None
) -> dict[str, Operator]:
    """The operators as model/evaluate.py, the oracle, calls them; failures raise an error."""
    bindings_max = (limits or OperatorLimits()).bindings_max
    return {
        name: _oracle_operator(operator, schema, bindings_max=bindings_max)
        for name, operator in loaded.items()
    }


def _oracle_operator(operator: LoadedOperator, schema: Schema, *, bindings_max: int) -> Operator:
    def answer(item: Item, *arguments: Argument) -> Answer:
        prepared = prepare(operator, Call(operator.name, arguments))
        if not operator.form.batch:
            return solve(prepared, item, bindings_max=bindings_max)
        batch = items_to_arrow([item], schema)
        called = call_batch(prepared, batch, bindings_max=bindings_max)
        if called.failures:
            raise OperatorError(next(iter(called.failures.values()))[1])
        if not prepared.variables:
            return bool(called.part.states[0] == TRUE)
        types = tuple(prepared.types[at] for at in prepared.variables)
        solutions = zip(*(each[0].as_py() for each in called.part.lists), strict=True)
        return solutions_of(solutions, types, bindings_max=bindings_max)  # links are links again

    return answer


def _failed(called: CallResult, failure: Failure, message: str, count: int = 1) -> None:
    before, _ = called.failures.get(failure, (0, ""))
    called.failures[failure] = before + count, short(message)


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "its message cannot be read"


def _lists(
    prepared: PreparedCall, solutions: Sequence[Sequence[tuple[Value, ...]]]
) -> tuple[pa.ListArray, ...]:
    return tuple(
        arrow_of_lists(
            [[solution[number] for solution in each] for each in solutions],
            STORED_AS[prepared.types[at]],
        )
        for number, at in enumerate(prepared.variables)
    )
