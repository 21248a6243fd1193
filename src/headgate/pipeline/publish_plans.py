"""Uploads plan files to the log's storage, so that executors need no folder of the driver.

    the driver's plans/<hash> ──► <log>/plans/<hash> ──► a copy on each executor's machine
    written by the planner        before a snapshot      (snapshot.open_snapshot,
                                  that names it is used   store/object_cache.py)

Files are named by their content and never change, so each is uploaded once: what the storage has is
listed when the run starts. Without an address of the log everything is in the one folder, and
nothing is copied.

If an upload fails, the snapshot is not used, and the planner tries again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from headgate.store.data_folder import DataFolder


class PublishedPlans:
    """Thread-safe."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._uploaded: set[str] | None = None
        self._lock = threading.Lock()

    def publish(self, names: Iterable[str]) -> int:
        """Upload those of these files that are new, in this order; how many there were."""
        if not self._folder.log:
            return 0
        storage = self._folder.storage
        with self._lock:
            if self._uploaded is None:
                self._uploaded = {name.removeprefix("plans/") for name in storage.names("plans")}
            new = [name for name in dict.fromkeys(names) if name not in self._uploaded]
            for name in new:
                storage.write(f"plans/{name}", (self._folder.plans / name).read_bytes())
                self._uploaded.add(name)
        return len(new)
