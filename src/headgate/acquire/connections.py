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

`Admission` asks whether the fetch of the current thread may use an address: before it connects, and
before each request on a connection that was kept open. An address that is not admitted is left out;
if none is left, `AddressBusy` is raised.

`HostLimits` limits the load on one host: at most two requests at once, and at least a second from
the beginning of one to the next. The wait counts as part of the fetch.

Rejected: checking the host before the request (the name may resolve differently afterwards), and
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

ADDRESSES_TRIED = 4
ErrorOf = Callable[[str], Exception]
"""Makes an error with this message."""


class CheckedBackend(httpcore.NetworkBackend):
    """Resolves a host, checks its addresses, and connects. Thread-safe."""

    def __init__(
        self,
        *,
        allowed: AllowedNetworks,
        resolve: Resolver,
        deadline: Deadline,
        refused: ErrorOf,
        unknown: ErrorOf,
        admission: Admission | None = None,
    ) -> None:
        """`refused` makes errors for forbidden addresses, `unknown` for hosts without address."""
        self._allowed = allowed
        self._resolve = resolve
        self._deadline = deadline
        self._refused, self._unknown = refused, unknown
        self._admission = admission or Admission()
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
                self._admission.ask(address)
                stream = self._sockets.connect_tcp(
                    address, port, left_s, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout, AddressBusy) as error:
                failure = error
            else:
                return DeadlineStream(stream, self._deadline, self._admission, address)
        raise failure

    def connect_unix_socket(
        self,
        path: str,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        raise self._refused("a local socket is not connected to")

    def _checked(self, host: str, port: int, timeout_s: float) -> Sequence[str]:
        addresses = resolve_within(timeout_s, self._resolve, host, port, unknown=self._unknown)
        for address in addresses:
            if refusal := refusal_of(address, self._allowed):
                raise self._refused(f"'{host}' is not connected to: {refusal}")
        return addresses


# --- deadlines ------------------------------------------------------------------------------------

Resolver = Callable[[str, int], Sequence[str]]
"""The addresses of a host, as texts."""


def resolve_within(
    limit_s: float, resolve: Resolver, host: str, port: int, *, unknown: ErrorOf
) -> Sequence[str]:
    """The host's addresses; an error if the name servers do not answer in time. `getaddrinfo`
    cannot be interrupted: it runs in a thread, which is abandoned then."""
    results: list[Sequence[str]] = []
    errors: list[Exception] = []

    def look_up() -> None:
        try:
            results.append(resolve(host, port))
        except (OSError, UnicodeError) as error:
            errors.append(error)

    thread = threading.Thread(target=look_up, name="resolve", daemon=True)
    thread.start()
    thread.join(max(limit_s, 0))
    if results:
        return results[0]
    if errors:
        raise unknown(f"'{host}' has no address: {errors[0]}")
    raise unknown(f"the name servers did not answer for '{host}' in {limit_s:.0f} s")


def refusal_of(address: str, allowed: AllowedNetworks) -> str | None:
    """Why an address that a name server gave is not connected to; None if it may be."""
    try:
        return allowed.refusal(address)
    except ValueError:
        return f"'{address}' is no address"


def resolve_by_system(host: str, port: int) -> list[str]:
    """The distinct addresses of a host, from the operating system."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in answers))


class Deadline:
    """The time by which the operation of the current thread must end. Thread-safe: each thread has
    its own."""

    def __init__(self, operation: str) -> None:
        self._operation = operation
        self._of_thread = threading.local()

    @contextmanager
    def within(self, total_s: float) -> Iterator[None]:
        self._of_thread.at = time.monotonic() + total_s
        try:
            yield
        finally:
            del self._of_thread.at

    def left_s(self) -> float:
        ends_at: float = self._of_thread.at
        return ends_at - time.monotonic()

    def clamp(self, timeout_s: float | None, expired: type[Exception]) -> float:
        """The timeout of one step: the given one, or the time until the deadline if shorter."""
        left_s = self.left_s()
        if left_s <= 0:
            raise expired(f"the time for this {self._operation} is up")
        return left_s if timeout_s is None else min(timeout_s, left_s)


class AddressBusy(Exception):
    """The fetch may not use an address, or a host, now. It may be tried again."""


class Admission:
    """Which addresses the operation of the current thread may use; any, unless it says so.
    Thread-safe: each thread has its own."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    @contextmanager
    def given_by(self, admit: Callable[[str], bool]) -> Iterator[None]:
        self._of_thread.admit = admit
        try:
            yield
        finally:
            del self._of_thread.admit

    def ask(self, address: str) -> None:
        admit: Callable[[str], bool] | None = getattr(self._of_thread, "admit", None)
        if admit is not None and not admit(address):
            raise AddressBusy(f"{address} has its share of fetches")


class DeadlineStream(httpcore.NetworkStream):
    """A connection in which every read and write ends by the deadline."""

    def __init__(
        self,
        stream: httpcore.NetworkStream,
        deadline: Deadline,
        admission: Admission,
        address: str,
    ) -> None:
        self._stream = stream
        self._deadline = deadline
        self._admission, self._address = admission, address

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        limit_s = self._deadline.clamp(timeout, httpcore.ReadTimeout)
        return self._stream.read(max_bytes, limit_s)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._admission.ask(self._address)  # it may have been opened by another thread
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
        return DeadlineStream(secured, self._deadline, self._admission, self._address)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


# --- limits per host ------------------------------------------------------------------------------

HOSTS_MAX = 10_000
"""Above this number, idle hosts are dropped from memory."""


@dataclass(slots=True)
class _Host:
    active: int = 0
    waiting: int = 0
    free_at: float = 0.0


class HostLimits:
    """Limits the requests to each host; shared by all threads. Thread-safe."""

    def __init__(self, *, at_once: int, delay_s: float) -> None:
        self._at_once = at_once
        self._delay_s = delay_s
        self._hosts: dict[str, _Host] = {}
        self._changed = threading.Condition()

    @contextmanager
    def slot(self, name: str, *, patience_s: float, continues: bool = False) -> Iterator[None]:
        """Wait until a request to this host may start; `AddressBusy` after `patience_s`.

        A request that continues another one, as after a redirect, needs no delay.
        """
        host = self._enter(name, time.monotonic() + patience_s, continues=continues)
        try:
            yield
        finally:
            with self._changed:
                host.active -= 1
                self._changed.notify_all()

    def _enter(self, name: str, until: float, *, continues: bool) -> _Host:
        with self._changed:
            self._forget_idle()
            host = self._hosts.setdefault(name, _Host())
            host.waiting += 1
            try:
                while (wait_s := self._wait_s(host, continues=continues)) > 0:
                    left_s = until - time.monotonic()
                    if left_s <= 0 or (host.active < self._at_once and wait_s > left_s):
                        raise AddressBusy(f"'{name}' is busy: too many requests wait for it")
                    self._changed.wait(min(wait_s, left_s))
            finally:
                host.waiting -= 1
            host.active += 1
            host.free_at = time.monotonic() + self._delay_s
            return host

    def _wait_s(self, host: _Host, *, continues: bool) -> float:
        """The time until the host may be free; zero or less if it is free now."""
        if host.active >= self._at_once:
            return 3600.0
        return 0.0 if continues else host.free_at - time.monotonic()

    def _forget_idle(self) -> None:
        if len(self._hosts) <= HOSTS_MAX:
            return
        now = time.monotonic()
        self._hosts = {
            name: host
            for name, host in self._hosts.items()
            if host.active or host.waiting or host.free_at > now
        }
