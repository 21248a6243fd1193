"""One piece of work in a thread of its own, whose result somebody takes when it is there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Beside(Generic[Result]):
    """Work in a daemon thread: nobody waits for it when the process ends."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._found: list[Result] = []
        self._error: Exception | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, name="merge", daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> Result:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found[0]

    def _run(self) -> None:
        try:
            self._found.append(self._work())
        except Exception as error:  # told by whoever asks for the result
            self._error = error
