"""A sandboxed process that answers one request after the other, each within its time.

    to the process     4 bytes length, and as many bytes
    from the process   the same; the first message says that it is ready

It is started with the first request. One that broke a limit, or that answers anything but one
message of JSON, is ended, and the next request starts another, so a request has no effect on later
ones. The pipes are polled: every exchange ends in time, whatever the process does.
"""

from __future__ import annotations

import json
import os
import select
import time
from signal import SIGXCPU

from headgate.sandbox.confinement import Confinement, SandboxedProcess, SandboxError

_START_S = 30.0
_PIPE_BYTES = 65_536


class RequestFailed(Exception):
    """The process broke a limit and was ended; the message says which."""


class RequestProcess:
    """Not thread-safe."""

    def __init__(
        self, confinement: Confinement, *, answer_bytes_max: int, requests_max: int = 10_000
    ) -> None:
        """After `requests_max` requests another process is started, in case that a library
        leaks."""
        self._confinement = confinement
        self._answer_bytes_max, self._requests_max = answer_bytes_max, requests_max
        self._process: SandboxedProcess | None = None
        self._requests = 0

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def ask(self, request: bytes, *, timeout_s: float) -> bytes:
        if self._requests >= self._requests_max:
            self.end()
        process = self._process or self._start()
        self._requests += 1
        framed = len(request).to_bytes(4, "big") + request
        try:
            return self._exchange(process, framed, time.monotonic() + timeout_s)
        except TimeoutError:
            raise self._failed(f"it takes longer than {timeout_s:g} s") from None
        except OSError:
            is_out_of_time = process.exit_code(_START_S) == -SIGXCPU
            raise self._failed(
                "it takes more processor time than allowed"
                if is_out_of_time
                else "it takes more memory or stack than allowed"
            ) from None

    def ask_json(self, request: object, *, timeout_s: float) -> object:
        """The answer, if it is JSON. Of which form it is, the process alone says."""
        answer = self.ask(json.dumps(request).encode(), timeout_s=timeout_s)
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise self._failed("its process gives no valid answer") from None

    def end(self) -> None:
        process, self._process, self._requests = self._process, None, 0
        if process is not None:
            process.end()

    def _start(self) -> SandboxedProcess:
        process = self._process = SandboxedProcess(self._confinement)
        try:
            self._exchange(process, b"", time.monotonic() + _START_S)
        except OSError as error:
            self.end()
            raise SandboxError(f"'{self._confinement.target}' cannot be started") from error
        return process

    def _failed(self, message: str) -> RequestFailed:
        self.end()
        return RequestFailed(message)

    def _exchange(self, process: SandboxedProcess, request: bytes, until: float) -> bytes:
        """Write the request, and read the answer. Raises `TimeoutError`, or another `OSError` if
        the process has ended or says too much."""
        to_child, from_child = process.to_child.fileno(), process.from_child.fileno()
        waiting = select.poll()
        waiting.register(from_child, select.POLLIN)
        if request:
            waiting.register(to_child, select.POLLOUT)
        unsent, answer, wanted = memoryview(request), bytearray(), 4
        while len(answer) < wanted:
            left_s = until - time.monotonic()
            ready = {each for each, _ in waiting.poll(max(left_s, 0) * 1000)}
            if not ready:
                raise TimeoutError
            if to_child in ready:
                unsent = unsent[os.write(to_child, unsent) :]
                if not unsent:
                    waiting.unregister(to_child)
            if from_child in ready:
                part = os.read(from_child, _PIPE_BYTES)
                answer += part
                if not part:
                    raise ConnectionError
            if len(answer) >= 4:
                wanted = 4 + int.from_bytes(answer[:4], "big")
            if wanted > self._answer_bytes_max:
                raise ConnectionError
        if len(answer) > wanted:  # what is too much would be the answer to the next request
            raise ConnectionError
        return bytes(answer[4:])
