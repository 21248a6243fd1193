"""Politeness to one host: few connections at once, and a pause between two beginnings.

    host a  ──┤1├──────┤3├──────        at most 2 at once, at least 1 s from one to the next
              ──────┤2├──────────       whoever waits longer than the fetch may take gives up

A worker that waits here is not lost: the wait counts as a part of its fetch. The refresh policy
spreads the feeds of one host anyway, so waiting is the exception.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headgate.model.errors import FetchError

FORGET_ABOVE = 10_000
"""With this many hosts known, those that nobody uses are forgotten."""


@dataclass(slots=True)
class _Host:
    active: int = 0
    waiting: int = 0
    free_at: float = 0.0


class HostGate:
    """One for all threads. Thread-safe."""

    def __init__(self, *, at_once: int, delay_s: float) -> None:
        self._at_once = at_once
        self._delay_s = delay_s
        self._hosts: dict[str, _Host] = {}
        self._changed = threading.Condition()

    @contextmanager
    def slot(self, name: str, *, patience_s: float, goes_on: bool = False) -> Iterator[None]:
        """Wait for a turn at this host, or give up with an error.

        A request that goes on with what another one began there, as after a redirect, needs no
        pause.
        """
        host = self._enter(name, time.monotonic() + patience_s, goes_on=goes_on)
        try:
            yield
        finally:
            with self._changed:
                host.active -= 1
                self._changed.notify_all()

    def _enter(self, name: str, until: float, *, goes_on: bool) -> _Host:
        with self._changed:
            self._forget_idle()
            host = self._hosts.setdefault(name, _Host())
            host.waiting += 1
            try:
                while (wait_s := self._wait_s(host, goes_on=goes_on)) > 0:
                    left_s = until - time.monotonic()
                    if left_s <= 0 or (host.active < self._at_once and wait_s > left_s):
                        raise FetchError(f"'{name}' is busy: no turn came in time")
                    self._changed.wait(min(wait_s, left_s))
            finally:
                host.waiting -= 1
            host.active += 1
            host.free_at = time.monotonic() + self._delay_s
            return host

    def _wait_s(self, host: _Host, *, goes_on: bool) -> float:
        """How long until it is worth to look again; zero for now."""
        if host.active >= self._at_once:
            return 3600.0
        return 0.0 if goes_on else host.free_at - time.monotonic()

    def _forget_idle(self) -> None:
        if len(self._hosts) <= FORGET_ABOVE:
            return
        now = time.monotonic()
        self._hosts = {
            name: host
            for name, host in self._hosts.items()
            if host.active or host.waiting or host.free_at > now
        }
