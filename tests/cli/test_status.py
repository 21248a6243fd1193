"""`headgate status`: the worst thing first, and an exit code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.headgate_command import Run
from tests.deliver.log_world import news
from tests.pipeline.operated_folder import OperatedFolder

from headgate.deliver.delivery_tables import DeadLetter, RetryRow
from headgate.pipeline.heartbeat import StageProgress

FOLDER = ("--folder", "data")


@pytest.fixture
def operated(tmp_path: Path) -> Iterator[OperatedFolder]:
    made = OperatedFolder(tmp_path)
    yield made
    made.close()


def sentence(headgate: Run, *, code: int = 1) -> str:
    found, out, err = headgate("status", *FOLDER)
    assert (found, err) == (code, "")
    return out.splitlines()[0]


def test_all_is_well(headgate: Run, operated: OperatedFolder) -> None:
    operated.world.publish(news("a"), news("b"))
    operated.fetch("News")
    operated.deliver(cursor=2)
    operated.beat()
    code, out, err = headgate("status", *FOLDER)
    assert (code, err) == (0, "")
    first, *lines = out.splitlines()
    assert first == "all is well; the run is on since 2 hours"
    text = "\n".join(lines)
    for part in (
        "1 of 1 queries active",
        "12 items in all",
        "2 registered; 1 web feeds, 0 of them broken",
        "1 registered, 0 of them suspended",
        "2 subscriptions, 0 workers; 0 items delivered",
        "dead letters: none",
        "2 items in 1 files",
        " free of ",
    ):
        assert part in text
    assert len(lines) < 24, "one screen"


def test_broken_sources_are_named(headgate: Run, operated: OperatedFolder) -> None:
    for name, ago in (("News", 3 * 3_600 + 60), ("Sport", 120), ("A", 60), ("B", 60)):
        operated.fetch(name, "HTTP 404\x1b[2J", ago_s=ago)
    operated.beat()
    code, out, _ = headgate("status", *FOLDER)
    assert code == 1
    assert "\x1b" not in out
    assert out.startswith("4 sources are broken: News (HTTP 404")
    assert "for 3 hours), Sport" in out
    assert "and 1 more" in out
    assert "again in 4 minutes" in out


def test_the_worst_comes_first(
    headgate: Run, operated: OperatedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = operated.now_s
    operated.pass_back(7_300)
    operated.world.publish(news("a"))
    operated.deliver(
        cursor=1,
        retries=[RetryRow(1, "m", 1, 0, 0, 1, now + 60, attempts=3)],
        dead=[DeadLetter(1, 1, "x", 0, 1, 9, "[]", 1, "gone", now, 0)],
    )
    operated.beat()
    assert sentence(headgate) == (
        "1 message cannot be delivered, the oldest for 2 hours (and 1 other problem)"
    )
    operated.catalog.suspend("Rock", "noisy")
    assert sentence(headgate).startswith("1 feed is suspended: Rock (noisy)")
    operated.fetch("News", "HTTP 500", ago_s=240)
    assert sentence(headgate).startswith("1 source is broken: News (HTTP 500 for 4 minutes)")
    operated.beat(stages={"windows": StageProgress(None, 9, 4_000)})
    assert sentence(headgate).startswith("the stage windows is 66 minutes behind, by 9 items")
    operated.beat(queries={"feeds-a": False}, errors={"feeds-a": "no memory"})
    assert sentence(headgate).startswith("feeds-a fails: no memory")
    operated.beat(ago_s=300)
    assert sentence(headgate).startswith("the run (process")
    operated.beat(ended_s=now, why_ended="Spark's JVM has ended")
    assert "by itself" in sentence(headgate)
    full = SimpleNamespace(free=12_000_000, total=10**12)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    assert sentence(headgate).startswith(
        "the disk of the folder is almost full: 12 MB of 1,000 GB are free (and"
    )


def test_after_a_run(headgate: Run, operated: OperatedFolder) -> None:
    operated.fetch("News", next_s=-10_000)
    operated.beat(ended_s=operated.now_s - 3_600)
    assert sentence(headgate, code=0) == "no run is on; the last one was stopped 60 minutes ago"


def test_json_says_the_same(headgate: Run, operated: OperatedFolder) -> None:
    operated.fetch("News", "HTTP 404")
    operated.beat()
    code, out, _ = headgate("status", *FOLDER, "--json")
    found = json.loads(out)
    assert code == 1
    assert found["ok"] is False
    assert found["problems"][0]["kind"] == "source"
    assert found["run"] == "running"
    assert found["sources"]["broken"][0]["name"] == "News"
    assert found["registered"] == {"sources": 2, "feeds": 1, "subscriptions": 2}
    assert found["heartbeat"]["stages"]["windows"]["lag_items"] == 0


def test_it_cannot_be_told(headgate: Run, operated: OperatedFolder) -> None:
    assert sentence(headgate, code=2) == "nothing was run in this folder yet"
    code, _, err = headgate("status", "--folder", "elsewhere")
    assert code == 2
    assert "elsewhere" in err
    code, _, err = headgate("status", *FOLDER, "--catalog", "other.db")
    assert code == 2
    assert "there is no catalog 'other.db'" in err
    assert not Path("other.db").exists()
    assert operated.folder.path.exists()
