"""Counts of requests: by the template of their path (`/v1/feeds/{name}/items`), method and class of
status (`2xx`). Never by path: those have names and tokens in them.

The time of a request is that until its answer begins, so live streams count like other requests.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

BUCKETS_S = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
"""Paths that are not known, and strange methods."""


@dataclass(slots=True)
class RouteFigures:
    """The requests of one template, method and class of status."""

    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    """How many took at most as long as BUCKETS_S says, and longer than the one before says."""


class RequestFigures:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._routes: dict[tuple[str, str, str], RouteFigures] = {}
        self.bytes_in = self.bytes_out = self.under_way = self.accepted = self.rejected = 0

    def begin(self) -> None:
        with self._lock:
            self.under_way += 1

    def end(self, *, bytes_in: int, bytes_out: int) -> None:
        with self._lock:
            self.under_way -= 1
            self.bytes_in += bytes_in
            self.bytes_out += bytes_out

    def add_answer(self, route: str, method: str, status: int, seconds: float) -> None:
        key = route, method if method in METHODS else OTHER, f"{status // 100}xx"
        with self._lock:
            figures = self._routes.setdefault(key, RouteFigures())
            figures.seconds += seconds
            figures.buckets[bisect_left(BUCKETS_S, seconds)] += 1

    def add_posts(self, *, accepted: int, rejected: int) -> None:
        with self._lock:
            self.accepted += accepted
            self.rejected += rejected

    def routes(self) -> dict[tuple[str, str, str], RouteFigures]:
        with self._lock:
            return {
                key: RouteFigures(each.seconds, list(each.buckets))
                for key, each in self._routes.items()
            }


class CountedRequests:
    """Middleware: counts every request, whatever answers it."""

    def __init__(self, app: ASGIApp, figures: RequestFigures) -> None:
        self._app, self._figures = app, figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        figures, began = self._figures, time.monotonic()
        bytes_in = bytes_out = status = 0

        async def received() -> Message:
            nonlocal bytes_in
            message = await receive()
            bytes_in += len(message.get("body", b""))
            return message

        async def sent(message: Message) -> None:
            nonlocal bytes_out, status
            if message["type"] == "http.response.start":
                status = message["status"]
                count(status)
            bytes_out += len(message.get("body", b""))
            await send(message)

        def count(status: int) -> None:
            route = getattr(scope.get("route"), "path", OTHER)
            figures.add_answer(route, scope["method"], status, time.monotonic() - began)

        figures.begin()
        try:
            await self._app(scope, received, sent)
        except Exception:
            if not status:  # the answer is sent behind this middleware
                count(500)
            raise
        finally:
            figures.end(bytes_in=bytes_in, bytes_out=bytes_out)
