"""`Idempotency-Key`: who gets no answer to a POST sends it again, and it is done once.

    POST with a key ──► as it was found (catalog/kept_answers.py)
      new        the request is made; if it succeeds, status, type, location and body are kept
      answered   the same answer, with `Idempotency-Replayed: true`
      running    409 and Retry-After
      lost       409: it was done, and its answer is not known any more
      other      422: the key was used for another request

It holds for every POST below `/v1` that creates or changes something. Those that only look (check,
discover, suggest, preview, plan, why) need no key. Posts of events have keys of their own, in the
spool (items.py).

What is the same request: path, query, type and body, byte by byte. Keys are of a tenant and of who
acts; another token of the tenant has its own.

An answer is kept before it is sent. What is changed outside of the catalog is not in the
transaction that marks the key: a replay of deliveries that was cut off by a crash may be made
again, which sends the same messages under the same ids; a backtest ends with its process, and is
begun again.

As a middleware, since a resource cannot forget it then. Requests without the header cost a look
at their headers.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.catalog.kept_answers import KeptAnswers, KeyedRequest, KeyState
from headgate.model.errors import HeadgateError, QuotaExceeded
from headgate.service.caller import KnownPrincipal, Service
from headgate.service.problems import problem, problem_of

HEADER = "idempotency-key"
KEY_LENGTH_MAX = 200
RETRY_AFTER_S = 2
_WITHOUT = re.compile(
    r"/v1/(check|discover|suggest|preview|plan|why|feeds/[^/]+/why"
    r"|sources/[^/]+/(items|selectivity))/?"
)
_KEPT_HEADERS = (b"content-type", b"location")
log = logging.getLogger("headgate.service")


def takes_key(path: str) -> bool:
    """Whether a POST to this path, or to those of this template, is done once for a key."""
    return path.startswith("/v1/") and not _WITHOUT.fullmatch(path)


class KeyedRequests:
    """Middleware, inside of that which limits bodies."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    @property
    def _kept(self) -> KeptAnswers:
        return self._service.headgate.catalog.kept_answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not takes_key(scope["path"]):
            await self._app(scope, receive, send)
            return
        keys = [value for name, value in scope["headers"] if name == HEADER.encode()]
        if not any(keys):
            await self._app(scope, receive, send)
            return
        try:
            answer = await self._answer(scope, receive, keys)
        except HTTPException as error:  # of the body: it is too large, or too slow
            answer = problem(error.status_code, str(error.detail), error.headers or {})
        except QuotaExceeded as error:
            answer = problem(429, str(error), {"retry-after": "3600"})
        except HeadgateError as error:
            answer = problem_of(error)
        await answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, keys: list[bytes]) -> ASGIApp:
        if len(keys) > 1 or len(keys[0]) > KEY_LENGTH_MAX:
            return problem(422, f"there is one idempotency key, of {KEY_LENGTH_MAX} characters")
        known = await self._principal(scope)
        if known is None:
            return self._app  # it says what is wrong with the token
        body = await _body(receive)
        begun = await run_in_threadpool(
            self._kept.begin, known.principal, keys[0].decode("latin-1"), _hash(scope, body)
        )
        if begun.state is not KeyState.NEW:
            who = known.principal
            self._service.rates.take(who.tenant, who.actor, known.requests_per_s)
            return _known_answer(begun)
        return await self._first_answer(scope, body, begun)

    async def _principal(self, scope: Scope) -> KnownPrincipal | None:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = (given[0] if given else b"").decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        # Wrong ones are counted, and slowed down, where the application looks them up.
        return self._service.principals.known(token) or await self._service.principals.look(token)

    async def _first_answer(self, scope: Scope, body: bytes, begun: KeyedRequest) -> Response:
        """Make the request, and keep its answer if it has succeeded."""
        made = _CollectedAnswer(body)
        try:
            with self._kept.applying(begun):
                await self._app(scope, made.receive, made.send)
        except BaseException:
            await run_in_threadpool(self._kept.forget, begun)
            raise
        answer = made.answer()
        try:
            if 200 <= answer.status_code < 300:
                await run_in_threadpool(self._kept.keep, begun, _packed(answer))
            else:
                await run_in_threadpool(self._kept.forget, begun)
        except HeadgateError as error:
            # It was done, and who asks is told so; who asks again is told that it was done.
            log.warning("an answer is not kept under its idempotency key: %s", error)
        return answer


class _CollectedAnswer:
    """Gives a request its body, and collects what it is answered."""

    def __init__(self, body: bytes) -> None:
        self._body, self._is_read = body, False
        self._status, self._parts = 500, bytearray()
        self._headers: list[tuple[bytes, bytes]] = []

    async def receive(self) -> Message:
        if self._is_read:
            return {"type": "http.disconnect"}
        self._is_read = True
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message["headers"])
        elif message["type"] == "http.response.body":
            self._parts += message.get("body", b"")

    def answer(self) -> Response:
        answer = Response(bytes(self._parts), self._status)
        answer.raw_headers = self._headers
        return answer


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def _hash(scope: Scope, body: bytes) -> str:
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    path = scope.get("raw_path") or scope["path"].encode()
    parts = [path, scope["query_string"], b",".join(kinds), hashlib.sha256(body).digest()]
    digest = hashlib.sha256()
    for each in parts:
        digest.update(len(each).to_bytes(8, "big") + each)
    return digest.hexdigest()


# --- answers --------------------------------------------------------------------------------------


def _packed(answer: Response) -> bytes:
    headers = {
        name.decode(): value.decode("latin-1")
        for name, value in answer.raw_headers
        if name in _KEPT_HEADERS
    }
    body = base64.b64encode(bytes(answer.body)).decode()
    return json.dumps({"status": answer.status_code, "headers": headers, "body": body}).encode()


def _known_answer(found: KeyedRequest) -> Response:
    if found.answer is not None:
        kept = json.loads(found.answer)
        headers = {**kept["headers"], "idempotency-replayed": "true"}
        return Response(base64.b64decode(kept["body"]), kept["status"], headers=headers)
    if found.state is KeyState.RUNNING:
        return problem(
            409,
            "A request with this idempotency key is being made",
            {"retry-after": str(RETRY_AFTER_S)},
        )
    if found.state is KeyState.OTHER:
        return problem(422, "this idempotency key was used for another request")
    return problem(
        409, "This request was made, but its answer was not kept: look at what it has changed"
    )


# --- the description ------------------------------------------------------------------------------


def describe_keys(app: FastAPI) -> None:
    """Add the header to the description of all operations that take it."""
    made = app.openapi
    parameter = {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "A request that comes again with it is done once, and gets the same answer. "
        "It is known for a day.",
        "schema": {"type": "string", "maxLength": KEY_LENGTH_MAX},
    }

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            for path, operations in made()["paths"].items():
                if "post" in operations and takes_key(path):
                    operations["post"].setdefault("parameters", []).append(parameter)
        return made()

    app.openapi = described  # type: ignore[method-assign]
