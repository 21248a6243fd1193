"""A real Prometheus scrapes a run's metrics and a service's, with our rules."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.cli.test_run_display import status
from tests.deliver.servers import free_port
from tests.pipeline.operated_folder import OperatedFolder
from tests.pipeline.waiting import until
from tests.service.test_api import serving

from headgate.pipeline.heartbeat import StageProgress
from headgate.pipeline.metrics import MetricsServer
from headgate.pipeline.status import Status

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "headgate.rules.yml"
METRIC = re.compile(r"\bheadgate_[a-z0-9_]+\b")
ONLY_IF_WRONG = {"headgate_unreadable"}
"""What has no series as long as there is nothing to tell."""
DAY_S = 86_400.0
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not DEPLOY.is_dir(), reason="deploy/ is not part of this tree"),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed"),
]


class Prometheus:
    """Its HTTP API."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=60.0)

    def get(self, path: str, **query: str) -> Any:
        answer = self._http.get(f"/api/v1/{path}", params=query).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def close(self) -> None:
        self._http.close()

    def is_ready(self) -> bool:
        try:
            return self._http.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def values(self, query: str) -> list[dict[str, str]]:
        return [each["metric"] for each in self.get("query", query=query)["result"]]

    def alerts(self) -> dict[str, set[tuple[str, str]]]:
        """The state and summary of each alert that is pending or firing, by its name."""
        found: dict[str, set[tuple[str, str]]] = {}
        for each in self.get("alerts")["alerts"]:
            summary = each["annotations"]["summary"]
            found.setdefault(each["labels"]["alertname"], set()).add((each["state"], summary))
        return found


@contextmanager
def prometheus(folder: Path, targets: dict[str, str]) -> Iterator[Prometheus]:
    port = free_port()
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {"job_name": name, "static_configs": [{"targets": [target]}]}
            for name, target in targets.items()
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    command = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]
    with subprocess.Popen(command, cwd=folder) as process:
        server = Prometheus(f"http://127.0.0.1:{port}")
        try:
            until(lambda: server.is_ready() or process.poll() is not None)
            assert process.poll() is None, "it did not start"
            yield server
        finally:
            server.close()
            process.terminate()


@pytest.fixture
def operated(tmp_path: Path) -> Iterator[OperatedFolder]:
    """A run with a source that has been broken for two days, and a suspended feed."""
    operated = OperatedFolder(tmp_path)
    operated.fetch("News", ago_s=60)
    operated.fetch("Sport", "404 Not Found", ago_s=2 * DAY_S)
    operated.catalog.suspend("Rock", "too slow")
    operated.beat()
    yield operated
    operated.close()


@contextmanager
def scraped(operated: OperatedFolder) -> Iterator[Prometheus]:
    with ExitStack() as stack:
        reader = stack.enter_context(operated.headgate.folder_reader())
        run = stack.enter_context(MetricsServer(_status, "127.0.0.1", 0, folder=reader.look))
        url = stack.enter_context(serving(operated.headgate))
        httpx.get(f"{url}/livez", timeout=60.0)
        targets = {"run": f"127.0.0.1:{run.port}", "service": url.removeprefix("http://")}
        yield stack.enter_context(prometheus(operated.path, targets))


def _status() -> Status:
    stages = {"feeds-a": StageProgress(time.time())}
    return status(queries={"feeds-a": True}, stages=stages, resident={"driver": 300_000_000})


def used_names() -> set[str]:
    """What rules and panels ask for."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    dashboard = json.loads((DEPLOY / "grafana" / "headgate.json").read_text())
    queries = [rule["expr"] for group in groups for rule in group["rules"]]
    queries += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return {name for text in queries for name in METRIC.findall(text)}


def test_rules_and_panels_find_their_metrics(operated: OperatedFolder) -> None:
    with scraped(operated) as server:
        until(lambda: len(server.values("up == 1")) == 2)
        assert {each["job"] for each in server.values("up")} == {"run", "service"}
        targets = server.get("targets")["activeTargets"]
        assert [each["lastError"] for each in targets] == ["", ""]
        stored = set(server.get("label/__name__/values"))
        assert used_names() - stored == ONLY_IF_WRONG
        (group,) = server.get("rules")["groups"]
        until(lambda: _evaluated(server))
        assert [rule["lastError"] for rule in group["rules"] if rule.get("lastError")] == []
        dashboard = json.loads((DEPLOY / "grafana" / "headgate.json").read_text())
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                server.get("query", query=target["expr"])  # what is wrong with it is an error


def _evaluated(server: Prometheus) -> bool:
    (group,) = server.get("rules")["groups"]
    assert not [rule for rule in group["rules"] if rule["health"] == "err"], group
    return all(rule["health"] == "ok" for rule in group["rules"])


def test_a_broken_source_fires_with_its_name(operated: OperatedFolder) -> None:
    with scraped(operated) as server:
        until(lambda: "HeadgateSourceBroken" in server.alerts())
        ((state, summary),) = server.alerts()["HeadgateSourceBroken"]
        assert state == "firing"
        assert summary.startswith("The source Sport has been broken for 2d 0h 0m ")
        until(lambda: "HeadgateFeedSuspended" in server.alerts())
        assert {state for state, _ in server.alerts()["HeadgateFeedSuspended"]} == {"firing"}
        # It is answered again: the alert ends.
        operated.fetch("Sport", ago_s=1)
        until(lambda: "HeadgateSourceBroken" not in server.alerts())


def test_a_run_that_is_lost_is_pending_at_once(operated: OperatedFolder) -> None:
    operated.beat(ago_s=3_600)
    with scraped(operated) as server:
        until(lambda: "HeadgateRunLost" in server.alerts())
        assert {state for state, _ in server.alerts()["HeadgateRunLost"]} == {"pending"}
