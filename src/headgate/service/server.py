"""The server: uvicorn, with connections that cannot be held for nothing.

    connections    at most as many as the process may open files, less some, and CONNECTIONS_MAX: a
                   further one closes the oldest that waits
    waiting        one that has not sent a whole request for 10 to 20 s is closed, whether it says
                   nothing, or a byte now and then
    headers        at most 16 kB, and as much for what stands around a body: sizes of chunks,
                   trailers; a body of n bytes may have 10 n bytes more of that
    bodies         request_body.py

uvicorn has a limit for the time between two requests, but none for the first, nor for headers that
never end; `_BoundedProtocol` adds both. Paths have tokens in them, so there is no access log.

Requests are read by httptools and the event loop is uvloop's: a small post takes 0.86 ms of CPU
time where h11 and asyncio took 1.1, a document that has not changed 0.36 in place of 0.51.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from headgate.model.errors import PipelineError
from headgate.service.caller import Service

CONNECTIONS_MAX = 20_000
FILES_KEPT = 100
"""Files of the process that are no connections."""
WAIT_S = 10.0
KEEP_ALIVE_S = 5
HEADER_BYTES_MAX = 16_384
AROUND_BODY_MAX = 10
"""Bytes around each byte of a body: a chunk of one byte has six."""
END_S = 5


class _BoundedProtocol(HttpToolsProtocol):
    files_max: ClassVar[int] = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    waiting: ClassVar[dict[_BoundedProtocol, None]] = {}
    """All connections of this process, the oldest first."""

    _timer: asyncio.TimerHandle | None = None
    _last_cycle: object = b""
    """What `cycle` was at the last look; never that at the first."""
    _received = 0
    """Bytes of the last request, without those of the piece of data in which it begins."""
    _body = 0
    """The bytes of its body."""
    _headers = 0
    """The bytes of its path, headers and trailers, as far as they are complete."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # uvicorn's own switch has no effect where the program has handlers of its own.
        self.access_log = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.waiting[self] = None
        if len(self.waiting) > min(CONNECTIONS_MAX, self.files_max - FILES_KEPT):
            oldest = next((each for each in self.waiting if not each._is_busy), self)
            del self.waiting[oldest]
            oldest.transport.abort()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)
        around = self._received - self._body
        is_closing = self.transport.is_closing()
        if around > HEADER_BYTES_MAX + AROUND_BODY_MAX * self._body and not is_closing:
            self.send_400_response("The headers are too large.")

    def on_message_begin(self) -> None:
        self._received = self._body = self._headers = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._add_header(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._add_header(len(name) + len(value))
        super().on_header(name, value)

    def _add_header(self, size: int) -> None:
        self._headers += size
        if self._headers > HEADER_BYTES_MAX:
            # The parser makes an error of it that is answered by 400.
            raise ValueError("the headers are too large")

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        super().on_body(body)

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
        opened = socket.create_server((host.strip("[]"), port), family=family, backlog=512)
    except OSError as error:
        raise PipelineError(
            f"nothing can be served at {host}:{port}: {error.strerror or error}; choose another "
            "address"
        ) from None
    # Connections inherit it. asyncio sets it only for sockets that it has opened itself; without
    # it the body of an answer waits 40 ms for the client to acknowledge the headers.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """A certificate, with those of its issuers behind it, and its key, both as PEM files."""

    certificate: Path
    key: Path

    def __post_init__(self) -> None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                self.certificate, self.key, password=lambda: b""
            )
        except (OSError, ssl.SSLError, ValueError) as error:
            reason = getattr(error, "strerror", None) or getattr(error, "reason", "") or error
            raise PipelineError(
                f"the certificate '{self.certificate}' cannot be used with the key '{self.key}': "
                f"{reason}"
            ) from None


def make_server(app: FastAPI, tls: TlsFiles | None = None) -> uvicorn.Server:
    # Nothing is told about single requests; what it warns of names no path.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=_BoundedProtocol,
            loop="uvloop",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=END_S,
            ssl_certfile=None if tls is None else tls.certificate,
            ssl_keyfile=None if tls is None else tls.key,
        )
    )


def serve(app: FastAPI, port: socket.socket, tls: TlsFiles | None = None) -> None:
    """Until SIGINT or SIGTERM."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files_max = min(hard, CONNECTIONS_MAX + FILES_KEPT)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, hard))
    _BoundedProtocol.files_max = files_max
    service: Service = app.state.service
    # uvicorn raises the signal again when it has ended; by default that would end the process here.
    signal.signal(signal.SIGTERM, _end)
    if service.public_url:  # without it there is no hub
        service.hub.start()
    try:
        make_server(app, tls).run(sockets=[port])
    finally:
        service.hub.close()
        service.backtests.close()


def _end(*_: object) -> NoReturn:
    raise SystemExit(0)
