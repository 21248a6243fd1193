"""Connections that lead only to checked addresses, and that end when what needs them must end.

    URL ──► host, port ──► resolve once ──► check every address ──► connect to one of them
                                                  │
                                          one is refused: none is used

httpcore asks its network backend for connections, so this is the one place through which every
connection goes, those after a redirect included. The address that is connected to is the one that
was checked: there is no second look-up that could answer otherwise (DNS rebinding). TLS still
proves the host's *name*, and `Host` still says it, as both are made from the URL.

The clock is that of the whole fetch or call (`deadline.py`). What a refusal means is for the room
to say that connects: it gives the errors.

Name servers can be slow on purpose too, and `getaddrinfo` cannot be interrupted: it runs in a
thread of its own that is left behind when time is up, and ends by the resolver's own limits.

Rejected: checking the host before the request (the name may resolve otherwise a moment later), and
a proxy (one more service to run). Proxies of the environment are not used for the same reason.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

import httpcore

from headgate.acquire.deadline import Deadline, DeadlineStream, Resolver
from headgate.model.addresses import Allowed

ADDRESSES_TRIED = 4
ErrorOf = Callable[[str], Exception]
"""An error with this text."""


class CheckedBackend(httpcore.NetworkBackend):
    """Resolves, checks, connects. Thread-safe, as it keeps nothing but the threads' deadlines."""

    def __init__(
        self,
        *,
        allowed: Allowed,
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
