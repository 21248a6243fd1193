"""`headgate relay`: plan, processes, published documents, and kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.headgate_command import Run
from tests.relay.relay_networks import document, free_addresses

SCRIPT = """
register documents News from xml 'news/*.xml';
register stream Jobs from json 'jobs/*.json' (pay int);
create feed Rich from Jobs where pay > 100;
create feed Topics from News match //item/topic {val};
create feed Headlines from News match //item/headline {cont};
create feed Both from News match //item[topic {val}]/headline {cont};
create feed T1 from News match //item[topic = 't1']/headline {cont};
subscribe to Topics output file 'a.xml' at site Paris;
subscribe to Headlines output file 'b.xml' at site Rome;
subscribe to Both output file 'c.xml' at site Oslo;
subscribe to T1 output file 'd.xml' at site Rome;
"""


@pytest.fixture
def planned(headgate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("HEADGATE_RELAY_TOKEN", raising=False)
    (tmp_path / "news.feeds").write_text(SCRIPT, encoding="utf-8")
    code, _, err = headgate("apply", "news.feeds")
    assert code == 0, err
    return headgate


def plan(headgate: Run, *more: str) -> str:
    code, out, err = headgate("relay", "plan", *more)
    assert code == 0, err
    return out


def use_free_ports(path: Path) -> None:
    result = json.loads(path.read_text())
    result["sites"] = {
        site: str(each) for site, each in free_addresses(list(result["sites"])).items()
    }
    path.write_text(json.dumps(result))


def test_a_plan_is_a_file_and_a_token(planned: Run, tmp_path: Path) -> None:
    out = plan(planned)
    assert "4 views of News at 3 sites and the source" in out
    assert "which relays do not carry: 1" in out
    token = tmp_path / "network.token"
    assert token.stat().st_mode & 0o077 == 0
    before = token.read_text()
    plan(planned)
    assert token.read_text() == before
    result = json.loads((tmp_path / "network.json").read_text())
    assert result["sites"]["source"] == "127.0.0.1:7000"
    assert before.strip() not in (tmp_path / "network.json").read_text()


def test_views_of_a_lost_site_are_served_by_others(planned: Run, tmp_path: Path) -> None:
    plan(planned)
    use_free_ports(tmp_path / "network.json")
    ports = json.loads((tmp_path / "network.json").read_text())["sites"]
    out = plan(planned, "--without", "Oslo")
    assert "3 views of News at 2 sites" in out
    result = json.loads((tmp_path / "network.json").read_text())
    assert result["sites"] == {site: each for site, each in ports.items() if site != "Oslo"}
    code, _, err = planned("relay", "plan", "--without", "Osla")
    assert code == 2
    assert "did you mean 'Oslo'" in err


def test_wrong_calls_are_refused_with_a_reason(planned: Run, tmp_path: Path) -> None:
    code, _, err = planned("relay", "run", "--site", "Paris")
    assert code == 3
    assert "network.token' cannot be read" in err
    plan(planned)
    code, _, err = planned("relay", "run", "--site", "Pari")
    assert code == 3
    assert "there is no site 'Pari' in the network: did you mean 'Paris'?" in err
    code, _, err = planned("relay", "read", "--site", "Paris", "--view", "Topic")
    assert code == 3
    assert "did you mean 'Topics'?" in err
    code, _, err = planned("relay", "publish", "news.feeds")
    assert code == 3
    assert "source cannot be reached at 127.0.0.1:7000" in err
    (tmp_path / "network.json").write_text('{"format": "headgate-relays-1"}')
    code, _, err = planned("relay", "status")
    assert code == 3
    assert "network.json: expected format, network, source, sites and views" in err


@contextmanager
def running(folder: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("ab") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "headgate", "relay", *command],
            cwd=folder,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield started
    finally:
        started.send_signal(signal.SIGTERM)
        try:
            started.wait(20)
        finally:
            started.kill()


def command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def relays_of(folder: Path) -> dict[str, int]:
    """The relays that run in a folder, by site."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        command = command_line(int(path.name))
        try:
            here = "--with-parent" in command and os.readlink(path / "cwd") == str(folder)
        except OSError:
            continue
        if here:
            found[command[command.index("--site") + 1]] = int(path.name)
    return found


def until(what: str, holds: object, *, seconds: float = 40.0) -> None:
    end = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end, what
        time.sleep(0.1)


@pytest.mark.integration
def test_a_network_of_processes_survives_kills_and_a_new_plan(planned: Run, tmp_path: Path) -> None:
    plan(planned)
    use_free_ports(tmp_path / "network.json")
    for number in range(12):
        (tmp_path / f"{number}.xml").write_text(document(number))

    def publish(*numbers: int) -> None:
        files = [f"{number}.xml" for number in numbers]
        code, out, err = planned("relay", "publish", *files, "--wait")
        assert code == 0, err
        assert "every site has all of them" in out

    def is_up() -> bool:
        result = json.loads(planned("relay", "status", "--json")[1])
        return all(not each.get("missing", ["?"]) for each in result.values())

    with running(tmp_path, "all"):
        until("all relays are connected", is_up)
        publish(0, 1, 2, 3)
        for victim in ("Rome", "source"):
            os.kill(relays_of(tmp_path)[victim], signal.SIGKILL)
            until("it runs again", is_up)
            publish(4, 5, 6)
        # Oslo is given up: the others go on with a new plan.
        plan(planned, "--without", "Oslo")
        until("Oslo has ended", lambda: "Oslo" not in relays_of(tmp_path))
        until("all others are connected", is_up)
        publish(7, 8)
    until("all have ended", lambda: not relays_of(tmp_path))

    published = [0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 7, 8]
    assert texts(planned, "Paris", "Topics") == [
        [f"t{number % (each + 2)}" for each in range(number % 4)] for number in published
    ]
    assert [len(each) for each in texts(planned, "Rome", "Headlines")] == [
        number % 4 for number in published
    ]


def texts(headgate: Run, site: str, view: str) -> list[list[str]]:
    """Of each document, in order, the first text of each tuple."""
    code, out, err = headgate("relay", "read", "--site", site, "--view", view, "--json")
    assert code == 0, err
    lines = [json.loads(line) for line in out.splitlines()]
    assert [each["document"] for each in lines] == sorted({each["document"] for each in lines})
    return [[row[0] for row in each["tuples"]] for each in lines]
