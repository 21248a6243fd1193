"""A lock that one process holds as long as it lives; the kernel releases it when the process dies.

The number of the holder is in the file, for messages. The file stays when the lock is released:
deleting it would let two processes lock two files of one name.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Self

from headgate.model.errors import StateError, StateTaken

_PAUSE_S = 0.05


class FileLock:
    """`what` is named in messages: "the outbox 'x'", "the folder 'y'"."""

    def __init__(self, path: Path, what: str, *, wait_s: float = 0.0) -> None:
        """`StateTaken` if another process holds it and does not release it in time."""
        self._descriptor = self._taken(path, what, time.monotonic() + wait_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @staticmethod
    def _taken(path: Path, what: str, until: float) -> int:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StateError(f"{what} cannot be locked: {error.strerror}") from error
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() < until:
                    time.sleep(_PAUSE_S)
                    continue
                holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
                os.close(descriptor)
                raise StateTaken(
                    f"{what} is written by process {holder or 'unknown'}; stop it first"
                ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        return descriptor
