"""What Prometheus is told."""

from __future__ import annotations

import httpx
import pytest
from tests.cli.test_run_display import status

from headgate.model.errors import PipelineError
from headgate.pipeline.metrics import MetricsServer


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
