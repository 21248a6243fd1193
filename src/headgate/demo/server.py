"""The demo's HTTP server: listens on this machine only, one thread per request, gzip.

    Newsroom ──► responses.py    the response for a path
        └──────► files.py        writes tickets and documents, if `write_files` is called

Each connection is closed after its response, so that none is open when the server stops. Scripts
name the server by its default address; `script_for` replaces it where another port is in use.
"""

from __future__ import annotations

import errno
import gzip
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

from headgate.demo.feeds import FEEDS
from headgate.demo.files import FileWriter
from headgate.demo.responses import NewsroomState, Response, respond
from headgate.demo.rhythm import Rhythm

DEFAULT_HOST = "localhost"
DEFAULT_PORT = 8765
DEFAULT_URL = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"

_DEFAULT_URL = re.compile(rf"{re.escape(DEFAULT_URL)}(?!\d)")


def script_for(text: str, base_url: str) -> str:
    """The script with the server's actual address in place of the default address.

    >>> script_for("register feed http://localhost:8765/a.rss as A;", "http://localhost:4000")
    'register feed http://localhost:4000/a.rss as A;'
    """
    return _DEFAULT_URL.sub(lambda _: base_url, text)


REQUEST_S = 10.0
"""The time limit for receiving a request."""
_REFUSED = re.compile(r"q=0(\.0*)?")


class Newsroom:
    """The running server. Close it, or use `with`. All methods are thread-safe.

    `clock` returns the seconds since 1970; tests pass their own.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        or_any_port: bool = False,
        seed: int = 0,
        pace: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Port 0 means any free port; `or_any_port` uses a free port if `port` is in use."""
        self.rhythm = Rhythm(seed, pace)
        self._clock = clock
        self._opened_s = clock()
        self._writers: list[FileWriter] = []
        self._server = _bound(port, or_any_port=or_any_port)
        self._server.newsroom = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="newsroom", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def base_url(self) -> str:
        return f"http://{DEFAULT_HOST}:{self.port}"

    def url_of(self, name: str) -> str:
        """The address of the feed with this name."""
        return self.base_url + next(feed.path for feed in FEEDS if feed.name == name)

    def write_files(self, folder: Path) -> None:
        """Write tickets/*.json and news/*.xml into the folder until the server is closed."""
        self._writers.append(FileWriter(folder, self.rhythm, self._clock))

    def respond(self, path: str, *, etags: str = "", since: str = "") -> Response:
        """The response for this path at the current time."""
        now_s = self._clock()
        state = NewsroomState(self.rhythm, self.base_url, now_s, now_s - self._opened_s)
        return respond(path, state, etags=etags, since=since)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        while self._writers:
            self._writers.pop().stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with the default of 5, parallel fetches wait for up to a second
    newsroom: Newsroom


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "HeadgateNewsroom"
    sys_version = ""
    timeout = REQUEST_S
    server: _Server

    def do_GET(self) -> None:
        self._send(with_body=True)

    def do_HEAD(self) -> None:
        self._send(with_body=False)

    def _send(self, *, with_body: bool) -> None:
        response = self.server.newsroom.respond(
            self.path,
            etags=self.headers.get("If-None-Match", ""),
            since=self.headers.get("If-Modified-Since", ""),
        )
        zipped = bool(response.body) and takes_gzip(self.headers.get("Accept-Encoding", ""))
        body = gzip.compress(response.body, mtime=0) if zipped else response.body
        headers = {
            "ETag": response.etag,
            "Last-Modified": response.last_modified,
            "Cache-Control": "no-cache",
            "Vary": "Accept-Encoding",
            "Connection": "close",
        }
        if response.status is not HTTPStatus.NOT_MODIFIED:
            headers["Content-Type"] = response.content_type
            headers["Content-Length"] = str(len(body))
            headers["Content-Encoding"] = "gzip" if zipped else None
        self.send_response(response.status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def handle(self) -> None:
        # The client has closed the connection.
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the demo fetches feeds several times per second."""


def takes_gzip(accepted: str) -> bool:
    """Whether the `Accept-Encoding` header allows gzip.

    >>> takes_gzip("br, gzip;q=0.5"), takes_gzip("gzip;q=0"), takes_gzip("")
    (True, False, False)
    """
    for accepted_coding in accepted.split(","):
        coding, _, quality = accepted_coding.partition(";")
        if coding.strip().lower() in ("gzip", "*"):
            return _REFUSED.fullmatch(quality.strip()) is None
    return False


def _bound(port: int, *, or_any_port: bool) -> _Server:
    try:
        return _Server(("127.0.0.1", port), _Handler)
    except OSError as error:
        if not or_any_port or error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
    return _Server(("127.0.0.1", 0), _Handler)
