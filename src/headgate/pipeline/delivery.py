"""Delivery in a run: a worker that follows the log (deliver/delivery_worker.py), where it runs.

    process   a child of the run: `headgate deliver --config -`. Its stdout comes back through a
              pipe, so lines of `output console` appear where the run shows them; lines of JSON in
              its log are those of the run. A line through
              its stdin says that the log has something new. It ends with the run, however that
              ends, and is started again if it dies.
    thread    of this process: for a catalog in memory, and for tests with servers of their own
    nowhere   other processes deliver (`headgate deliver`)

A worker holds leases on slots. One that is stopped gives them back; one that is killed loses them
after a while, and the next one goes on from their cursors.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

from headgate.acquire.backoff import Backoff
from headgate.catalog.catalog import Catalog
from headgate.catalog.delivery_catalog import DeliveryCatalog
from headgate.deliver.delivery_config import DeliveryConfig
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_worker import DeliveryWorker
from headgate.deliver.settings import DeliverySettings
from headgate.model.errors import HeadgateError, printable
from headgate.pipeline.log_format import logs_are_json
from headgate.store.log_storage import LogStorage

Where = Literal["process", "thread", "nowhere"]
COMMAND = [sys.executable, "-m", "headgate", "deliver", "--config", "-"]
RESTART = Backoff(first_s=1.0, max_s=60.0, spread=(1.0, 1.0))
END_S = 30.0
ERROR_LENGTH_MAX = 300


class DeliveryThread:
    """A worker in a thread of this process."""

    def __init__(
        self,
        storage: LogStorage,
        catalog: Catalog,
        database: DeliveryDatabase,
        settings: DeliverySettings,
    ) -> None:
        self._parts = storage, DeliveryCatalog(catalog), database, settings
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="deliver", daemon=True)
        self._worker: DeliveryWorker | None = None
        self.error = ""

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """The log has something new."""
        if self._worker is not None:
            self._worker.wake()

    def stop(self) -> None:
        """Wait for the messages that are being sent."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                self._deliver()
            except HeadgateError as error:
                self.error = str(error)
                self._stopping.wait(RESTART.wait_s(1))

    def _deliver(self) -> None:
        with DeliveryWorker(*self._parts) as worker:
            self._worker = worker
            while not self._stopping.is_set():
                report = worker.step(datetime.now(UTC))
                self.error = ""
                if report.is_idle:
                    worker.wait()


class DeliveryProcess:
    """A worker in a child process, started again when it dies."""

    def __init__(self, config: DeliveryConfig, show: Callable[[str], object]) -> None:
        """`show` is called with the lines that it prints."""
        self._config, self._show = config, show
        self._stopping = threading.Event()
        self._child: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._keep, name="deliver", daemon=True)
        self.error = ""
        """Why it has died lately."""

    @property
    def pid(self) -> int | None:
        return None if self._child is None else self._child.pid

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """The log has something new. This may block if the child does not read."""
        child = self._child
        if child is not None and child.stdin is not None:
            with suppress(OSError, ValueError):  # it has ended, or is about to
                child.stdin.write("\n")
                child.stdin.flush()

    def stop(self) -> None:
        self._stopping.set()
        child = self._child
        if child is not None and child.stdin is not None:
            child.stdin.close()
        if self._thread.is_alive():
            self._thread.join(END_S)
        if child is not None and child.poll() is None:
            child.kill()

    def _keep(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            why = self._run()
            if self._stopping.is_set():
                return
            failures += 1
            self.error = f"the process of deliveries has ended: {why}"
            self._stopping.wait(RESTART.wait_s(failures))

    def _run(self) -> str:
        """Start it and show what it prints until it ends; why it ended."""
        with subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as child:
            self._child = child
            assert child.stdin is not None
            assert child.stdout is not None
            assert child.stderr is not None
            errors: list[str] = []
            listening = threading.Thread(target=_keep_last, args=[child.stderr, errors])
            listening.start()
            child.stdin.write(self._config.to_json() + "\n")
            child.stdin.flush()
            if self._stopping.is_set():
                child.stdin.close()
            self.error = ""
            for line in child.stdout:
                self._show(line)
            listening.join()
            code = child.wait()
        return printable(errors[-1].strip() if errors else f"code {code}")[:ERROR_LENGTH_MAX]


def _keep_last(stream: object, lines: list[str]) -> None:
    for line in stream:  # type: ignore[attr-defined]
        if line.startswith("{") and logs_are_json():
            sys.stderr.write(line)
        elif line.strip():
            lines[:] = [line]
