"""The metrics of a run for Prometheus: an HTTP server that answers `/metrics`.

Each scrape reads the status of the run (status.py) and of its folder (folder_status.py). There are
no separate counters, and a run that is not scraped has no cost.

At most 64 connections are open: a new one closes the oldest, and one that says nothing for five
seconds is closed, so idle connections cannot take the port.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from socketserver import ThreadingMixIn
from threading import Lock, Thread
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from headgate.model.errors import PipelineError
from headgate.pipeline.folder_status import FolderStatus
from headgate.pipeline.metric_families import Family, build_info, folder_families, run_families

if TYPE_CHECKING:
    from headgate.pipeline.status import Status

CONNECTIONS_MAX = 64
IDLE_S = 5.0


class MetricsServer:
    """Serves `/metrics` in a thread until it is closed."""

    def __init__(
        self,
        status: Callable[[], Status],
        host: str,
        port: int,
        *,
        folder: Callable[[], FolderStatus] | None = None,
    ) -> None:
        registry = CollectorRegistry()
        registry.register(_StatusCollector(status, folder))
        kind = _BoundedServer6 if ":" in host else _BoundedServer
        try:
            self._server = make_server(
                host.strip("[]"), port, make_wsgi_app(registry), kind, _BriefHandler
            )
        except OSError as error:
            raise PipelineError(
                f"metrics cannot be served at {host}:{port}: {error.strerror}; "
                "choose another address, or 'off'"
            ) from None
        self._thread = Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _BriefHandler(WSGIRequestHandler):
    timeout = IDLE_S

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a scrape is no event."""


class _BoundedServer(ThreadingMixIn, WSGIServer):
    """A thread for each connection, and not more connections than allowed."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, *arguments: object, **more: object) -> None:
        self._open: dict[int, socket.socket] = {}
        self._open_lock = Lock()
        super().__init__(*arguments, **more)  # type: ignore[arg-type]

    def process_request(self, request: object, client_address: object) -> None:
        assert isinstance(request, socket.socket)
        with self._open_lock:
            while len(self._open) >= CONNECTIONS_MAX:
                oldest = self._open.pop(next(iter(self._open)))
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and closes it
            self._open[id(request)] = request
        super().process_request(request, client_address)

    def shutdown_request(self, request: object) -> None:
        with self._open_lock:
            self._open.pop(id(request), None)
        super().shutdown_request(request)  # type: ignore[arg-type]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away, or says nothing, is not an error of ours."""


class _BoundedServer6(_BoundedServer):
    address_family = socket.AF_INET6


class _StatusCollector(Collector):
    def __init__(
        self, status: Callable[[], Status], folder: Callable[[], FolderStatus] | None
    ) -> None:
        self._status, self._folder = status, folder

    def describe(self) -> list[GaugeMetricFamily]:
        """Empty. Otherwise the registry would collect before the run has a status."""
        return []

    def collect(self) -> Iterator[Family]:
        yield build_info()
        yield from run_families(self._status())
        if self._folder is not None:
            yield from folder_families(self._folder(), with_names=True)
