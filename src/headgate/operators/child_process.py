"""The child process as its parent sees it: started, watched, and killed if it hangs.

    parent                         child
    request ── pipe ─────────────► call, call, call …
    poll ◄───────────── pipe ───── answers, every 50 ms
      └── page: item 17 since 12:00:03.2 ──► longer than it may? kill

Invariant: every exchange ends, whatever the operator does: it sleeps, loops in C with the
interpreter lock held, crashes, exits, stops itself. The process and whatever it has started end
(headgate/sandbox).

Cost: 0.4 to 0.5 s for starting a child, most of it for NumPy and Arrow; 0.15 ms for an exchange, of
however many calls, and 0.1 to 0.3 µs for each item in them more than the same call costs in the
same process (`headgate bench operator-calls`).

Rejected. A *signal* (SIGALRM) in the process itself: Python runs handlers between its instructions
only, so a loop in C never ends; it works in the main thread only; and an exception at an arbitrary
point may leave a module in an inconsistent state. *Threads*: cannot be stopped. *A process for each
call*: 0.4 s. *A child that is forked* from one that has loaded everything, which saves
most of the 0.4 s: a child that is killed has used up its time limit of a second before, and
libraries that start threads do not survive a fork. *A message for each item*: a system call and a
switch of processes each, where the page takes 0.2 µs.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import signal
import tempfile
import time
from collections.abc import Callable, Sequence

from headgate.model.errors import OperatorError
from headgate.operators import frames
from headgate.operators.declaration import Declaration, OperatorGrants, OperatorLimits
from headgate.operators.failures import Failure
from headgate.sandbox.confinement import SandboxedProcess, SandboxError

IDLE_S = 60.0
"""How long the child may take outside of operators: to start, to read a batch."""
_POLL_S = 0.1
_ENDING_S = 2.0
_PIPE_BYTES = 1 << 16
_ANSWER_BYTES_MAX = 1 << 30


class Stopped(Exception):
    """The child has stopped; `position` is the item that an operator was working on, if any."""

    def __init__(self, failure: Failure, message: str, position: int | None) -> None:
        super().__init__(message)
        self.failure = failure
        self.position = position


class ChildProcess:
    """Not thread-safe. After `Stopped` it cannot be used any more."""

    def __init__(self, allowed: Sequence[str], grants: OperatorGrants) -> None:
        self._buffer = bytearray()
        with tempfile.TemporaryFile() as file:
            file.truncate(frames.PAGE_BYTES)
            self._page = mmap.mmap(file.fileno(), frames.PAGE_BYTES)
            frames.PAGE.pack_into(self._page, 0, frames.IDLE, 0.0)
            try:
                self._process = SandboxedProcess(
                    grants.confinement(allowed, page=file.fileno()), pass_fds=(file.fileno(),)
                )
            except SandboxError as error:
                raise OperatorError(f"no process for operators can be started: {error}") from error
        self._pipes = (self._process.to_child, self._process.from_child)
        self._writable, self._readable = select.poll(), select.poll()
        self._writable.register(self._pipes[0].fileno(), select.POLLOUT)
        self._readable.register(self._pipes[1].fileno(), select.POLLIN)
        self._allowed = allowed

    @property
    def pid(self) -> int:
        return self._process.pid

    def set_up(
        self, declarations: Sequence[Declaration], limits: OperatorLimits
    ) -> dict[str, dict[str, object]]:
        """Load the operators; returns the form or the error of each."""
        setup = {
            "allowed": list(self._allowed),
            "limits": limits.to_json(),
            "operators": [each.to_json() for each in declarations],
        }
        self.send(frames.pack(frames.SETUP, json.dumps(setup).encode()))
        _, content = self.receive(lambda _position: limits.load_s)
        loaded: dict[str, dict[str, object]] = json.loads(content)
        return loaded

    def send(self, frame: bytes) -> None:
        descriptor = self._pipes[0].fileno()
        unsent, until = memoryview(frame), time.monotonic() + IDLE_S
        while unsent:
            if not self._writable.poll(max(until - time.monotonic(), 0) * 1000):
                raise self._stopped(Failure.LATE, "it does not read its requests", None)
            try:
                unsent = unsent[os.write(descriptor, unsent[:_PIPE_BYTES]) :]
            except OSError:
                raise self._died() from None

    def receive(self, limit_s: Callable[[int], float]) -> tuple[bytes, bytes]:
        """The next message; `limit_s` gives the time limit of the item that the child is at."""
        # The page is the child's: it may say anything. An item begins no later than it was first
        # seen here, and items are counted upwards, so this ends whatever the page says.
        idle_since = seen_at = time.monotonic()
        furthest = frames.IDLE
        while (frame := self._next_frame()) is None:
            position, since = frames.PAGE.unpack_from(self._page)
            suspect = None if position == frames.IDLE else position
            if position > furthest:
                furthest, seen_at = position, time.monotonic()
            allowed_s = IDLE_S if suspect is None else limit_s(suspect)
            began = idle_since if suspect is None else since if since < seen_at else seen_at
            left_s = began + allowed_s - time.monotonic()
            if left_s <= 0:
                if position != frames.PAGE.unpack_from(self._page)[0]:
                    continue  # it returned just now
                raise self._stopped(Failure.LATE, f"it takes longer than {allowed_s:g} s", suspect)
            self._read(min(left_s, _POLL_S))
        return frame

    def kill(self) -> None:
        self._process.end()

    def _next_frame(self) -> tuple[bytes, bytes] | None:
        if len(self._buffer) < frames.HEAD.size:
            return None
        kind, length = frames.HEAD.unpack_from(self._buffer)
        if length > _ANSWER_BYTES_MAX:
            raise self._stopped(Failure.WRONG, "its answer is larger than 1 GB", None)
        end = frames.HEAD.size + length
        if len(self._buffer) < end:
            return None
        content = bytes(self._buffer[frames.HEAD.size : end])
        del self._buffer[:end]
        return kind, content

    def _read(self, seconds: float) -> None:
        if self._readable.poll(seconds * 1000):
            part = os.read(self._pipes[1].fileno(), _PIPE_BYTES)
            self._buffer += part
            if part:
                return
        elif self._process.exit_code(0.0) is None:
            return
        # The pipe is closed, or the process has ended and a forked copy keeps the pipe open.
        raise self._died()

    def _died(self) -> Stopped:
        position, _ = frames.PAGE.unpack_from(self._page)
        code = self._process.exit_code(_ENDING_S)
        message = "it was stopped"
        if code is not None:
            message = f"its process ended with {code}" if code >= 0 else _signalled(-code)
        return self._stopped(Failure.DIED, message, None if position == frames.IDLE else position)

    def _stopped(self, failure: Failure, message: str, position: int | None) -> Stopped:
        self.kill()
        return Stopped(failure, message, position)


def _signalled(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"its process was ended by {name}"
