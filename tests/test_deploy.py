"""What deploy/ has fits the program: metrics that exist, commands that are understood."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry
from tests.cli.test_run_display import status
from tests.pipeline.operated_folder import OperatedFolder

from headgate.cli.main import make_app
from headgate.pipeline.metric_families import folder_families, run_families
from headgate.service.caller import Service
from headgate.service.metrics import registry_of

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "headgate.rules.yml"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
METRIC = re.compile(r"\bheadgate_[a-z0-9_]+\b")
TYPED = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)

pytestmark = pytest.mark.skipif(not DEPLOY.is_dir(), reason="deploy/ is not part of this tree")


class Run(Collector):
    """What a run exports."""

    def __init__(self, operated: OperatedFolder) -> None:
        self._operated = operated

    def describe(self) -> list[object]:  # type: ignore[override]
        return []

    def collect(self) -> Iterator[object]:  # type: ignore[override]
        with self._operated.headgate.folder_reader() as reader:
            yield from run_families(status())
            yield from folder_families(reader.look(), with_names=True)


@pytest.fixture
def exported(tmp_path: Path) -> set[str]:
    """The names of all series that a run or the service exports."""
    operated = OperatedFolder(tmp_path)
    operated.beat()
    run = CollectorRegistry()
    run.register(Run(operated))
    service = Service.of(operated.headgate)
    names = set[str]()
    for registry in (run, registry_of(service)):
        for name, kind in TYPED.findall(generate_latest(registry).decode()):
            ends = ("_bucket", "_count", "_sum") if kind == "histogram" else ("",)
            names |= {name + end for end in ends}
    service.watch.close()
    operated.close()
    return names


def test_alerts_and_dashboards_use_metrics_that_exist(exported: set[str]) -> None:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    dashboard = json.loads((DEPLOY / "grafana" / "headgate.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = {
        name
        for text in [*(rule["expr"] for rule in rules), *queries]
        for name in METRIC.findall(text)
    }
    assert len(used) > 20
    assert used <= exported
    assert all(rule["annotations"]["summary"] for rule in rules)


def test_documented_metrics_exist(exported: set[str]) -> None:
    text = (ROOT / "docs" / "operating.md").read_text()
    section = text.partition("### Metrics")[2].partition("### Health checks")[0]
    named = set(METRIC.findall(section)) - {"headgate_http_request_seconds"}
    assert len(named) > 15
    assert named <= exported


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command line in deploy/, with the file that it is in."""
    for unit in UNITS:
        for line in re.findall(r"^ExecStart=\S+/headgate (.+)$", unit.read_text(), re.MULTILINE):
            yield unit.name, line.split()
    compose = yaml.safe_load((DEPLOY / "compose.yml").read_text())
    for name, service in compose["services"].items():
        if "headgate" in str(service["image"]):
            yield f"compose {name}", service["command"]
    for document in yaml.safe_load_all((DEPLOY / "kubernetes" / "headgate.yml").read_text()):
        pod = document["spec"].get("template", {}).get("spec", {})
        for container in pod.get("containers", ()):
            yield f"kubernetes {container['name']}", container["args"]
    (default,) = re.findall(r"^CMD (.+)$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    yield "Containerfile", json.loads(default)


@pytest.mark.parametrize(("place", "arguments"), list(commands()))
def test_commands_are_understood(place: str, arguments: list[str]) -> None:
    name, *rest = arguments
    group = typer.main.get_command(make_app([name]))
    command = group.commands[name]  # type: ignore[attr-defined]
    context = command.make_context(name, rest)
    assert context.params, place


def test_variables_are_known() -> None:
    texts = [path.read_text() for path in DEPLOY.rglob("*") if path.is_file()]
    used = {name for text in texts for name in re.findall(r"\bHEADGATE_[A-Z_]+[A-Z]\b", text)}
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert "HEADGATE_LOG_FORMAT" in used
    assert {name for name in used if name not in source} == set()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_alerts_fire_when_they_should() -> None:
    for command in (["check", "rules", RULES.name], ["test", "rules", "headgate.rules.test.yml"]):
        done = subprocess.run(
            ["promtool", *command], cwd=RULES.parent, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_units_are_right(unit: Path, tmp_path: Path) -> None:
    """With a program that exists in place of Headgate."""
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
    (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / unit.name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
