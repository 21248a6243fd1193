"""The program that runs in the child process: it loads operators, and calls them as requested.

child_process.py starts it in a sandbox (headgate/sandbox), sends requests and ends it. An operator
sees the items that it is given, what is installed, the modules that the administrator has allowed
by name, and what he has granted besides; nothing else of the machine. Its memory is limited, and
its standard output is discarded. It can start no process; where the kernel cannot forbid that, a
forked copy cannot answer, and exits when it returns to the loop below.

An operator that does not release the interpreter lock is limited by processor time, which is set
anew with each response.
"""

from __future__ import annotations

import json
import mmap
import os
import time

import numpy as np

from headgate.match.item_columns import STORED_AS
from headgate.model.errors import OperatorError
from headgate.operators import frames
from headgate.operators.answers import FAILED, Rows, failed_part
from headgate.operators.call_items import CallResult, RowItems, call_batch, call_items
from headgate.operators.declaration import Declaration, OperatorLimits
from headgate.operators.failures import FAILURES_MAX, Failure
from headgate.operators.load import LoadedOperator, load
from headgate.operators.prepared_call import PreparedCall, decode_call, prepare, variable_types
from headgate.sandbox.enter import ConfinedProcess

RESPONSE_S = 0.05
"""Responses are sent so often: after a crash no more than that must be evaluated again."""
CALLS_KEPT = 100_000
_CPU_SLACK_S = 5.0


class ChildServer:
    def __init__(self, process: ConfinedProcess, page: mmap.mmap) -> None:
        self._process = process
        self._incoming, self._outgoing = process.incoming, process.outgoing
        # The two halves of frames.PAGE, without packing them.
        self._positions, self._times = memoryview(page).cast("q"), memoryview(page).cast("d")
        self._is_copy = False
        self._loaded: dict[str, LoadedOperator] = {}
        self._declarations: dict[str, Declaration] = {}
        self._calls: dict[bytes, PreparedCall] = {}
        self._items: RowItems | None = None
        self._limits = OperatorLimits()
        os.register_at_fork(after_in_child=self._mark_as_copy)

    def serve(self) -> None:
        """Answer messages until the pipe is closed."""
        while head := self._incoming.read(frames.HEAD.size):
            kind, length = frames.HEAD.unpack(head)
            content = self._incoming.read(length)
            if kind == frames.SETUP:
                self._set_up(content)
            elif kind == frames.BATCH:
                self._items = RowItems(*frames.unpack_batch(content))
            else:
                self._answer(frames.unpack_request(content))

    def _set_up(self, content: bytes) -> None:
        setup = json.loads(content)
        self._limits = OperatorLimits(**setup["limits"])
        self._process.limit_memory(self._limits.memory_bytes)
        loaded: dict[str, dict[str, object]] = {}
        declarations = [Declaration.from_json(each) for each in setup["operators"]]
        for position, declaration in enumerate(declarations):
            self._mark(position, time.monotonic())
            self._declarations[declaration.name] = declaration
            try:
                operator = load(declaration, setup["allowed"])
                self._loaded[declaration.name] = operator
                loaded[declaration.name] = {
                    "batch": operator.form.batch,
                    "binds": operator.form.binds,
                }
            except OperatorError as error:
                loaded[declaration.name] = {"error": str(error)}
        self._mark(frames.IDLE, 0.0)
        self._send(frames.pack(frames.READY, json.dumps(loaded).encode()))

    def _answer(self, request: frames.CallRequest) -> None:
        """Run the calls one after the other. It ends early if no memory is left, or if an operator
        always fails; the parent sends the rest again, or gives up."""
        answers: list[CallResult] = []
        failing: dict[str, int] = {}
        answered_rows, first, until = 0, 0, self._begin_response()
        for number, (call, end) in enumerate(
            zip(request.calls, request.ends.tolist(), strict=True)
        ):
            while answered_rows < end:
                called = self._call(call, request.rows[answered_rows:end], answered_rows, until)
                answers.append(called)
                answered_rows += len(called.part)
                then = frames.LAST if answered_rows == len(request.rows) else frames.MORE
                if called.out_of_memory:
                    then = frames.REPLACE
                elif called.failures and self._fails_always(call, called, failing):
                    then = frames.LAST
                if then != frames.MORE or time.monotonic() >= until:
                    self._mark(frames.IDLE, 0.0)
                    self._send(frames.pack_response(first, answers, then))
                    answers, first, until = (
                        [],
                        number + (answered_rows == end),
                        self._begin_response(),
                    )
                if then != frames.MORE:
                    return

    def _begin_response(self) -> float:
        """Renew the limit of processor time; returns when the next response is due."""
        allowed_s = max(self._limits.item_s, self._limits.batch_s) + _CPU_SLACK_S
        self._process.limit_cpu(allowed_s * (os.cpu_count() or 1))
        return time.monotonic() + RESPONSE_S

    def _call(self, encoded: bytes, rows: Rows, position: int, until: float) -> CallResult:
        assert self._items is not None, "the items are sent before the first call"
        try:
            prepared = self._prepared(encoded)
        except OperatorError as error:
            return self._not_loaded_result(encoded, len(rows), str(error))
        bindings_max = self._limits.bindings_max
        if prepared.operator.form.batch:
            batch = self._items.take(rows)
            self._mark(position, time.monotonic())
            return call_batch(prepared, batch, bindings_max=bindings_max)
        return call_items(
            prepared,
            self._items.items(rows),
            bindings_max=bindings_max,
            mark=self._mark,
            first=position,
            until=until,
        )

    def _fails_always(self, encoded: bytes, called: CallResult, failing: dict[str, int]) -> bool:
        """Whether the operator has failed so often in a row that its breaker opens. Not for a batch
        form, which is called again for each half."""
        prepared = self._calls.get(encoded)
        if prepared is None or prepared.operator.form.batch:
            return False
        name, good = prepared.operator.name, np.flatnonzero(called.part.states != FAILED)
        before = 0 if good.size else failing.get(name, 0)
        failing[name] = before + len(called.part) - (int(good[-1]) + 1 if good.size else 0)
        return failing[name] >= FAILURES_MAX

    def _prepared(self, encoded: bytes) -> PreparedCall:
        prepared = self._calls.get(encoded)
        if prepared is None:
            call = decode_call(encoded, self._declarations)
            operator = self._loaded.get(call.operator)
            if operator is None:
                raise OperatorError(f"operator '{call.operator}' is not loaded")
            prepared = prepare(operator, call)
            if len(self._calls) >= CALLS_KEPT:
                self._calls.clear()
            self._calls[encoded] = prepared
        return prepared

    def _not_loaded_result(self, encoded: bytes, count: int, message: str) -> CallResult:
        call = decode_call(encoded, self._declarations)
        declared = variable_types(self._declarations[call.operator], call)
        types = [STORED_AS[each] for each in declared]
        return CallResult(failed_part(count, types), 0.0, {Failure.NOT_LOADED: (count, message)})

    def _mark(self, position: int, now: float) -> None:
        if self._is_copy:
            os._exit(0)
        self._positions[0] = position
        self._times[1] = now

    def _send(self, frame: bytes) -> None:
        if self._is_copy:
            os._exit(0)
        self._outgoing.write(frame)
        self._outgoing.flush()

    def _mark_as_copy(self) -> None:
        self._is_copy = True


def main(process: ConfinedProcess) -> None:
    descriptor = int(process.arguments[0])
    page = mmap.mmap(descriptor, frames.PAGE_BYTES)
    os.close(descriptor)
    ChildServer(process, page).serve()
