"""Keeps a child process for operators running, and starts it again after it was killed.

An operator whose module hangs or crashes on import is left out from then on, so that it does not
stop the others. If no child can be started at all, the next attempt waits for 1 s, then for twice
as long each time, up to a minute; until then every call fails at once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from headgate.model.errors import OperatorError
from headgate.operators import frames
from headgate.operators.child_process import ChildProcess, Stopped
from headgate.operators.declaration import Declaration, Form, OperatorGrants, OperatorLimits
from headgate.operators.failures import Failure

PAUSE_S, PAUSE_MAX_S = 1.0, 60.0


UNPACKING_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    OSError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    struct.error,
    pa.ArrowException,
)
"""What unpacking a response raises if an operator has written into the pipe itself."""


class ChildSupervisor:
    """Not thread-safe."""

    def __init__(
        self,
        declarations: Sequence[Declaration],
        allowed: Sequence[str],
        limits: OperatorLimits,
        clock: Callable[[], float],
        grants: OperatorGrants,
    ) -> None:
        self.starts = 0
        self._declarations, self._allowed, self._limits = list(declarations), allowed, limits
        self._clock, self._grants = clock, grants
        self._child: ChildProcess | None = None
        self._forms: dict[str, Form] = {}
        self._refused: dict[str, str] = {}
        self._sent_token: object = None
        self._pause_s, self._not_before = PAUSE_S, 0.0

    @property
    def pid(self) -> int | None:
        return None if self._child is None else self._child.pid

    def forms(self) -> Mapping[str, Form]:
        """The form of each operator that can be loaded."""
        self._ready()
        return self._forms

    def refused(self) -> Mapping[str, str]:
        """The operators that cannot be loaded, with the reason."""
        self._ready()
        return self._refused

    def exchange(
        self,
        request: frames.CallRequest,
        *,
        token: object,
        pack_items: Callable[[], bytes],
        limit_s: Callable[[int], float],
    ) -> Iterator[frames.CallResponse]:
        """Send a request and yield the responses as they come, in the order of the rows.

        Raises `Stopped` if the child stops. It may end before all rows are answered, where the
        child gives up (`ChildServer`).
        """
        child, answered, ended = self._ready(), 0, False
        items = b"" if self._sent_token is token else pack_items()
        try:
            child.send(items + frames.pack_request(request))
            self._sent_token = token
            while not ended:
                response = _checked_response(child.receive(limit_s)[1], request, answered)
                answered += len(response.states)
                ended = response.then == frames.LAST
                yield response
                if response.then == frames.REPLACE:
                    return
        finally:
            if not ended:
                self.close()

    def close(self) -> None:
        child, self._child, self._sent_token = self._child, None, None
        if child is not None:
            child.kill()

    def _ready(self) -> ChildProcess:
        if self._child is None:
            if self._clock() < self._not_before:
                raise OperatorError("the process for operators could not be started; retried later")
            try:
                self._child = self._start()
            except OperatorError:
                self._not_before = self._clock() + self._pause_s
                self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
                raise
            self._pause_s = PAUSE_S
        return self._child

    def _start(self) -> ChildProcess:
        while True:
            self.starts += 1
            child = ChildProcess(self._allowed, self._grants)
            try:
                self._note_loaded(child.set_up(self._declarations, self._limits))
            except UNPACKING_ERRORS as error:
                child.kill()
                raise OperatorError(f"the process for operators answers {error!r}") from error
            except Stopped as stop:
                if stop.position is None or not 0 <= stop.position < len(self._declarations):
                    raise OperatorError(
                        f"no process for operators can be started: {stop}"
                    ) from stop
                hanging = self._declarations.pop(stop.position)
                self._refused[hanging.name] = (
                    f"operator '{hanging.name}': '{hanging.target}' cannot be loaded: {stop}"
                )
                continue
            return child

    def _note_loaded(self, loaded: Mapping[str, Mapping[str, object]]) -> None:
        for name, result in loaded.items():
            if "error" in result:
                self._refused[name] = str(result["error"])
                self._forms.pop(name, None)
            else:
                bound = result["binds"]
                names = tuple(map(str, bound)) if isinstance(bound, list) else None
                self._forms[name] = Form(bool(result["batch"]), names)
                self._refused.pop(name, None)


def _checked_response(
    content: bytes, request: frames.CallRequest, answered: int
) -> frames.CallResponse:
    """The response, if it answers the rows after the first `answered` ones of the request."""
    try:
        response = frames.unpack_response(content)
        if (response.counts < 0).any() or not (response.seconds >= 0).all():
            raise ValueError("a number of rows or seconds is negative")
        if not np.isfinite(response.seconds).all():
            raise ValueError("a number of seconds is not finite")
        row_ends = answered + np.cumsum(response.counts)
        ends = request.ends[response.first : response.first + len(row_ends)]
        begin = request.ends[response.first - 1] if response.first else 0
        if not begin <= answered < row_ends[-1] <= ends[-1] or (row_ends[:-1] != ends[:-1]).any():
            raise ValueError("the rows are not those of the request")
    except UNPACKING_ERRORS as error:
        message = f"its process sends an invalid response: {error}"
        raise Stopped(Failure.WRONG, message, None) from error
    return response
