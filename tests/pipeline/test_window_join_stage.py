"""The stage on Spark: buckets in resident processes, restarts, and several executors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from tests.pipeline.spark_session import spark
from tests.plan.strategies import START
from tests.windows.oracle import expected_output
from tests.windows.strategies import SCHEMAS
from tests.windows.test_bucket_process import processes_of
from tests.windows.test_family_joins import above_leaves, named
from tests.windows.test_join_bucket import LoggedHistory, check_outputs, outputs_by_feed
from tests.windows.worlds import draw_history, draw_join_of_leaves, draw_plans

from headgate.model.errors import PipelineError
from headgate.pipeline.session import Session
from headgate.pipeline.window_join_stage import WindowJoinStage
from headgate.plan.algebra import Plan
from headgate.store.log import LogReader
from headgate.store.log_state import START as LOG_START
from headgate.store.log_state import LogPoint, LogState, Origin
from headgate.windows.bucket_process import private_folder


@pytest.fixture
def session() -> Session:
    """The session of all tests of a process: to stop it would take it from the others."""
    return spark()


def stage_of(session: Session, log: LoggedHistory, plans: Path, **more: int) -> WindowJoinStage:
    return WindowJoinStage(session, log.folder, plans, **log.history.settings, **more)


def numbered(normal: dict[int, Plan]) -> dict[int, tuple[str, Plan]]:
    return {number: (f"f{number}", plan) for number, plan in normal.items()}


QUERY = "windows"


def step(stage: WindowJoinStage, log: LoggedHistory, end: LogPoint) -> None:
    start = log.sequencer.state.ends.get(QUERY, LOG_START)
    log.sequencer.commit(Origin(QUERY, start=start, end=end), stage.step(start, end))


def run_all(stage: WindowJoinStage, log: LoggedHistory, normal: dict[int, Plan]) -> None:
    stage.set_plans(numbered(normal), SCHEMAS, LogState(arrived_us=-(2**61)))
    for stop in log.history.stops:
        step(stage, log, log.arrive_until(stop))


def world(seed: int, folder: Path) -> tuple[dict[int, Plan], LoggedHistory]:
    chance = Random(seed)
    normal = named([*draw_join_of_leaves(chance), *draw_plans(chance).values()])
    return normal, LoggedHistory(folder, draw_history(chance))


@pytest.mark.parametrize("buckets", [1, 3])
def test_the_stage_outputs_what_the_oracle_does(
    buckets: int, session: Session, tmp_path: Path
) -> None:
    normal, log = world(5, tmp_path / "log")
    stage = stage_of(session, log, tmp_path / "plans", buckets=buckets)
    run_all(stage, log, normal)
    folder = private_folder(stage._settings.run)
    assert len(list(folder.glob("*.sock"))) == buckets
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    assert check_outputs(log, normal) > 20
    assert stage.counters.rebuilds == buckets, "the state stays in the processes"
    assert stage.counters.outputs > 0
    assert stage.next_decision() is None
    stage.close()
    assert not list(folder.glob("*.sock"))


def test_a_process_that_is_killed_is_replaced(session: Session, tmp_path: Path) -> None:
    normal, log = world(6, tmp_path / "log")
    stage = stage_of(session, log, tmp_path / "plans", buckets=2)
    stage.set_plans(numbered(normal), SCHEMAS, LogState(arrived_us=-(2**61)))
    stops = [START + timedelta(hours=hour) for hour in (2, 5, 8)]
    for stop in [*stops, log.history.stops[-1]]:
        step(stage, log, log.arrive_until(stop))
        for pid in processes_of(stage._settings.run):
            os.kill(pid, signal.SIGKILL)
            assert wait_until_gone(pid)
    assert stage.counters.rebuilds == 2 * 4
    check_outputs(log, normal)
    stage.close()


def wait_until_gone(pid: int) -> bool:
    waiter = subprocess.run(
        [sys.executable, "-c", WAIT, str(pid)], check=False, timeout=300, capture_output=True
    )
    return waiter.returncode == 0


WAIT = """
import sys, time
from pathlib import Path
while True:
    try:
        text = Path(f"/proc/{sys.argv[1]}/stat").read_text()
    except OSError:
        break
    if text[text.rindex(")") + 2] in "ZX":
        break
    time.sleep(0.02)
