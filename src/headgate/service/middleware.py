"""What holds for every request: for which hosts it may be, and which headers its answer has.

A page of another site can have its name resolved to this machine, and would then reach a service
that only this machine reaches (DNS rebinding). Its requests name that site as their host, so only
known hosts are served: addresses, `localhost`, and the names that the operator has given.

Both are plain ASGI: the framework's own middleware would cost a task and two streams for a request.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.service.problems import problem


class AnswerHeaders:
    """Adds headers to every answer that does not have them."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str]) -> None:
        self._app = app
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                new = [each for each in self._headers if each[0] not in given]
                message["headers"] = [*message["headers"], *new]
            await send(message)

        await self._app(scope, receive, send_with_headers)


class KnownHosts:
    """Refuses requests for other hosts than these."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app, self._names = app, {"localhost", *(each.lower() for each in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            hosts = [value for name, value in scope["headers"] if name == b"host"]
            if len(hosts) != 1 or not self._is_known(hosts[0].decode("latin-1")):
                answer = problem(421, "This service has another name; see --host of headgate serve")
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_known(self, host: str) -> bool:
        name = host_of(host)
        return name in self._names or _is_address(name)


def host_of(host: str) -> str:
    """
    >>> host_of("News.example:8080"), host_of("[::1]:8080"), host_of("::1")
    ('news.example', '::1', '::1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, _, port = host.rpartition(":")
    return (name if name and port.isdecimal() and ":" not in name else host).lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
