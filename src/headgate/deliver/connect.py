"""Connections to webhook receivers: to judged addresses only, and within a limit on the whole call.

    URL ──► host, port ──► resolve once ──► judge every address ──► connect to one of them
                                                 │
                                         one is refused: none is used

httpcore asks its network backend for every connection, so there is no way around this. The address
that is connected to is the one that was judged (model/addresses.py): there is no second look-up
that could answer otherwise. TLS still proves the host's name, as it comes from the URL.

The clock is that of the whole call (connect/deadline.py). `acquire` has a backend of its own, which
also resolves in a thread and has other errors; they share the clock and the judgement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import httpcore

from headgate.connect.deadline import Deadline, DeadlineStream, Resolver
from headgate.deliver.errors import OutputError
from headgate.model.addresses import Allowed


class JudgedBackend(httpcore.NetworkBackend):
    """All threads may use it."""

    def __init__(self, allowed: Allowed, deadline: Deadline, resolve: Resolver) -> None:
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
                return DeadlineStream(stream, self._deadline)
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
