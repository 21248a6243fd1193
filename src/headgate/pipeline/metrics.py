"""The metrics of a run for Prometheus: an HTTP server that answers `/metrics`.

Each scrape reads the status of the run (status.py). There are no separate counters, and a run that
is not scraped has no cost. At most 64 connections are open: a new one closes the oldest, and one
that says nothing for five seconds is closed, so idle connections cannot take the port.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from socketserver import ThreadingMixIn
from threading import Lock, Thread
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from headgate.model.errors import PipelineError
from headgate.pipeline.status import Status

CONNECTIONS_MAX = 64
IDLE_S = 5.0
_COUNTERS = {
    "batches": "Micro-batches that have finished.",
    "items": "Items that came in.",
    "matched": "Items that matched at least one feed.",
    "matches": "Pairs of an item and a feed that it matched.",
    "joined": "Items that a join has produced a result for.",
}


class MetricsServer:
    """Serves `/metrics` in a thread until it is closed."""

    def __init__(self, status: Callable[[], Status], host: str, port: int) -> None:
        registry = CollectorRegistry()
        registry.register(_StatusCollector(status))
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
    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def describe(self) -> list[GaugeMetricFamily]:
        """Empty. Otherwise the registry would collect before the run has a status."""
        return []

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        status = self._status()
        tally = status.tally
        for name, help_ in _COUNTERS.items():
            yield CounterMetricFamily(f"headgate_{name}", help_, value=getattr(tally, name))
        by_source = CounterMetricFamily(
            "headgate_source_items", "Items that came in, by source.", labels=["source"]
        )
        for source, items in tally.by_source.items():
            by_source.add_metric([source], items)
        yield by_source
        rejected = CounterMetricFamily(
            "headgate_rejected",
            "Records that could not be read as items, by source.",
            labels=["source"],
        )
        for source, count in status.rejected.items():
            rejected.add_metric([source], count)
        yield rejected
        yield from _operator_metrics(status)
        seconds = GaugeMetricFamily(
            "headgate_batch_seconds", "Duration of recent micro-batches.", labels=["quantile"]
        )
        seconds.add_metric(["0.5"], tally.latency_p50_ms / 1e3)
        seconds.add_metric(["0.99"], tally.latency_p99_ms / 1e3)
        yield seconds
        yield from _delivery_metrics(status)
        for name, help_, value in (
            ("headgate_sources", "Sources that are registered.", status.sources),
            ("headgate_feeds", "Feeds that are planned.", status.feeds),
            ("headgate_broken_feeds", "Feeds whose last fetch failed.", len(status.broken)),
            ("headgate_refused", "Feeds and sources that cannot run.", len(status.refused)),
            ("headgate_errors", "Queries and threads with errors.", len(status.errors)),
        ):
            yield GaugeMetricFamily(name, help_, value=value)


def _delivery_metrics(status: Status) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
    counts = status.deliveries
    sent = CounterMetricFamily("headgate_sent", "Items that were delivered.", labels=["output"])
    for output, count in counts.sent.items():
        sent.add_metric([output], count)
    yield sent
    yield CounterMetricFamily(
        "headgate_failed", "Delivery attempts that failed.", value=counts.failed
    )
    for name, help_, value in (
        ("headgate_lagging", "Subscriptions that are behind.", counts.lagging),
        ("headgate_halted", "Subscriptions whose receiver is gone.", counts.halted),
        ("headgate_retrying", "Messages that are tried again.", counts.retrying),
        ("headgate_dead", "Dead letters.", counts.dead),
        ("headgate_behind", "Items that delivery has not reached yet.", status.behind),
    ):
        yield GaugeMetricFamily(name, help_, value=value)


def _operator_metrics(status: Status) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
    failures = CounterMetricFamily(
        "headgate_operator_failures", "Items for which an operator failed.", labels=["operator"]
    )
    seconds = GaugeMetricFamily(
        "headgate_operator_seconds",
        "Estimated time of an operator for an item.",
        labels=["operator"],
    )
    selectivity = GaugeMetricFamily(
        "headgate_operator_selectivity",
        "Estimated share of items for which an operator is true.",
        labels=["operator"],
    )
    for name, operator in status.operators.items():
        failures.add_metric([name], operator.failures)
        seconds.add_metric([name], operator.learned.cost_s)
        selectivity.add_metric([name], operator.learned.selectivity)
    yield from (failures, seconds, selectivity)
