"""`--log-format json`: what serve and deliver write to standard error, as processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from tests.deliver.log_world import news
from tests.pipeline.operated_folder import OperatedFolder

pytestmark = pytest.mark.integration
COMMAND = [sys.executable, "-m", "headgate"]
CHOICES = [(["--log-format", "json"], {}), ([], {"HEADGATE_LOG_FORMAT": "json"})]


@pytest.fixture
def operated(tmp_path: Path) -> Iterator[OperatedFolder]:
    made = OperatedFolder(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(("options", "variables"), CHOICES)
def test_serve(operated: OperatedFolder, options: list[str], variables: dict[str, str]) -> None:
    operated.beat(ago_s=100)
    folders = [
        "--catalog",
        str(operated.path / "headgate.db"),
        "--folder",
        str(operated.folder.path),
    ]
    with subprocess.Popen(
        [*COMMAND, "serve", "--address", "127.0.0.1:0", *folders, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().removeprefix("serving at ").strip()
        assert httpx.get(f"{url}/readyz", timeout=60).status_code == 503
        found = json.loads(process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
        rest = process.stderr.read()
    assert (found["level"], found["logger"]) == ("warning", "headgate.service")
    assert "no sign of life" in found["message"]
    assert all(json.loads(line) for line in rest.splitlines())


def test_deliver(operated: OperatedFolder) -> None:
    number = operated.number("Rock")
    operated.world.now = datetime.now(UTC)
    operated.world.publish(news("a", number))
    operated.deliver(cursor=0)
    with subprocess.Popen(
        [
            *COMMAND,
            *("deliver", "--log-format", "json", "--output", str(operated.path / "feeds")),
            *("--catalog", str(operated.path / "headgate.db")),
            *("--folder", str(operated.folder.path)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        found = json.loads(process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert found["subscription"] == 1
    assert found["message"].startswith("a delivery failed: ")
    assert "/hook" not in json.dumps(found), "a target may have a secret in it"


def test_an_error_that_ends_a_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "deliver", "--log-format", "json", "--folder", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 3
    found = json.loads(done.stderr)
    assert found["level"] == "error"
    assert "there is no run in the folder" in found["message"]
