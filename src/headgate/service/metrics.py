"""`/metrics` of the service, for Prometheus: requests, posts and live clients of this process, and
what the folder of the run says (pipeline/folder_status.py).

No figure names a source, feed or tenant; `/metrics` of the run does.

Who may see it: clients of this machine, and API tokens of the tenant `local` with the scope admin.
A request that a proxy passes on comes from this machine, too. One that says so in a header, or
names another host than this machine, needs a token. A proxy that hides both must not pass the path
on (docs/operating.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from itertools import accumulate

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from headgate.catalog.principals import Scope
from headgate.catalog.tenants import LOCAL
from headgate.pipeline.metric_families import build_info, folder_families, heartbeat_families
from headgate.service.caller import Service, bearer, caller_of, service_of
from headgate.service.request_figures import BUCKETS_S, RequestFigures

FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""Headers by which proxies say that they pass a request on."""
router = APIRouter()


@router.get("/metrics", include_in_schema=False)
async def scrape(request: Request) -> Response:
    if not is_local(request):
        caller = await caller_of(request, await bearer(request))
        principal = caller.principal
        if principal.tenant != LOCAL or Scope.ADMIN not in principal.scopes:
            raise HTTPException(403, f"Metrics need the scope {Scope.ADMIN} of tenant {LOCAL}")
    service = service_of(request)
    text = await run_in_threadpool(generate_latest, registry_of(service))
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def is_local(request: Request) -> bool:
    """Whether a client of this machine asks this machine, as far as one can see."""
    client = request.client.host if request.client else ""
    host = request.url.hostname or ""
    passed_on = any(name in request.headers for name in FORWARDED)
    return _is_loopback(client) and _is_loopback(host) and not passed_on


def _is_loopback(host: str) -> bool:
    """
    >>> _is_loopback("127.0.0.1"), _is_loopback("localhost"), _is_loopback("news.example")
    (True, True, False)
    """
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def registry_of(service: Service) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_ServiceCollector(service))
    return registry


class _ServiceCollector(Collector):
    def __init__(self, service: Service) -> None:
        self._service = service

    def describe(self) -> list[GaugeMetricFamily]:
        """Empty: nothing is collected to register it."""
        return []

    def collect(
        self,
    ) -> Iterator[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]:
        yield build_info()
        yield from _request_families(self._service.figures)
        yield GaugeMetricFamily(
            "headgate_live_clients",
            "Clients that follow a feed or source by /live.",
            value=self._service.live.clients,
        )
        status = self._service.watch.look()
        yield from heartbeat_families(status)
        yield from folder_families(status, with_names=False)


def _request_families(
    figures: RequestFigures,
) -> Iterator[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]:
    seconds = HistogramMetricFamily(
        "headgate_http_request_seconds",
        "Time until the answer of a request begins, by the template of its path. Worry if many "
        "take longer than a second, or if the status is 5xx.",
        labels=["route", "method", "status"],
    )
    limits = [*map(str, BUCKETS_S), "+Inf"]
    for key, route in sorted(figures.routes().items()):
        buckets = [*zip(limits, map(float, accumulate(route.buckets)), strict=True)]
        seconds.add_metric(list(key), buckets, route.seconds)
    yield seconds
    for name, help_, count in (
        ("http_received_bytes", "Bytes of the bodies of requests.", figures.bytes_in),
        ("http_sent_bytes", "Bytes of the bodies of answers.", figures.bytes_out),
        ("posts_accepted", "Events that were posted and accepted.", figures.accepted),
        (
            "posts_rejected",
            "Events that were posted and do not fit the schema. Worry if it is a large share.",
            figures.rejected,
        ),
    ):
        yield CounterMetricFamily(f"headgate_{name}", help_, value=count)
    yield GaugeMetricFamily(
        "headgate_http_requests_under_way",
        "Requests that are being answered, live clients included.",
        value=figures.under_way,
    )
