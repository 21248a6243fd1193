"""The newsroom's HTTP server: on this machine only, a thread for each request, gzip.

    Newsroom ──► answers.py           at the path, at this moment
        └──────► write_files.py       tickets and documents, if asked to

Connections are closed after each answer, so that nothing is left of them when the server stops.
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

from headgate.demo.answers import Answer, Moment, answer
from headgate.demo.feeds import FEEDS
from headgate.demo.rhythm import Rhythm
from headgate.demo.script import DEFAULT_HOST
from headgate.demo.write_files import FileWriter

REQUEST_S = 10.0
"""How long a client may take to say what it wants."""
_REFUSED = re.compile(r"q=0(\.0*)?")


class Newsroom:
    """A running newsroom. Close it, or use `with`. Any thread may call anything.

    `clock` tells the seconds since 1970; tests give their own.
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
        """Port 0 is any that is free; `or_any_port` takes one where the wanted one is taken."""
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
        return self.base_url + next(each.path for each in FEEDS if each.name == name)

    def write_files(self, folder: Path) -> None:
        """Write tickets/*.json and news/*.xml into the folder, from now on until it is closed."""
        self._writers.append(FileWriter(folder, self.rhythm, self._clock))

    def answer(self, path: str, *, etags: str = "", since: str = "") -> Answer:
        """What is at this path now (answers.py)."""
        now_s = self._clock()
        moment = Moment(self.rhythm, self.base_url, now_s, now_s - self._opened_s)
        return answer(path, moment, etags=etags, since=since)

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
    request_queue_size = 128  # with the usual five, one of many fetches at once waits for a second
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
        found = self.server.newsroom.answer(
            self.path,
            etags=self.headers.get("If-None-Match", ""),
            since=self.headers.get("If-Modified-Since", ""),
        )
        zipped = bool(found.body) and takes_gzip(self.headers.get("Accept-Encoding", ""))
        body = gzip.compress(found.body, mtime=0) if zipped else found.body
        headers = {
            "ETag": found.etag,
            "Last-Modified": found.last_modified,
            "Cache-Control": "no-cache",
            "Vary": "Accept-Encoding",
            "Connection": "close",
        }
        if found.status is not HTTPStatus.NOT_MODIFIED:
            headers["Content-Type"] = found.content_type
            headers["Content-Length"] = str(len(body))
            headers["Content-Encoding"] = "gzip" if zipped else None
        self.send_response(found.status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def handle(self) -> None:
        # A client that has gone is nobody to tell about it.
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Silence: a demo fetches feeds several times a second."""


def takes_gzip(accepted: str) -> bool:
    """Whether a client with this `Accept-Encoding` reads gzip.

    >>> takes_gzip("br, gzip;q=0.5"), takes_gzip("gzip;q=0"), takes_gzip("")
    (True, False, False)
    """
    for each in accepted.split(","):
        coding, _, quality = each.partition(";")
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
