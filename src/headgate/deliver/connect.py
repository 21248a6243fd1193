"""Connections to webhook receivers: to judged addresses only, and within a limit on the whole call.

    URL ──► host, port ──► resolve once ──► judge every address ──► connect to one of them
                                                 │
                                         one is refused: none is used

httpcore asks its network backend for every connection, so there is no way around this. The address
that is connected to is the one that was judged (model/addresses.py): there is no second look-up
that could answer otherwise. TLS still proves the host's name, as it comes from the URL.

httpcore's timeouts are for one read each, so a receiver that sends a byte a second would hold a
worker for hours. A call runs in one thread, and its deadline is kept for the thread: every step is
given what is left until then.

`acquire` has its own, which follows redirects and resolves in a thread; they share the judgement.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import httpcore

from headgate.deliver.errors import OutputError
from headgate.model.addresses import Allowed

Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a host, as texts."""


def resolve_by_system(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class CallDeadline:
    """When the call of this thread must have ended; each thread has its own."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    @contextmanager
    def within(self, total_s: float) -> Iterator[None]:
        self._of_thread.at = time.monotonic() + total_s
        yield

    def clamp(self, timeout_s: float | None, expired: type[Exception]) -> float:
        left_s: float = self._of_thread.at - time.monotonic()
        if left_s <= 0:
            raise expired("the time for this call is up")
        return left_s if timeout_s is None else min(timeout_s, left_s)


class JudgedBackend(httpcore.NetworkBackend):
    """All threads may use it."""

    def __init__(self, allowed: Allowed, deadline: CallDeadline, resolve: Resolve) -> None:
        self._allowed = allowed
        self._deadline = deadline
        self._resolve = resolve
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception = httpcore.ConnectError(f"'{host}' has no address")
        for address in self._judged(host, port):
            limit_s = self._deadline.clamp(timeout, httpcore.ConnectTimeout)
            try:
                stream = self._sockets.connect_tcp(
                    address, port, limit_s, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _DeadlineStream(stream, self._deadline)
        raise failure

    def _judged(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"'{host}' has no address: {error}") from error
        for address in addresses:
            if refusal := self._allowed.refusal(address):
                raise OutputError(f"'{host}' is not connected to: {refusal}", lasting=True)
        return addresses


class _DeadlineStream(httpcore.NetworkStream):
    """A connection whose every step ends with the call that uses it."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: CallDeadline) -> None:
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
        return _DeadlineStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)
