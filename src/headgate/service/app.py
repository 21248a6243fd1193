"""The application: the resources of the service, and what every answer has.

Each resource is a file with its router. Answers are not stored by caches, load nothing, are shown
in no frame, and name no referrer, unless a resource says otherwise: a path may have a token in it.
Errors below `/v1` are problem documents (problems.py), those of feed readers plain texts. Elsewhere
the answer to a path that is not known is the same as to a wrong token of a link (receivers.py).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from headgate import __version__
from headgate.api.headgate import Headgate
from headgate.catalog.sealed import Sealer
from headgate.model.addresses import PUBLIC_ONLY, AllowedNetworks
from headgate.model.errors import CatalogUnavailable, HeadgateError, InvalidValue, printable
from headgate.service import (
    access,
    administration,
    backtests,
    comparisons,
    console,
    definitions,
    deliveries,
    delivery_states,
    discovery,
    edits,
    explanations,
    fever,
    google_reader,
    google_reader_edits,
    health,
    hub,
    item_deliveries,
    items,
    links,
    live,
    metrics,
    oidc,
    opml,
    previews,
    reader_caller,
    reading,
    reading_items,
    reading_live,
    search,
    sign_in,
    source_states,
    source_status,
    statements,
    statistics,
    subscriptions,
    suggestions,
    system,
    values,
    why,
)
from headgate.service.caller import Service
from headgate.service.feed_documents import PATH, FeedDocuments
from headgate.service.idempotency import KeyedRequests, describe_keys
from headgate.service.middleware import AnswerHeaders, KnownHosts
from headgate.service.oidc_provider import OidcProvider, OidcSettings
from headgate.service.oidc_states import SignInStates
from headgate.service.problems import describe_problems, problem, problem_of
from headgate.service.receivers import STYLE_HASH, not_valid, page, receiver_links
from headgate.service.request_body import LimitedBodies
from headgate.service.request_figures import CountedRequests

log = logging.getLogger("headgate.service")
RESOURCES = (
    *(
        health,
        metrics,
        console,
        sign_in,
        oidc,
        statements,
        suggestions,
        previews,
        items,
        live,
        search,
        values,
    ),
    *(source_status, source_states, edits, item_deliveries),
    *(explanations, why, backtests, comparisons, opml, statistics, subscriptions),
    *(deliveries, delivery_states),
    *(links, hub, access, administration, system),
    *(reading, reading_items, reading_live, discovery),
    definitions,  # behind the others: `/v1/{listed}/{name}` would take their paths
    *(reader_caller, google_reader, google_reader_edits, fever),
)
BODIES_BYTES_MAX = items.POST_BYTES_MAX
ERRORS_SHOWN_MAX, ERROR_LENGTH_MAX = 10, 300
HEADERS = {
    "content-security-policy": f"default-src 'none'; style-src '{STYLE_HASH}'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}


def make_app(
    headgate: Headgate,
    *,
    hosts: Collection[str] = (),
    public_url: str = "",
    allowed: AllowedNetworks = PUBLIC_ONLY,
    openid: OidcSettings | None = None,
) -> FastAPI:
    """The service; `hosts` are the names by which it is reached, besides addresses. `allowed` are
    networks that the hub may call, besides the public Internet. `openid` is the provider by which
    people sign in, if there is one."""
    app = FastAPI(
        title="Headgate",
        version=__version__,
        summary="Standing queries over streams.",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    states = None if openid is None else _sign_in_states(headgate, openid, public_url)
    service = app.state.service = Service.of(headgate, public_url, allowed, states)
    documents = FeedDocuments(headgate, service.log, public_url)
    app.router.routes += [
        PlainRoute(PATH, documents.answer),
        PlainRoute(items.POST_PATH, items.post_quickly, methods=["POST"]),
    ]
    app.include_router(receiver_links(headgate))
    for resource in RESOURCES:
        app.include_router(resource.router)
    app.add_middleware(KeyedRequests, service=service)
    app.add_middleware(LimitedBodies, bytes_max=BODIES_BYTES_MAX)
    app.add_middleware(KnownHosts, names=hosts)
    app.add_middleware(AnswerHeaders, headers=HEADERS)
    app.add_middleware(CountedRequests, figures=service.figures)
    describe_keys(app)
    describe_problems(app)
    _answer_errors(app)
    return app


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def refuse(request: Request, error: HTTPException) -> Response:
        if _is_api(request):
            return problem(error.status_code, str(error.detail), error.headers or {})
        if _is_reader(request):
            headers = dict(error.headers or {})
            return PlainTextResponse(str(error.detail), error.status_code, headers)
        if error.status_code == 404:
            return not_valid()
        answer = page(str(error.detail), "This request is not possible.", status=error.status_code)
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(RequestValidationError)
    async def refuse_form(_request: Request, error: RequestValidationError) -> Response:
        places = [
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}"[:ERROR_LENGTH_MAX]
            for each in error.errors()[:ERRORS_SHOWN_MAX]
        ]
        return problem(422, printable("; ".join(places)))

    @app.exception_handler(HeadgateError)
    async def explain(request: Request, error: HeadgateError) -> Response:
        if isinstance(error, CatalogUnavailable):
            log.error("the catalog cannot be reached: %s", error)
        if _is_api(request):
            return problem_of(error)
        if _is_reader(request):
            answer = problem_of(error)
            text = json.loads(bytes(answer.body))["detail"]
            return PlainTextResponse(text, answer.status_code)
        return page("Not now", "The service cannot answer at the moment.", status=503)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        # Not the path: it may have a token in it.
        log.error("a request failed", exc_info=error)
        if _is_api(request):
            return problem(500, "")
        return page("Not now", "The service cannot answer at the moment.", status=500)


def _sign_in_states(headgate: Headgate, settings: OidcSettings, public_url: str) -> SignInStates:
    if not public_url:
        raise InvalidValue("an OpenID provider sends people back to --public-url: name it")
    key = headgate.catalog.installation_key()
    return SignInStates(OidcProvider(settings), Sealer(key, "sign-in by OpenID"))


class PlainRoute(Route):
    """A route without the framework's parameters, counted by its template as the others are."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        await super().handle(scope, receive, send)


def _is_reader(request: Request) -> bool:
    return request.url.path.startswith(("/reader/", "/accounts/", "/fever"))


def _is_api(request: Request) -> bool:
    return request.url.path.startswith("/v1/")
