"""The application: the resources of the service, and what every answer has.

Each resource is a file with a function that makes its router. Answers are not stored by caches,
load nothing, are shown in no frame, and name no referrer: a path may have a token in it. An answer
to a path that is not known is the same as to a wrong token of a link (receivers.py).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from headgate.api.headgate import Headgate
from headgate.model.errors import CatalogUnavailable
from headgate.service.receivers import STYLE_HASH, not_valid, page, receiver_links

log = logging.getLogger("headgate.service")
HEADERS = {
    "content-security-policy": f"default-src 'none'; style-src '{STYLE_HASH}'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}


def make_app(headgate: Headgate) -> FastAPI:
    app = FastAPI(title="Headgate", openapi_url=None, docs_url=None, redoc_url=None)
    app.include_router(receiver_links(headgate))

    @app.middleware("http")
    async def add_headers(
        request: Request, call: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        response = await call(request)
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    @app.exception_handler(HTTPException)
    async def refuse(_: Request, error: HTTPException) -> Response:
        if error.status_code == 404:
            return not_valid()
        answer = page(str(error.detail), "This request is not possible.", status=error.status_code)
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(CatalogUnavailable)
    async def unavailable(_request: Request, _error: CatalogUnavailable) -> Response:
        return page("Not now", "The service cannot answer at the moment.", status=503)

    @app.exception_handler(Exception)
    async def failed(_request: Request, error: Exception) -> Response:
        # Not the path: it may have a token in it.
        log.error("a request failed", exc_info=error)
        return page("Not now", "The service cannot answer at the moment.", status=500)

    return app
