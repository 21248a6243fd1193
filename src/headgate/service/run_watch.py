"""What the folder of the run says, for `/readyz` and `/metrics`.

It is looked at when somebody asks, at most every LOOK_S: neither needs much, and anybody may ask
for `/readyz`.
"""

from __future__ import annotations

import threading
import time

from headgate.api.headgate import Headgate
from headgate.pipeline.folder_status import FolderReader, FolderStatus

LOOK_S = 2.0


class RunWatch:
    """Thread-safe."""

    def __init__(self, headgate: Headgate) -> None:
        self._headgate = headgate
        self._lock = threading.Lock()
        self._reader: FolderReader | None = None
        self._found: tuple[float, FolderStatus] | None = None

    def look(self) -> FolderStatus:
        with self._lock:
            if self._found is None or time.monotonic() >= self._found[0]:
                if self._reader is None:
                    self._reader = self._headgate.folder_reader()
                status = self._reader.look()
                if not self._headgate.log and not self._headgate.folder.is_dir():
                    self._reader = None  # where the log is, the first run writes into its folder
                self._found = time.monotonic() + LOOK_S, status
            return self._found[1]

    def close(self) -> None:
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
