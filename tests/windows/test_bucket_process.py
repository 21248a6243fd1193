"""Resident processes: they are started once, answer, and end when nobody needs them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from random import Random

import pytest
from tests.windows.test_family_joins import named
from tests.windows.test_join_bucket import LoggedHistory, stored_plans
from tests.windows.worlds import draw_history, draw_join_of_leaves

from headgate.model.errors import PipelineError
from headgate.store.log_state import START, LogPoint
from headgate.windows import bucket_process
from headgate.windows.bucket_process import (
    ProcessSettings,
    ask,
    end_processes,
    location_of,
    private_folder,
    serve,
)
from headgate.windows.join_bucket import AdvanceAnswer, AdvanceRequest, BucketSettings

MODULE = "headgate.pipeline.window_join_process"
PATIENCE_S = 300


def settings_of(root: Path, *, module: str = MODULE) -> ProcessSettings:
    return ProcessSettings(str(root), uuid.uuid4().hex, module, BucketSettings(0, 1, 0.0, 3_600.0))


def processes_of(run: str) -> list[int]:
    """The processes whose settings name the run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if run.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


ASK = """
import sys
from headgate.store.log_state import START, LogPoint
from headgate.windows.bucket_process import ask, decode_settings
from headgate.windows.join_bucket import AdvanceRequest
end = LogPoint(*map(int, sys.argv[3:]))
print(ask(decode_settings(sys.argv[1]), AdvanceRequest(sys.argv[2], START, end)).outputs)
"""


def test_a_process_ends_with_the_one_for_which_it_works(tmp_path: Path) -> None:
    chance = Random(3)
    log = LoggedHistory(tmp_path / "log", draw_history(chance))
    plans = stored_plans(tmp_path, named(draw_join_of_leaves(chance)))
    end = log.arrive_until(log.history.stops[-1])
    settings = settings_of(log.folder)
    command = [sys.executable, "-c", ASK, settings.encoded(), str(plans), *map(str, end)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert int(done.stdout) > 0, done.stderr
    deadline = time.monotonic() + PATIENCE_S
    while processes_of(settings.run) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes_of(settings.run)
    assert end_processes(settings.run) == 0, "its socket leads nowhere"


def test_a_process_that_cannot_start_says_why(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, module="headgate.no_such_module")
    with pytest.raises(PipelineError, match=r"did not start: .*no_such_module"):
        ask(settings, AdvanceRequest("", START, START))
    end_processes(settings.run)


def test_tasks_ask_the_same_process_and_it_ends_when_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, requests = settings_of(tmp_path), list[AdvanceRequest]()

    def advance(request: AdvanceRequest) -> AdvanceAnswer:
        requests.append(request)
        if request.end.seq == 13:
            raise ValueError("13 is not decided")
        return AdvanceAnswer((), request.end.seq, None, 0, 0)

    def no_start(*_: object) -> None:
        raise AssertionError("a process is started although one answers")

    server = threading.Thread(
        target=serve, args=(settings, advance), kwargs={"parent": os.getpid(), "idle_s": 5.0}
    )
    server.start()
    socket_path = private_folder(settings.run) / "0.sock"
    deadline = time.monotonic() + PATIENCE_S
    while not socket_path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    monkeypatch.setattr(bucket_process, "_start", no_start)
    assert [ask(settings, AdvanceRequest("p", START, LogPoint(end))).outputs for end in (1, 2)] == [
        1,
        2,
    ]
    with pytest.raises(PipelineError, match=r"bucket 0 .* 13 is not decided"):
        ask(settings, AdvanceRequest("p", START, LogPoint(13)))
    assert ask(settings, AdvanceRequest("p", LogPoint(2), LogPoint(3))).outputs == 3, (
        "an error does not end it"
    )
    server.join(PATIENCE_S)
    assert not server.is_alive()
    assert not socket_path.exists()
    assert len(requests) == 4
    end_processes(settings.run)


def test_the_folder_is_private_and_has_one_location() -> None:
    run = uuid.uuid4().hex
    folder = private_folder(run)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert location_of(folder) == location_of(private_folder(run))
    end_processes(run)
    assert not folder.exists()


def test_tasks_of_a_host_end_the_processes_at_once() -> None:
    errors: list[BaseException] = []

    def end(run: str, together: threading.Barrier) -> None:
        together.wait()
        try:
            end_processes(run)
        except BaseException as error:
            errors.append(error)

    for _ in range(200):
        run, together = uuid.uuid4().hex, threading.Barrier(4)
        folder = private_folder(run)
        for bucket in range(4):
            (folder / f"{bucket}.lock").touch()
        tasks = [threading.Thread(target=end, args=(run, together)) for _ in range(4)]
        for each in tasks:
            each.start()
        for each in tasks:
            each.join(PATIENCE_S)
        assert not folder.exists()
    assert not errors
