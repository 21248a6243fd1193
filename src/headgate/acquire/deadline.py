"""Connections that end when what they are made for must end.

httpcore's limits are for one read each, so a server that sends one byte a second would hold a
worker for months. A fetch or a call runs in one thread from its beginning to its end, and so its
deadline is kept for the thread: every connect, read and write is given what is left until then.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import httpcore

Resolver = Callable[[str, int], Sequence[str]]
"""The addresses of a host, as texts."""


def resolve_by_system(host: str, port: int) -> list[str]:
    """The addresses of a host as the operating system knows them, without repetitions."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class Deadline:
    """When what this thread does must have ended. Thread-safe: each thread has its own."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._of_thread = threading.local()

    @contextmanager
    def within(self, total_s: float) -> Iterator[None]:
        self._of_thread.at = time.monotonic() + total_s
        try:
            yield
        finally:
            del self._of_thread.at

    def left_s(self) -> float:
        at: float = self._of_thread.at
        return at - time.monotonic()

    def clamp(self, timeout_s: float | None, expired: type[Exception]) -> float:
        """The limit for one step, so that it ends with all of them."""
        left_s = self.left_s()
        if left_s <= 0:
            raise expired(f"the time for this {self._what} is up")
        return left_s if timeout_s is None else min(timeout_s, left_s)


class DeadlineStream(httpcore.NetworkStream):
    """A connection whose every step ends with what it is used for."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        limit_s = self._deadline.clamp(timeout, httpcore.ReadTimeout)
        return self._stream.read(max_bytes, limit_s)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.clamp(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        limit_s = self._deadline.clamp(timeout, httpcore.ConnectTimeout)
        secured = self._stream.start_tls(ssl_context, server_hostname, limit_s)
        return DeadlineStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)
