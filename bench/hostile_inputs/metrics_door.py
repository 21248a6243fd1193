"""The door for the HTTP port of a run, where metrics are scraped. It listens on 127.0.0.1 only."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from bench.hostile_inputs.door import Door, repeated, words
from headgate.deliver.delivery_status import DeliveryCounts
from headgate.pipeline.metrics import MetricsServer
from headgate.pipeline.run_context import Meters
from headgate.pipeline.status import Status


def _spoken(port: int, data: bytes, timeout_s: float = 10.0) -> bytes:
    """Send, close the sending side, and read to the end."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        with suppress(OSError):
            connection.sendall(data)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            while part := connection.recv(1 << 16):
                answer = (answer + part)[:1_000_000]
    return answer


def _status() -> Status:
    meters = Meters()
    meters.add_batch([("Tickets", 3), ("Muse\n'News", 12)], seconds=0.08)
    counts = DeliveryCounts({"file": 5}, 4, 2, 3, 0, 1, 17)
    return Status(meters.tally(), 2, 3, 5, counts, 6, {"Tickets": 4}, (), {}, {}, {}, ())


@cache
def _metrics() -> MetricsServer:
    return MetricsServer(_status, "127.0.0.1", 0)


def enter_metrics(data: bytes) -> Iterator[str]:
    """Whatever one client says, the next scrape is answered."""
    port = _metrics().port
    try:
        _spoken(port, data)
    except TimeoutError:
        yield "the connection is held open"
    yield ""
    scrape = _spoken(port, b"GET /metrics HTTP/1.0\r\n\r\n")
    yield "" if b" 200 " in scrape[:20] and b"headgate_items" in scrape else "no scrape"


METRICS = Door(
    "metrics",
    lambda: (
        b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\nConnection: close\r\n\r\n",
        b"GET /metrics?name[]=headgate_items_total HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        b"OPTIONS /favicon.ico HTTP/1.1\r\nHost: a\r\n\r\n",
    ),
    words(
        b"\r\n | \r\n\r\n | GET | HEAD | HTTP/9.9 | HTTP/0.9 | Content-Length: -1 | % | %00 | ../ "
        b"| Transfer-Encoding: chunked | : | ?name[]= | & | Host: | \x00 | Expect: 100-continue | "
        b"Connection: keep-alive | Accept-Encoding: gzip;q=x | Accept: application/openmetrics-text"
    ),
    (
        repeated(b"a"),
        repeated(b"a: b\r\n", b"GET /metrics HTTP/1.1\r\n"),
        repeated(b"a", b"GET /metrics HTTP/1.1\r\na: ", b"\r\n\r\n"),
        repeated(b"&name[]=headgate_items_total", b"GET /metrics?", b" HTTP/1.0\r\n\r\n"),
        repeated(b"%41", b"GET /", b" HTTP/1.0\r\n\r\n"),
        repeated(b"\r\n"),
        repeated(b"GET /metrics HTTP/1.1\r\n\r\n"),
        repeated(b"gzip,", b"GET /metrics HTTP/1.0\r\nAccept-Encoding: ", b"\r\n\r\n"),
        repeated(b"\x00"),
    ),
    enter_metrics,
)
