"""The child as one that is always there: started when it is needed, and again after it was killed.

An operator whose module hangs or crashes while it is imported is left out from then on, so that it
does not take the others with it. Where no child can be started at all, the next attempt waits: 1 s,
then twice as long each time, up to a minute; until then every question fails at once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from headgate.model.errors import OperatorError
from headgate.operators import frames
from headgate.operators.child_process import ChildProcess, Stopped
from headgate.operators.declaration import Declaration, Form, OperatorLimits
from headgate.operators.failures import Failure

PAUSE_S, PAUSE_MAX_S = 1.0, 60.0


NONSENSE = (ValueError, TypeError, LookupError, AttributeError, struct.error, pa.ArrowException)
"""What comes of reading what an operator wrote into a pipe that is not its own."""


class ChildSupervisor:
    """One thread at a time."""

    def __init__(
        self,
        declarations: Sequence[Declaration],
        allowed: Sequence[str],
        limits: OperatorLimits,
        clock: Callable[[], float],
    ) -> None:
        self.starts = 0
        self._declarations, self._allowed, self._limits = list(declarations), allowed, limits
        self._clock = clock
        self._child: ChildProcess | None = None
        self._forms: dict[str, Form] = {}
        self._refused: dict[str, str] = {}
        self._holds: object = None
        self._pause_s, self._not_before = PAUSE_S, 0.0

    @property
    def pid(self) -> int | None:
        return None if self._child is None else self._child.pid

    def forms(self) -> Mapping[str, Form]:
        """How the operators are written, of those that can be loaded."""
        self._ready()
        return self._forms

    def refused(self) -> Mapping[str, str]:
        """Why the others cannot be loaded."""
        self._ready()
        return self._refused

    def exchange(
        self,
        asked: frames.CallRequest,
        *,
        token: object,
        pack_items: Callable[[], bytes],
        limit_s: Callable[[int], float],
    ) -> Iterator[frames.CallResponse]:
        """Answers as they come, for one row after the other; `Stopped` where the child is gone.

        It may end before all rows are answered: see `Child`.
        """
        child, told, ended = self._ready(), 0, False
        items = b"" if self._holds is token else pack_items()
        try:
            child.send(items + frames.pack_ask(asked))
            self._holds = token
            while not ended:
                part = _checked_response(child.receive(limit_s)[1], asked, told)
                told += len(part.states)
                ended = part.then == frames.LAST
                yield part
                if part.then == frames.REPLACE:
                    return
        finally:
            if not ended:
                self.close()

    def close(self) -> None:
        child, self._child, self._holds = self._child, None, None
        if child is not None:
            child.kill()

    def _ready(self) -> ChildProcess:
        if self._child is None:
            if self._clock() < self._not_before:
                raise OperatorError("the process for operators could not be started a moment ago")
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
            child = ChildProcess()
            try:
                told = child.set_up(self._declarations, self._allowed, self._limits)
            except NONSENSE as error:
                child.kill()
                raise OperatorError(f"the process for operators answers {error!r}") from error
            except Stopped as stop:
                if stop.position is None:
                    raise OperatorError(
                        f"no process for operators can be started: {stop}"
                    ) from stop
                guilty = self._declarations.pop(stop.position)
                self._refused[guilty.name] = (
                    f"operator '{guilty.name}': '{guilty.target}' cannot be loaded: {stop}"
                )
                continue
            self._learn(told)
            return child

    def _learn(self, told: Mapping[str, Mapping[str, object]]) -> None:
        for name, found in told.items():
            if "error" in found:
                self._refused[name] = str(found["error"])
                self._forms.pop(name, None)
            else:
                bound = found["binds"]
                names = tuple(map(str, bound)) if isinstance(bound, list) else None
                self._forms[name] = Form(bool(found["batch"]), names)
                self._refused.pop(name, None)


def _checked_response(content: bytes, asked: frames.CallRequest, told: int) -> frames.CallResponse:
    try:
        part = frames.unpack_part(content)
        told_to = told + np.cumsum(part.counts)
        ends = asked.ends[part.first : part.first + len(told_to)]
        begin = asked.ends[part.first - 1] if part.first else 0
        if not begin <= told < told_to[-1] <= ends[-1] or (told_to[:-1] != ends[:-1]).any():
            raise ValueError("other answers than were asked for")
    except NONSENSE as error:
        message = f"its process answers nonsense: {error}"
        raise Stopped(Failure.WRONG, message, None) from error
    return part
