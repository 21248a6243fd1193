"""Hostile code in a sandboxed process: what it cannot do, with every wall and with only some."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path

import pytest
from tests.pipeline.waiting import until
from tests.sandbox.processes import children_of, is_alive, worker_of

from headgate.sandbox.confinement import Confinement, Walls, clean_environment, standing_walls
from headgate.sandbox.enter import LANDLOCK, NAMESPACES, SECCOMP, WALLS, existing
from headgate.sandbox.request_process import RequestFailed, RequestProcess
from headgate.sandbox.system_calls import filter_program

TARGET = "tests.sandbox.hostile_target:main"
SECRET = "HEADGATE_SMTP_PASSWORD"


class Attacker:
    """A sandboxed process that tries things."""

    def __init__(self, **more: object) -> None:
        confinement = Confinement(TARGET, modules=("tests.sandbox",), **more)  # type: ignore[arg-type]
        self.process = RequestProcess(confinement, answer_bytes_max=1_000_000)

    def tries(self, action: str, argument: object = "", *, timeout_s: float = 10.0) -> object:
        """What it found, or None if it was refused."""
        request = json.dumps([action, str(argument)]).encode()
        found = json.loads(self.process.ask(request, timeout_s=timeout_s))
        assert found.keys() <= {"found", "refused"}
        return found.get("found")


@pytest.fixture(scope="module")
def attacker() -> Iterator[Attacker]:
    found = Attacker()
    yield found
    found.process.end()


@pytest.fixture(scope="module")
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_environment_has_no_secrets(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SECRET, "hunter2")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    attacker = Attacker()
    try:
        found = attacker.tries("environment")
        assert isinstance(found, dict)
        assert "hunter2" not in found.values()
        assert found["LC_ALL"] == "C.UTF-8"
        assert found.keys() <= clean_environment({}).keys()
        for file in ("/proc/self/environ", f"/proc/{os.getpid()}/environ", "/proc/1/environ"):
            assert attacker.tries("reads", file) is None
    finally:
        attacker.process.end()


def test_files_cannot_be_read_or_written(attacker: Attacker, tmp_path: Path):
    secret = tmp_path / "token"
    secret.write_text("secret", encoding="utf-8")
    for path in (
        secret,
        "/etc/passwd",
        "/etc/shadow",
        __file__.replace("tests/", "pyproject.toml"),
    ):
        assert attacker.tries("reads", path) is None
    assert attacker.tries("lists", tmp_path) is None
    assert attacker.tries("lists", Path.cwd()) is None
    assert attacker.tries("writes", secret) is None
    assert attacker.tries("writes", tmp_path / "new") is None
    assert attacker.tries("writes", "/dev/shm/headgate-test") is None
    assert attacker.tries("makes_a_folder", tmp_path / "folder") is None
    assert attacker.tries("removes", secret) is None
    assert attacker.tries("changes_a_mode", secret) is None
    assert [each.name for each in tmp_path.iterdir()] == ["token"]
    assert secret.read_text(encoding="utf-8") == "secret"


def test_the_network_cannot_be_reached(attacker: Attacker, listening: int, tmp_path: Path):
    assert attacker.tries("connects", listening) is None
    assert attacker.tries("sends_a_datagram", listening) is None
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        assert attacker.tries("connects_to_a_path", path) is None


@pytest.mark.parametrize("action", ["forks", "forks_many", "leaves_a_copy", "starts_a_program"])
def test_no_process_can_be_started(attacker: Attacker, action: str):
    assert attacker.tries(action) is None


def test_other_processes_are_out_of_reach(attacker: Attacker):
    assert attacker.tries("signals", os.getpid()) is None
    assert attacker.tries("signals_its_parent") is None
    assert attacker.tries("sees_processes") is None
    assert attacker.tries("shares_memory") in (None, False)


def test_memory_is_limited(attacker: Attacker):
    assert attacker.tries("takes_memory") is None
    assert attacker.tries("maps_memory") is True


def test_what_is_honest_works(attacker: Attacker):
    assert attacker.tries("runs_a_thread") == [True]
    assert attacker.tries("reads", os.__file__)
    assert attacker.tries("descriptors") == 6, "standard ones, two pipes, the memory in use"


@pytest.mark.parametrize(
    ("action", "timeout_s", "said"),
    [
        ("loops", 60.0, "processor time"),
        ("sleeps", 1.0, "longer than 1 s"),
        ("ends", 60.0, "memory or stack"),
    ],
)
def test_what_does_not_end_is_ended(attacker: Attacker, action: str, timeout_s: float, said: str):
    assert attacker.tries("leaves_something", "of A") is True
    supervisor = attacker.process.pid
    assert supervisor is not None
    worker = worker_of(supervisor)
    with pytest.raises(RequestFailed, match=said):
        attacker.tries(action, 3, timeout_s=timeout_s)
    until(lambda: not is_alive(worker))
    assert attacker.tries("finds_something") == "", "the next request has another process"


CHOICES = [*chain.from_iterable(combinations(WALLS, count) for count in range(len(WALLS) + 1))]


@pytest.mark.parametrize("walls", CHOICES, ids=lambda each: "+".join(each) or "none")
def test_what_the_walls_are_said_to_miss_is_what_they_miss(
    walls: tuple[str, ...], listening: int, tmp_path: Path
):
    """With any of the mechanisms missing, as on other kernels and in containers."""
    here = standing_walls()
    assumed = Walls(
        here.namespaces if NAMESPACES in walls else (),
        here.landlock if LANDLOCK in walls else 0,
        here.seccomp if SECCOMP in walls else False,
    )
    file = tmp_path / "file"
    file.write_text("text", encoding="utf-8")
    attacker = Attacker(walls=walls, file_bytes=10)
    try:
        possible = {
            "read files of this user": attacker.tries("reads", file),
            "write files of this user": attacker.tries("writes", tmp_path / "new"),
            "open network connections": attacker.tries("sends_a_datagram", listening),
            "start processes": attacker.tries("forks"),
        }
        copies = attacker.tries("leaves_a_copy")
        supervisor = attacker.process.pid
        assert supervisor is not None
        begun = _descendants(supervisor)
        assert bool(copies) == bool(possible["start processes"])
    finally:
        attacker.process.end()
    until(lambda: not any(is_alive(each) for each in begun))
    left = {name for name, found in possible.items() if found}
    assert left == set(assumed.missing) - {"leave processes behind"}


def _descendants(pid: int) -> list[int]:
    found = children_of(pid)
    return [*found, *(below for each in found for below in _descendants(each))]


def test_it_ends_with_its_parent():
    """Even if the parent is killed, and the code inside never returns."""
    script = (
        "import json\n"
        "from headgate.sandbox.confinement import Confinement\n"
        "from headgate.sandbox.request_process import RequestProcess\n"
        f"process = RequestProcess(Confinement({TARGET!r}, modules=('tests',)),"
        " answer_bytes_max=1000)\n"
        "process.ask(json.dumps(['runs_a_thread', '']).encode(), timeout_s=30)\n"
        "print(process.pid, flush=True)\n"
        "process.ask(json.dumps(['sleeps', '']).encode(), timeout_s=600)\n"
    )
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
    ) as parent:
        assert parent.stdout is not None
        supervisor = int(parent.stdout.readline())
        begun = [supervisor, *_descendants(supervisor)]
        parent.kill()
    until(lambda: not any(is_alive(each) for each in begun))


def test_nothing_outlives_a_killed_supervisor():
    attacker = Attacker()
    assert attacker.tries("runs_a_thread")
    supervisor = attacker.process.pid
    assert supervisor is not None
    begun = _descendants(supervisor)
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not any(is_alive(each) for each in begun))
    attacker.process.end()


def test_grants(tmp_path: Path, listening: int):
    granted, other = tmp_path / "granted", tmp_path / "other"
    for folder in (granted, other):
        folder.mkdir()
        (folder / "file").write_text("text", encoding="utf-8")
    attacker = Attacker(read=(str(granted),), network=True)
    try:
        assert attacker.tries("reads", granted / "file") == "text"
        assert attacker.tries("writes", granted / "file") is None
        assert attacker.tries("reads", other / "file") is None
        assert attacker.tries("connects", listening) is True
        assert attacker.tries("connects_to_a_path", "/run/any") is None
    finally:
        attacker.process.end()


def test_walls_are_told():
    assert str(Walls()).startswith("limits and an empty environment only; what it could do")
    assert str(Walls(("user", "pid"), 3, True)) == "seccomp, Landlock 3, namespaces (user, pid)"
    assert Walls(seccomp=True).missing == ("read files of this user",)


def test_paths_below_others_and_in_archives(tmp_path: Path):
    archive = tmp_path / "a.zip"
    archive.touch()
    given = [str(tmp_path / "b"), str(tmp_path / "missing"), str(archive / "x.py"), ""]
    (tmp_path / "b" / "c").mkdir(parents=True)
    assert existing([*given, str(tmp_path / "b" / "c")]) == [str(archive), str(tmp_path / "b")]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_jumps_of_the_filter_stay_inside(machine: str):
    program = filter_program(machine, own_pid=2, network=True)
    lines = [program[at : at + 8] for at in range(0, len(program), 8)]
    for number, line in enumerate(lines):
        code, if_true, if_false = line[0], line[2], line[3]
        if code & 7 == 5:
            assert number + 1 + max(if_true, if_false) < len(lines)
    assert lines[-1][0] == 6
    assert len(lines) < 4096
