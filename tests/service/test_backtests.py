"""Backtests by HTTP: in processes that are bounded, cancelled, and gone with the service."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.pipeline.waiting import until
from tests.service.stored_home import StoredHome
from tests.service.test_api import problem_in

from headgate.api.backtest_child import BacktestRequest
from headgate.catalog.principals import Scope
from headgate.model.errors import QuotaExceeded, UnknownName
from headgate.service import backtest_jobs
from headgate.service.backtest_jobs import BacktestJobs, BacktestState, BacktestTask

LOUD = "create feed Loud2 from News where title contains 'loud';"
SINCE = "2026-11-01"


def finished(client: httpx.Client, path: str) -> dict[str, object]:
    found: dict[str, object] = {}

    def is_finished() -> bool:
        found.update(client.get(path).json())
        return found["state"] not in ("waiting", "running")

    until(is_finished)
    return found


def started(client: httpx.Client, **request: object) -> str:
    answer = client.post("/v1/backtests", json={"since": SINCE, **request})
    assert answer.status_code == 202, answer.text
    return answer.headers["location"]


def test_what_a_feed_would_have_had(stored: StoredHome) -> None:
    for n, title in enumerate(("loud", "quiet", "loud rock", "loud jazz")):
        stored.put("acme", title, n, hours=n)
    stored.put("globex", "loud secret")
    with stored.client("acme") as acme, stored.client("globex") as globex:
        path = started(acme, statement=LOUD, samples=2)
        found = finished(acme, path)
        assert (found["state"], found["statement"]) == ("done", LOUD)
        result = found["result"]
        assert isinstance(result, dict)
        assert result["matched"] == 3
        assert result["sources"] == {"News": {"items": 4, "matched": 3, "further": 0}}
        assert [each["id"] for each in result["samples"]] == ["loud jazz", "loud rock"]
        assert result["samples"][0]["source"] == "News"
        assert result["by_day"]["2026-11-16"] == 3
        assert acme.get("/v1/feeds/Loud2").status_code == 404  # nothing was created
        assert [each["id"] for each in acme.get("/v1/backtests").json()["entries"]] == [found["id"]]
        # A stretch of the log, of a feed that is there.
        of_feed = finished(acme, started(acme, feed="Rock", until="2026-11-16T14:30:00Z"))
        assert of_feed["result"]["matched"] == 1  # type: ignore[index]
        # Nobody else knows of it.
        problem_in(globex.get(path), 404)
        problem_in(globex.delete(path), 404)
        assert globex.get("/v1/backtests").json() == {"entries": []}
        assert acme.delete(path).status_code == 204
        problem_in(acme.get(path), 404)


def test_what_cannot_be_tried(stored: StoredHome) -> None:
    stored.put("acme", "rock")
    with stored.client("acme") as acme, stored.client("globex") as globex:

        def refused(client: httpx.Client, status: int, **request: object) -> str:
            problem = problem_in(client.post("/v1/backtests", json=request), status)
            return str(problem.get("detail"))

        assert "did you mean 'News'" in json.dumps(
            problem_in(
                acme.post("/v1/backtests", json={"statement": "create feed X from Nws;"}), 422
            )
        )
        refused(acme, 422, statement="drop feed Rock;")
        refused(acme, 422)
        refused(acme, 422, statement=LOUD, feed="Rock")
        refused(acme, 422, statement=LOUD, since="3 moons")
        refused(acme, 422, statement=LOUD, until="2020-01-01T00:00:00Z")
        refused(acme, 404, feed="Nothing")
        # What another tenant has is not there, and what may only be read is not built on.
        statement = "create feed X from acme.{};"
        there = refused(globex, 422, statement=statement.format("News"))
        assert there.replace("News", "X") == refused(globex, 422, statement=statement.format("X"))
        acme.put("/v1/grants", json={"definition": "Rock", "tenant": "globex", "right": "read"})
        assert "no feed may be built on it" in refused(
            globex, 422, statement=statement.format("Rock")
        )
        refused(globex, 404, feed="acme.Rock")
        acme.put("/v1/grants", json={"definition": "Rock", "tenant": "globex", "right": "use"})
        found = finished(globex, started(globex, statement=statement.format("Rock")))
        result = found["result"]
        assert isinstance(result, dict)
        # The source is not seen: neither what else it has, nor that an item is of it.
        assert result["sources"] == {"acme.News": {"matched": 1, "further": 0}}
        assert "source" not in result["samples"][0]
    with stored.client("acme", Scope.POST) as poster:
        problem_in(poster.post("/v1/backtests", json={"statement": LOUD}), 403)
        problem_in(poster.get("/v1/backtests"), 403)


# --- processes ------------------------------------------------------------------------------------

REQUEST = BacktestRequest("", "", "", "", "", "", 0)
CHILD = """
import json, sys, time
sys.stdin.readline()
print(json.dumps({{"progress": "begun"}}), flush=True)
{}
"""
RESULT = 'print(json.dumps({"result": {"n": 1}}), flush=True)'


@pytest.fixture
def jobs() -> Iterator[Callable[[str], BacktestJobs]]:
    made: list[BacktestJobs] = []

    def make(code: str) -> BacktestJobs:
        made.append(BacktestJobs([sys.executable, "-c", CHILD.format(code)]))
        return made[-1]

    yield make
    for each in made:
        each.close()


def submitted(jobs: BacktestJobs, tenant: str) -> BacktestTask:
    task = BacktestTask(tenant, "x", REQUEST)
    jobs.submit(task)
    return task


def test_few_run_at_a_time_and_tenants_take_turns(jobs: Callable[[str], BacktestJobs]) -> None:
    made = jobs("sys.stdin.read()")
    first = [submitted(made, "acme") for _ in range(backtest_jobs.UNFINISHED_PER_TENANT)]
    with pytest.raises(QuotaExceeded):
        submitted(made, "acme")
    other = submitted(made, "globex")
    running = backtest_jobs.RUNNING_MAX
    assert [each.state for each in first[: running + 1]] == [
        *[BacktestState.RUNNING] * running,
        BacktestState.WAITING,
    ]
    until(lambda: all(each.progress == "begun" for each in first[:running]))
    processes = [each.process for each in first[:running]]
    with pytest.raises(UnknownName):
        made.cancel("globex", first[0].id)
    made.cancel("acme", first[0].id)
    until(lambda: other.state is BacktestState.RUNNING)
    assert first[running].state is BacktestState.WAITING  # it came earlier, but acme has one
    until(lambda: other.progress == "begun")
    processes.append(other.process)
    made.close()
    until(lambda: all(each is None or each.poll() is not None for each in processes))


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (RESULT, ""),
        ('print(json.dumps({"error": "it is wrong"}))', "it is wrong"),
        ("sys.exit(3)", "it has failed"),
        ("print('rubbish')", "it has failed"),
        ("print('[1]')", "it has failed"),
        (
            "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
            "it takes too long: try a shorter stretch",
        ),
    ],
)
def test_how_a_process_may_end(jobs: Callable[[str], BacktestJobs], code: str, error: str) -> None:
    task = submitted(jobs(code), "acme")
    until(lambda: not task.is_unfinished)
    assert task.error == error
    assert task.state is (BacktestState.FAILED if error else BacktestState.DONE)
    assert task.process is None


def test_results_are_forgotten() -> None:
    now = 0.0
    jobs = BacktestJobs([sys.executable, "-c", CHILD.format(RESULT)], clock=lambda: now)
    task = submitted(jobs, "acme")
    until(lambda: not task.is_unfinished)
    assert jobs.get("acme", task.id) is task
    now = backtest_jobs.KEPT_S + 1
    with pytest.raises(UnknownName):
        jobs.get("acme", task.id)


def test_the_process_ends_with_its_input(tmp_path: Path) -> None:
    """However the service ends: its end of the pipe is closed then."""
    with subprocess.Popen(
        backtest_jobs.CHILD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdin is not None
        began = time.monotonic()
        process.stdin.close()
        assert process.wait(60) == 0
        assert time.monotonic() - began < 60
