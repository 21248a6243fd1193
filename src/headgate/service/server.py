"""The server: uvicorn, with connections that cannot be held for nothing.

    connections    at most 900: a further one closes the oldest that waits
    waiting        one that has not sent a whole request for 10 to 20 s is closed, whether it says
                   nothing, or a byte now and then
    headers        at most 16 kB
    bodies         request_body.py

uvicorn has a limit for the time between two requests, but none for the first, nor for headers that
never end; `_BoundedProtocol` adds both. Paths have tokens in them, so there is no access log.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any, ClassVar

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from headgate.model.errors import PipelineError

CONNECTIONS_MAX = 900
"""Below the number of files that a process may usually open."""
WAIT_S = 10.0
KEEP_ALIVE_S = 5
HEADER_BYTES_MAX = 16_384
END_S = 5


class _BoundedProtocol(H11Protocol):
    waiting: ClassVar[dict[_BoundedProtocol, None]] = {}
    """All connections of this process, the oldest first."""

    _timer: asyncio.TimerHandle | None = None
    _last_cycle: object = b""
    """What `cycle` was at the last look; never that at the first."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # uvicorn's own switch has no effect where the program has handlers of its own.
        self.access_log = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.waiting[self] = None
        if len(self.waiting) > CONNECTIONS_MAX:
            oldest = next((each for each in self.waiting if not each._is_busy), self)
            del self.waiting[oldest]
            oldest.transport.abort()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    @property
    def _is_busy(self) -> bool:
        """Whether a request is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _look(self) -> None:
        """Close the connection if no request has come since the last look."""
        if not self._is_busy and self.cycle is self._last_cycle:
            self.transport.abort()
            return
        self._last_cycle = self.cycle
        self._timer = self.loop.call_later(WAIT_S, self._look)


def listen(host: str, port: int) -> socket.socket:
    """An open port, or an error that says why not."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host.strip("[]"), port), family=family, backlog=512)
    except OSError as error:
        raise PipelineError(
            f"nothing can be served at {host}:{port}: {error.strerror or error}; choose another "
            "address"
        ) from None


def make_server(app: FastAPI) -> uvicorn.Server:
    # Nothing is told about single requests; what it warns of names no path.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=_BoundedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=END_S,
            h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        )
    )


def serve(app: FastAPI, port: socket.socket) -> None:
    """Until SIGINT or SIGTERM."""
    make_server(app).run(sockets=[port])
