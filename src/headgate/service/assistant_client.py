"""The HTTP API as the tools of assistants call it: of a service by its URL, or in this process.

    --url URL          tools ──► HTTP ──► headgate serve
    otherwise          tools ──► the same application, called in this process (ASGI)

Both ways take the same checks: scopes, the tenant's view, quotas, limits of size. Tools that call
the catalog themselves would need these a second time. In this process, a request without a token of
the user's has one that only this process knows; it stands for the owner of the catalog.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from headgate.api.headgate import Headgate
from headgate.catalog.principals import OWNER
from headgate.model.errors import HeadgateError, InvalidValue, UnknownName
from headgate.service.app import make_app
from headgate.service.caller import KnownPrincipal, Service, TokenMemory
from headgate.service.rate_limits import REQUESTS_PER_S

REQUEST_S = 60.0


class ServiceRefused(HeadgateError):
    """The service has answered with a problem document."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status, self.problem = status, problem
        detail = problem.get("detail") or problem.get("title") or "not possible"
        super().__init__(str(detail))


@dataclass(frozen=True, slots=True)
class ServiceClient:
    """For one event loop."""

    http: httpx.AsyncClient

    async def get(self, path: str, **query: object) -> dict[str, Any]:
        given = {name: str(value) for name, value in query.items() if value is not None}
        return await self._call("GET", path, params=given)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await self._call("POST", path, json=body)

    async def delete(self, path: str) -> None:
        await self._call("DELETE", path)

    async def _call(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        try:
            answer = await self.http.request(method, path, **content)
        except httpx.HTTPError as error:
            # Not the text of the error: it may have the URL with a password in it.
            raise ServiceRefused(
                503, {"detail": f"the service cannot be reached ({type(error).__name__})"}
            ) from None
        if answer.status_code == 204:
            return {}
        try:
            document = answer.json()
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise ServiceRefused(
                answer.status_code, {"detail": "the answer is not from a Headgate service"}
            )
        if not answer.is_success:
            raise ServiceRefused(answer.status_code, document)
        return document


def path_of(name: str, what: str = "") -> str:
    """The path of a feed or source, whatever characters its name has.

    >>> path_of("a/b", "items")
    '/v1/feeds/a%2Fb/items'
    """
    if name in ("", ".", ".."):  # such a part of a path names another path
        raise UnknownName(f"there is no source or feed '{name}'")
    return f"/v1/feeds/{quote(name, safe='')}" + (f"/{what}" if what else "")


@asynccontextmanager
async def client_of_url(url: str, token: str) -> AsyncIterator[ServiceClient]:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidValue("a service has a URL like https://news.example")
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=REQUEST_S) as http:
        yield ServiceClient(http)


@asynccontextmanager
async def client_in_process(headgate: Headgate, token: str = "") -> AsyncIterator[ServiceClient]:
    """Without a token, the owner of the catalog acts."""
    app = make_app(headgate)
    service: Service = app.state.service
    if not token:
        token = secrets.token_urlsafe(32)
        owner = KnownPrincipal(replace(OWNER, actor="assistant"), REQUESTS_PER_S)
        only_known = TokenMemory(lambda given: owner if given == token else None)
        app.state.service = replace(service, principals=only_known)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    headers = {"authorization": f"Bearer {token}"}
    try:
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", headers=headers, timeout=None
        ) as http:
            yield ServiceClient(http)
    finally:
        service.backtests.close()
        service.watch.close()
