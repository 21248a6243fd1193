"""Threads that run jobs of many keys, few of each key at a time, in turn."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

Job = TypeVar("Job")


class KeyedThreads(Generic[Job]):
    """Threads that run jobs of many keys, with a limit for each key, in turn. Daemons: one that
    hangs in a write to a full pipe must not keep the process."""

    def __init__(
        self, name: str, *, threads: int, per_key: int, run: Callable[[Job], None]
    ) -> None:
        self._run, self._per_key = run, per_key
        self._changed = threading.Condition()
        self._queues: OrderedDict[str, deque[Job]] = OrderedDict()
        self._active: dict[str, int] = {}
        self._stopped = False
        self._threads = [
            threading.Thread(target=self._loop, name=f"{name} {n}", daemon=True)
            for n in range(threads)
        ]
        for each in self._threads:
            each.start()

    def submit(self, key: str, job: Job) -> None:
        with self._changed:
            self._queues.setdefault(key, deque()).append(job)
            self._changed.notify()

    def stop(self, timeout_s: float) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        until = time.monotonic() + timeout_s
        for each in self._threads:
            each.join(max(0.0, until - time.monotonic()))

    def _loop(self) -> None:
        while (taken := self._take()) is not None:
            key, job = taken
            try:
                self._run(job)
            finally:
                with self._changed:
                    self._active[key] -= 1
                    if not self._active[key]:
                        del self._active[key]
                    self._changed.notify()

    def _take(self) -> tuple[str, Job] | None:
        with self._changed:
            while not self._stopped:
                for key, queue in self._queues.items():
                    if self._active.get(key, 0) < self._per_key:
                        job = queue.popleft()
                        self._active[key] = self._active.get(key, 0) + 1
                        # The others come first next time.
                        del self._queues[key]
                        if queue:
                            self._queues[key] = queue
                        return key, job
                self._changed.wait()
            return None
