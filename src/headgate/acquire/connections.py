"""Connections to hosts of the Internet: checked addresses, a deadline, and few at a time per host.

    URL ──► host, port ──► resolve once ──► check every address ──► connect to one of them
                                                  │
                                          one is refused: none is used

`CheckedBackend` is the network backend of httpcore, so every connection goes through it, also those
after a redirect. It connects to the address that was checked: there is no second look-up that could
give another answer (DNS rebinding). TLS and the `Host` header still use the host's name, as both
are made from the URL. Callers pass the errors to raise.

`Deadline` limits a whole fetch or call. httpcore's timeouts are for one read each, so a server that
sends one byte a second could hold a worker for months. A fetch runs in one thread, so the deadline
is kept per thread, and every connect, read and write gets the time that is left. `getaddrinfo`
cannot be interrupted: it runs in a thread of its own, which is abandoned when the time is up.

`HostLimits` is the politeness to one host: at most two requests at once, at least a second from the
beginning of one to the next. The wait counts as part of the fetch.

Rejected: checking the host before the request (the name may resolve otherwise a moment later), and
a proxy (one more service to run). Proxies of the environment are ignored for the same reason.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpcore

from headgate.model.addresses import AllowedNetworks
from headgate.model.errors import FetchError

ADDRESSES_TRIED = 4
ErrorOf = Callable[[str], Exception]
"""An error with this text."""


class CheckedBackend(httpcore.NetworkBackend):
    """Resolves, checks, connects. Thread-safe, as it keeps nothing but the threads' deadlines."""

    def __init__(
        self,
        *,
        allowed: AllowedNetworks,
        resolve: Resolver,
        deadline: Deadline,
        refused: ErrorOf,
        unknown: ErrorOf,
    ) -> None:
        """`refused` is for addresses that are not connected to, `unknown` for hosts without any."""
        self._allowed = allowed
        self._resolve = resolve
        self._deadline = deadline
        self._refused, self._unknown = refused, unknown
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
                return DeadlineStream(stream, self._deadline)
        raise failure

    def connect_unix_socket(
        self,
        path: str,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        raise self._refused("a local socket is not connected to")

    def _checked(self, host: str, port: int, timeout_s: float) -> Sequence[str]:
        addresses = self._resolved(host, port, timeout_s)
        for address in addresses:
            try:
                refusal = self._allowed.refusal(address)
            except ValueError:
                refusal = f"'{address}' is no address"
            if refusal:
                raise self._refused(f"'{host}' is not connected to: {refusal}")
        return addresses

    def _resolved(self, host: str, port: int, timeout_s: float) -> Sequence[str]:
        """The host's addresses, or an error when they are not known in time."""
        found: list[Sequence[str]] = []
        failed: list[Exception] = []

        def look_up() -> None:
            try:
                found.append(self._resolve(host, port))
            except (OSError, UnicodeError) as error:
                failed.append(error)

        thread = threading.Thread(target=look_up, name="resolve", daemon=True)
        thread.start()
        thread.join(max(timeout_s, 0))
        if found:
            return found[0]
        if failed:
            raise self._unknown(f"'{host}' has no address: {failed[0]}")
        raise self._unknown(f"the name servers did not answer for '{host}' in {timeout_s:.0f} s")


# --- deadlines ------------------------------------------------------------------------------------

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


# --- limits per host ------------------------------------------------------------------------------

FORGET_ABOVE = 10_000
"""With this many hosts known, those that nobody uses are forgotten."""


@dataclass(slots=True)
class _Host:
    active: int = 0
    waiting: int = 0
    free_at: float = 0.0


class HostLimits:
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
