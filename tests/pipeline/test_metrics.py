"""What Prometheus is told."""

from __future__ import annotations

import socket
import threading

import httpx
import pytest
from tests.cli.test_run_display import status
from tests.pipeline.waiting import until

from headgate.model.errors import PipelineError
from headgate.pipeline.metrics import CONNECTIONS_MAX, MetricsServer


def test_figures_of_the_moment() -> None:
    with MetricsServer(status, "127.0.0.1", 0) as server:
        text = httpx.get(f"http://127.0.0.1:{server.port}/metrics").text
        for line in (
            "headgate_items_total 15.0",
            'headgate_source_items_total{source="Tickets"} 3.0',
            "headgate_retrying 2.0",
            "headgate_behind 6.0",
            "headgate_broken_feeds 1.0",
            'headgate_sent_total{output="file"} 5.0',
        ):
            assert line in text.splitlines()
        with pytest.raises(PipelineError, match="cannot be served"):
            MetricsServer(status, "127.0.0.1", server.port)


def test_idle_connections_do_not_take_the_port() -> None:
    with MetricsServer(status, "127.0.0.1", 0) as server:
        before = threading.active_count()
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(500)]
        for number in range(3):
            text = httpx.get(f"http://127.0.0.1:{server.port}/metrics", timeout=30).text
            assert "headgate_items_total 15.0" in text, f"the scrape {number} is answered"
        until(lambda: threading.active_count() - before <= CONNECTIONS_MAX + 1)
        for each in idle:
            each.close()
        until(lambda: threading.active_count() <= before)
