"""What Prometheus is told."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry
from tests.cli.test_run_display import status
from tests.deliver.log_world import news
from tests.pipeline.operated_folder import OperatedFolder
from tests.pipeline.waiting import until

from headgate.model.errors import PipelineError
from headgate.pipeline.heartbeat import StageProgress
from headgate.pipeline.metric_families import LABEL_LENGTH_MAX, SERIES_MAX, counter, gauge
from headgate.pipeline.metrics import CONNECTIONS_MAX, MetricsServer


def test_figures_of_the_moment() -> None:
    with MetricsServer(status, "127.0.0.1", 0) as server:
        text = httpx.get(f"http://127.0.0.1:{server.port}/metrics").text
        for line in (
            "headgate_items_total 15.0",
            'headgate_source_items_total{source="Tickets"} 3.0',
            "headgate_retrying 2.0",
            "headgate_behind 6.0",
            'headgate_sent_total{output="file"} 5.0',
        ):
            assert line in text.splitlines()
        with pytest.raises(PipelineError, match="cannot be served"):
            MetricsServer(status, "127.0.0.1", server.port)


def test_figures_of_the_folder(tmp_path: Path) -> None:
    operated = OperatedFolder(tmp_path)
    operated.world.publish(news("a"))
    operated.fetch("News", "HTTP 404", ago_s=100)
    operated.deliver(cursor=1)
    operated.catalog.suspend("Rock", "it took 31 % of the cores in the last minute")
    stages = {"windows": StageProgress(12.5, 7, 3.0), "feeds-a": StageProgress(11.5)}
    found = status(stages=stages, queries={"feeds-a": True, "files-1f": False})
    with (
        operated.headgate.folder_reader() as reader,
        MetricsServer(lambda: found, "127.0.0.1", 0, folder=reader.look) as server,
    ):
        text = httpx.get(f"http://127.0.0.1:{server.port}/metrics").text
    lines = text.splitlines()
    for line in (
        "headgate_broken_feeds 1.0",
        'headgate_feed_suspended{feed="Rock",reason="cpu"} 1.0',
        "headgate_suspended_feeds 1.0",
        'headgate_query_active{query="feeds-a"} 1.0',
        'headgate_query_active{query="files-1f"} 0.0',
        'headgate_stage_finished_timestamp_seconds{stage="feeds-a"} 11.5',
        'headgate_stage_lag_items{stage="windows"} 7.0',
        "headgate_log_items 1.0",
        "headgate_oldest_undelivered_seconds 0.0",
    ):
        assert line in lines
    values = samples(text)
    assert 99 < values["headgate_source_broken_seconds", "News"] < 200
    assert values["headgate_disk_free_bytes", "folder"] > 0
    assert values["headgate_stored_bytes", "items"] > 0
    helps = dict(line.split(" ", 3)[2:] for line in lines if line.startswith("# HELP"))
    assert all(len(each) > 10 for each in helps.values())
    assert "Worry" in helps["headgate_query_active"]
    operated.close()


def samples(text: str) -> dict[tuple[str, ...], float]:
    return {
        (each.name, *each.labels.values()): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


class Fixed(Collector):
    def __init__(self, *families: object) -> None:
        self._families = families

    def collect(self) -> list[object]:  # type: ignore[override]
        return list(self._families)


@given(st.dictionaries(st.text(max_size=400), st.floats(0, 1e9), max_size=20))
def test_names_are_bounded_unique_and_read_back(values: dict[str, float]) -> None:
    registry = CollectorRegistry()
    registry.register(Fixed(gauge("a", "A.", "name", values), counter("b", "B.", "name", values)))
    text = generate_latest(registry).decode()
    read = samples(text)
    lines = [line.rpartition(" ")[0] for line in text.split("\n") if line[:1] != "#"]
    assert len(lines) == len(set(lines)), "Prometheus refuses a series that occurs twice"
    assert len(read) == 2 * len(values)
    assert sorted(v for k, v in read.items() if k[0] == "headgate_a") == sorted(values.values())
    assert all(len(label) <= LABEL_LENGTH_MAX for _, label in read)
    short = {name for name in values if len(name) <= LABEL_LENGTH_MAX}
    assert short <= {label for _, label in read}


def test_the_greatest_of_too_many_are_exported() -> None:
    many = {f"S{n}": float(n) for n in range(SERIES_MAX + 50)}
    family = gauge("a", "A.", "name", many)
    assert len(family.samples) == SERIES_MAX
    assert family.samples[0].labels == {"name": f"S{SERIES_MAX + 49}"}
    odd = gauge("a", "A.", "name", {"x\ud800": 1.0, "x?": 2.0})
    assert [each.labels["name"] for each in odd.samples] == ["x?"]


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