"""


def test_a_new_run_goes_on_where_the_last_one_ended(session: Session, tmp_path: Path) -> None:
    normal, log = world(7, tmp_path / "log")
    first = stage_of(session, log, tmp_path / "plans", buckets=2)
    first.set_plans(numbered(normal), SCHEMAS, LogState(arrived_us=-(2**61)))
    middle = START + timedelta(hours=6)
    step(first, log, log.arrive_until(middle))
    first.close()
    second = stage_of(session, log, tmp_path / "plans", buckets=1)
    # The head of the log is later now, but joins keep the instant of their first plans.
    second.set_plans(numbered(normal), SCHEMAS, log.sequencer.state)
    step(second, log, log.arrive_until(log.history.stops[-1]))
    check_outputs(log, normal)
    second.close()


def test_which_entries_the_stage_needs(session: Session, tmp_path: Path) -> None:
    normal, log = world(8, tmp_path / "log")
    stage = stage_of(session, log, tmp_path / "plans", buckets=1)
    reader = LogReader(log.storage)
    log.arrive_until(START + timedelta(hours=20))
    entries = reader.refresh()
    files = [file for entry in entries for file in entry.files]
    end = reader.state.point
    assert not stage.needs(files, end), "no plans, nothing to do"
    stage.set_plans(numbered(normal), SCHEMAS, LogState(arrived_us=-(2**61)))
    assert stage.needs(files, end)
    assert not stage.needs([], end), "nothing waits"
    step(stage, log, reader.state.point)
    joined = [each for each in reader.refresh() if each.origin and each.origin.query == QUERY]
    assert joined, "the stage has committed its outputs"
    outputs = [file for entry in joined for file in entry.files]
    assert not stage.needs(outputs, reader.state.point), "and does not read them"
    stage.skip(reader.state.point)
    log.sequencer.commit(Origin(QUERY, start=end, end=reader.state.point), [])
    step(stage, log, log.arrive_until(log.history.stops[-1]))
    assert stage.counters.rebuilds == 1, "the process goes on from where it stopped"
    check_outputs(log, normal)
    stage.close()


def test_a_step_without_plans_says_so(session: Session, tmp_path: Path) -> None:
    stage = WindowJoinStage(session, tmp_path, tmp_path / "plans")
    with pytest.raises(PipelineError, match="no plans yet"):
        stage.step(LOG_START, LogPoint(1))
    stage.close()


def test_a_process_that_fails_names_the_reason(session: Session, tmp_path: Path) -> None:
    normal, log = world(8, tmp_path / "log")
    stage = stage_of(session, log, tmp_path / "plans", buckets=1)
    stage.set_plans(numbered(normal), SCHEMAS, log.sequencer.state)
    with pytest.raises(Exception, match="the log has no entry 9999"):
        stage.step(LOG_START, LogPoint(9_999))
    stage.close()


CLUSTER = """
import sys
from pathlib import Path
from tests.pipeline.test_window_join_stage import run_all, stage_of, world
from tests.windows.test_join_bucket import check_outputs
from headgate.pipeline.session import start_session
folder = Path(sys.argv[1])
session = start_session("local-cluster[2,1,1024]")
normal, log = world(9, folder / "log")
stage = stage_of(session, log, folder / "plans", buckets=3)
run_all(stage, log, normal)
print("executors", stage._executors(), "outputs", check_outputs(log, normal),
      "rebuilds", stage.counters.rebuilds)
stage.close()
session.stop()
"""


def test_several_executors(tmp_path: Path) -> None:
    """In a process of its own: a process has one session."""
    root = Path(__file__).parents[2]
    paths = [str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        cwd=root,
        check=False,
    )
    assert "executors 2" in done.stdout, done.stderr[-2_000:]
    assert "rebuilds 3" in done.stdout, done.stdout


def test_outputs_are_those_of_the_feeds(tmp_path: Path, session: Session) -> None:
    """The log has for each feed what the oracle has, by number."""
    normal, log = world(10, tmp_path / "log")
    stage = stage_of(session, log, tmp_path / "plans")
    run_all(stage, log, normal)
    actual = outputs_by_feed(log.storage)
    assert actual.keys() == {
        number
        for number, plan in normal.items()
        if expected_output(above_leaves(plan), log.history.arrivals, **log.history.delays)
    }
    stage.close()
