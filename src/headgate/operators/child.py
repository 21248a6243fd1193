"""The process in which operators run. child_process.py starts it, asks, and kills it.

What holds an operator back: its memory is limited by the kernel, and it can neither read what is
asked nor write what is answered, as both go through descriptors that it does not know; what it
prints goes nowhere. It may open files and connections, since operators look things up (§2.1.2), and
whoever runs Headgate has allowed their modules by name. If it forks, the copy is cut off: it cannot
answer, and ends where it would come back to this loop.

When the parent is gone, a thread sees it and ends the process, whatever operator it is in. An
operator that does not let threads run has a limit of processor time, which is set anew with each
part that is answered.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import select
import sys
import threading
import time
from typing import BinaryIO

from headgate.match.arrow_types import STORED_AS
from headgate.model.errors import OperatorError
from headgate.model.items import Item
from headgate.operators import frames
from headgate.operators.answers import Rows, failed_part
from headgate.operators.call_items import Called, Mark, RowItems, call_batch, call_items
from headgate.operators.declaration import Declaration, OperatorLimits
from headgate.operators.failures import Failure
from headgate.operators.load import LoadedOperator, load
from headgate.operators.prepared import PreparedCall, decode_call, prepare, variable_types

PART_S = 0.05
"""Answers are sent so often: what has to be asked again after a crash is no more than that."""
CALLS_KEPT = 100_000
_CPU_SLACK_S = 5.0


class Child:
    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO, page: mmap.mmap) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        # The two halves of frames.PAGE, without packing them.
        self._positions, self._moments = memoryview(page).cast("q"), memoryview(page).cast("d")
        self._is_copy = False
        self._loaded: dict[str, LoadedOperator] = {}
        self._declarations: dict[str, Declaration] = {}
        self._calls: dict[bytes, PreparedCall] = {}
        self._items: RowItems | None = None
        self._limits = OperatorLimits()
        os.register_at_fork(after_in_child=self._cut_off)

    def serve(self) -> None:
        """Until there is nothing more to read."""
        while head := self._incoming.read(frames.HEAD.size):
            kind, length = frames.HEAD.unpack(head)
            content = self._incoming.read(length)
            if kind == frames.SETUP:
                self._set_up(content)
            elif kind == frames.BATCH:
                self._items = RowItems(*frames.unpack_batch(content))
            else:
                self._answer(*frames.unpack_ask(content))

    def _set_up(self, content: bytes) -> None:
        setup = json.loads(content)
        sys.path[:] = setup["path"]
        self._limits = OperatorLimits(**setup["limits"])
        limit_memory(self._limits.memory_bytes)
        told: dict[str, dict[str, object]] = {}
        declarations = [Declaration.from_json(each) for each in setup["operators"]]
        for position, declaration in enumerate(declarations):
            self._mark(position, time.monotonic())
            self._declarations[declaration.name] = declaration
            try:
                found = load(declaration, setup["allowed"])
                self._loaded[declaration.name] = found
                told[declaration.name] = {"batch": found.form.batch, "binds": found.form.binds}
            except OperatorError as error:
                told[declaration.name] = {"error": str(error)}
        self._mark(frames.IDLE, 0.0)
        self._send(frames.pack(frames.READY, json.dumps(told).encode()))

    def _answer(self, encoded: bytes, rows: Rows) -> None:
        assert self._items is not None, "items come before questions"
        try:
            prepared = self._prepared(encoded)
        except OperatorError as error:
            self._tell(self._refusal(encoded, len(rows), str(error)), frames.LAST)
            return
        if prepared.operator.form.batch:
            batch = self._items.take(rows)
            self._rearm(self._limits.batch_s)
            self._mark(0, time.monotonic())
            called = call_batch(prepared, batch, bindings_max=self._limits.bindings_max)
            self._tell(called, frames.REPLACE if called.out_of_memory else frames.LAST)
        else:
            self._answer_items(prepared, self._items.items(rows))

    def _answer_items(self, prepared: PreparedCall, items: list[Item]) -> None:
        at, then = 0, frames.MORE
        while then == frames.MORE:
            self._rearm(self._limits.item_s)
            called = call_items(
                prepared,
                items[at:] if at else items,
                bindings_max=self._limits.bindings_max,
                mark=_shifted(self._mark, at) if at else self._mark,
                until=time.monotonic() + PART_S,
            )
            at += len(called.part)
            if called.out_of_memory:
                then = frames.REPLACE
            elif at == len(items):
                then = frames.LAST
            self._tell(called, then)

    def _tell(self, called: Called, then: int) -> None:
        self._mark(frames.IDLE, 0.0)
        self._send(frames.pack_part(called, then))

    def _prepared(self, encoded: bytes) -> PreparedCall:
        found = self._calls.get(encoded)
        if found is None:
            call = decode_call(encoded, self._declarations)
            operator = self._loaded.get(call.operator)
            if operator is None:
                raise OperatorError(f"operator '{call.operator}' is not loaded")
            found = prepare(operator, call)
            if len(self._calls) >= CALLS_KEPT:
                self._calls.clear()
            self._calls[encoded] = found
        return found

    def _refusal(self, encoded: bytes, count: int, message: str) -> Called:
        call = decode_call(encoded, self._declarations)
        declared = variable_types(self._declarations[call.operator], call)
        types = [STORED_AS[each] for each in declared]
        return Called(failed_part(count, types), 0.0, {Failure.NOT_LOADED: (count, message)})

    def _mark(self, position: int, now: float) -> None:
        if self._is_copy:
            os._exit(0)
        self._positions[0] = position
        self._moments[1] = now

    def _send(self, frame: bytes) -> None:
        if self._is_copy:
            os._exit(0)
        self._outgoing.write(frame)
        self._outgoing.flush()

    def _rearm(self, seconds: float) -> None:
        """So much processor time from now on, on as many cores as there are."""
        spent = resource.getrusage(resource.RUSAGE_SELF)
        allowed = (seconds + _CPU_SLACK_S) * (os.cpu_count() or 1)
        until = int(spent.ru_utime + spent.ru_stime + allowed) + 1
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        soft = until if hard == resource.RLIM_INFINITY else min(until, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))

    def _cut_off(self) -> None:
        self._is_copy = True


def _shifted(mark: Mark, by: int) -> Mark:
    return lambda position, now: mark(position + by, now)


def end_with_parent(incoming: int) -> None:
    """Wait until nobody holds the other end of the pipe."""
    waiting = select.poll()
    waiting.register(incoming, 0)
    waiting.poll()
    os._exit(1)


def limit_memory(allowed_bytes: int) -> None:
    """Address space beyond what is in use now; no file of the whole memory after a crash."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        used = 1 << 30
    for which, value in ((resource.RLIMIT_AS, used + allowed_bytes), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(which)
        soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (soft, hard))


def main() -> None:
    """The pipes come as standard input and output, and are moved out of the operators' way."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nowhere, standard)
    threading.Thread(target=end_with_parent, args=[incoming.fileno()], daemon=True).start()
    page = mmap.mmap(int(sys.argv[1]), frames.PAGE_BYTES)
    Child(incoming, outgoing, page).serve()


if __name__ == "__main__":
    main()
