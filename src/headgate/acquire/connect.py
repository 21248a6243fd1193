"""Connections that lead only to checked addresses, and that end when their fetch must end.

    URL ──► host, port ──► resolve once ──► check every address ──► connect to one of them
                                                  │
                                          one is refused: none is used

httpcore asks its network backend for connections, so this is the one place through which every
connection goes, those after a redirect included. The address that is connected to is the one that
was checked: there is no second look-up that could answer otherwise (DNS rebinding). TLS still
proves the host's *name*, and `Host` still says it, as both are made from the URL.

The clock: httpcore's limits are for one read each, so a server that sends one byte a second would
hold a worker for months. A fetch runs in one thread from its beginning to its end, and so its
deadline is kept for the thread: every connect, read and write is given what is left until then.
Name servers can be slow on purpose too, and `getaddrinfo` cannot be interrupted: it runs in a
thread of its own that is left behind when time is up, and ends by the resolver's own limits.

Rejected: checking the host before the request (the name may resolve otherwise a moment later), and
a proxy (one more service to run). Proxies of the environment are not used for the same reason.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import httpcore

from headgate.model.addresses import Allowed
from headgate.model.errors import FetchError

Resolver = Callable[[str, int], Sequence[str]]
"""The addresses of a host, as texts."""

ADDRESSES_TRIED = 4


def resolve_by_system(host: str, port: int) -> list[str]:
    """The addresses of a host as the operating system knows them, without repetitions."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class Deadline:
    """When the fetch of this thread must have ended. Thread-safe: each thread has its own."""

    def __init__(self) -> None:
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
        """The limit for one step, so that it ends with the fetch."""
        left_s = self.left_s()
        if left_s <= 0:
            raise expired("the time for this fetch is up")
        return left_s if timeout_s is None else min(timeout_s, left_s)


class CheckedBackend(httpcore.NetworkBackend):
    """Resolves, checks, connects. Thread-safe, as it keeps nothing but the threads' deadlines."""

    def __init__(self, *, allowed: Allowed, resolve: Resolver, deadline: Deadline) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._deadline = deadline
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        until = time.monotonic() + self._deadline.clamp(timeout, httpcore.ConnectTimeout)
        addresses = self._checked(host, port, until - time.monotonic())
        failure: Exception = httpcore.ConnectError(f"'{host}' has no address")
        for address in addresses[:ADDRESSES_TRIED]:
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise httpcore.ConnectTimeout("no address answered in time")
            try:
                stream = self._sockets.connect_tcp(
                    address, port, left_s, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _DeadlineStream(stream, self._deadline)
        raise failure

    def connect_unix_socket(
        self,
        path: str,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        raise FetchError("a feed is not fetched from a local socket")

    def _checked(self, host: str, port: int, timeout_s: float) -> Sequence[str]:
        addresses = resolve_within(self._resolve, host, port, timeout_s=timeout_s)
        for address in addresses:
            try:
                refusal = self._allowed.refusal(address)
            except ValueError:
                refusal = f"'{address}' is no address"
            if refusal:
                raise FetchError(f"'{host}' is not connected to: {refusal}")
        return addresses


class _DeadlineStream(httpcore.NetworkStream):
    """A connection whose every step ends with the fetch that it is used by."""

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
        return _DeadlineStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


def resolve_within(resolve: Resolver, host: str, port: int, *, timeout_s: float) -> Sequence[str]:
    """The host's addresses, or an error when they are not known in time."""
    found: list[Sequence[str]] = []
    failed: list[Exception] = []

    def look_up() -> None:
        try:
            found.append(resolve(host, port))
        except (OSError, UnicodeError) as error:
            failed.append(error)

    thread = threading.Thread(target=look_up, name="resolve", daemon=True)
    thread.start()
    thread.join(max(timeout_s, 0))
    if found:
        return found[0]
    if failed:
        raise FetchError(f"'{host}' has no address: {failed[0]}")
    raise FetchError(f"the name servers did not answer for '{host}' in {timeout_s:.0f} s")
