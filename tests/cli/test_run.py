"""`headgate run` and `headgate demo` as processes."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from bench.running.processes import below, end
from tests.pipeline.waiting import until

from headgate.sandbox.confinement import standing_walls

pytestmark = pytest.mark.integration

SCRIPT = """
register stream Tickets from json '*.json' (id text, price int);
create feed Cheap from Tickets where price < 50;
subscribe to Cheap output file 'cheap.json' for 30 days;
subscribe to Cheap output console for 30 days;
"""
# Workers of PySpark's own complain now and then when Spark closes their pipes; that is not ours.
OURS = re.compile(r'File ".*/(?:src|site-packages)/headgate/')
COMMAND = [sys.executable, "-m", "headgate"]
RUN = ["run", "script.feeds", "--data", "tickets"]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def items_of(path: Path) -> list[str]:
    return (
        [each["title"] for each in json.loads(path.read_bytes())["items"]] if path.exists() else []
    )


def metrics(port: int) -> str:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
    except httpx.TransportError:
        return ""


def token(folder: Path) -> dict[str, str]:
    issue = [*COMMAND, "token", "issue", "--scope", "read"]
    issued = subprocess.run(issue, cwd=folder, capture_output=True, text=True, check=True)
    (text,) = re.findall(r"hg_\S+", issued.stdout)
    return {"authorization": f"Bearer {text}"}


def test_a_run_delivers_prints_a_summary_and_stops_on_sigterm(tmp_path: Path) -> None:
    (tmp_path / "script.feeds").write_text(SCRIPT)
    (tmp_path / "tickets").mkdir()
    lines = [json.dumps({"id": str(n), "price": n}) for n in range(100)]
    (tmp_path / "tickets" / "a.json").write_text("\n".join(lines) + "\n")
    port, service = free_port(), f"127.0.0.1:{free_port()}"
    # Twice: the script is applied again, and its subscriptions are not made again.
    for _ in range(2):
        process = subprocess.Popen(
            [*COMMAND, *RUN, "--metrics", f"127.0.0.1:{port}", "--serve", service],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until(lambda: len(items_of(tmp_path / "feeds" / "cheap.json")) == 50)
            until(lambda: "headgate_feeds 1.0" in metrics(port))
            answer = httpx.get(f"http://{service}/v1/feeds/Cheap/items", headers=token(tmp_path))
            assert len(answer.json()["items"]) == 50
            process.send_signal(signal.SIGTERM)
            out, errors = process.communicate(timeout=300)
        finally:
            process.kill()
        assert process.returncode == 0, errors
        assert f"serving at http://{service}" in errors
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://{service}/livez")
        assert "items of" in out
        assert f"sandbox of operators and stylesheets: {standing_walls()}" in errors
        assert not OURS.search(errors), errors
    shown = subprocess.run(
        [*COMMAND, "show", "--json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(shown.stdout)["subscriptions"] == 2
    tail = subprocess.run(
        [*COMMAND, "tail", "Cheap", "--lines", "3", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [json.loads(line)["id"] for line in tail.stdout.splitlines()] == ["47", "48", "49"]


def test_the_demo_runs_and_leaves_feeds(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "demo", "--for", "100 seconds", "--folder", str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "RockConcertStream.rss" in done.stdout
    assert "MuseWithPhotos.atom" in done.stdout
    assert "problem: " not in done.stdout
    assert not OURS.search(done.stderr), done.stderr
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine").write_text("precious")
    refused = subprocess.run(
        [*COMMAND, "demo", "--folder", str(tmp_path / "other")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert (tmp_path / "other" / "mine").exists()


def test_a_run_whose_jvm_dies_says_so_and_ends(tmp_path: Path) -> None:
    (tmp_path / "script.feeds").write_text(SCRIPT)
    (tmp_path / "tickets").mkdir()
    process = subprocess.Popen(
        [*COMMAND, *RUN, "--metrics", "off"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until((tmp_path / "headgate-data" / "lists").exists)
        until(lambda: any((tmp_path / "headgate-data" / "checkpoints").iterdir()))
        driver, jvm, *_ = below(process.pid)
        assert driver == process.pid
        end(jvm, signal.SIGKILL)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 3
    assert "Spark's JVM has ended; nothing is lost" in errors
