"""`headgate serve` as a process: it says where it is, answers, and ends when it is told."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from headgate.api.headgate import open as open_headgate
from headgate.api.running import RunOptions
from headgate.cli.run import _say_pending

pytestmark = pytest.mark.integration
COMMAND = [sys.executable, "-m", "headgate"]


def test_it_serves_until_it_is_stopped(tmp_path: Path):
    command = [*COMMAND, "serve", "--address", "127.0.0.1:0", "--catalog", str(tmp_path / "c.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("serving at ").strip()
        assert "--public-url" in process.stdout.readline()
        try:
            assert httpx.get(f"{url}/confirm/x", timeout=60).status_code == 404
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)


def test_no_other_command_loads_the_web_framework():
    code = (
        "import sys; from headgate.cli.main import make_app; make_app();"
        "assert not {'fastapi', 'starlette', 'uvicorn'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_says_that_mails_wait_and_what_to_do(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("HEADGATE_PUBLIC_URL", raising=False)
    options = RunOptions(tmp_path / "data", output=tmp_path / "out")
    with open_headgate(str(tmp_path / "c.db")) as h:
        h.execute("register feed https://a.b/c as S;")
        _say_pending(h, options)
        assert capsys.readouterr().err == ""
        ticket = h.subscribe("S", mail="me@a.org")
        assert ticket.is_pending
        _say_pending(h, options)
        said = capsys.readouterr().err
        assert "1 mail subscription waits for confirmation" in said
        assert "headgate confirm ID" in said
        monkeypatch.setenv("HEADGATE_PUBLIC_URL", "https://a.org")
        _say_pending(h, options)
        assert "headgate confirm" not in capsys.readouterr().err
        monkeypatch.setenv("HEADGATE_MAIL_CONFIRM", "off")
        _say_pending(h, options)
        assert capsys.readouterr().err == ""
