"""What runs inside, in tests: it tries what it is asked, and says what came of it."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from headgate.sandbox.enter import ConfinedProcess


def environment(_: str) -> object:
    return dict(os.environ)


def reads(path: str) -> object:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def lists(path: str) -> object:
    return os.listdir(path)


def writes(path: str) -> object:
    Path(path).write_text("x", encoding="utf-8")
    return True


def removes(path: str) -> object:
    os.unlink(path)
    return True


def makes_a_folder(path: str) -> object:
    os.mkdir(path)
    return True


def changes_a_mode(path: str) -> object:
    os.chmod(path, 0o777)
    return True


def connects(port: str) -> object:
    with socket.create_connection(("127.0.0.1", int(port)), timeout=2):
        return True


def sends_a_datagram(port: str) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        return found.sendto(b"x", ("127.0.0.1", int(port))) == 1


def connects_to_a_path(path: str) -> object:
    with socket.socket(socket.AF_UNIX) as found:
        found.connect(path)
        return True


def forks(_: str) -> object:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def leaves_a_copy(_: str) -> object:
    """In a session of its own, so that it is in no process group that is killed."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    return True


def forks_many(_: str) -> object:
    for _number in range(20):
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
    return True


def starts_a_program(_: str) -> object:
    return os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {})


def signals(pid: str) -> object:
    os.kill(int(pid), 0)
    return True


def signals_its_parent(_: str) -> object:
    os.kill(os.getppid() or 1, signal.SIGWINCH)
    return True


def sees_processes(_: str) -> object:
    return [each for each in os.listdir("/proc") if each.isdigit()]


def takes_memory(_: str) -> object:
    return len([bytes(16 << 20) for _ in range(1000)])


def shares_memory(_: str) -> object:
    return ctypes.CDLL(None, use_errno=True).shmget(0x6865, 4096, 0o1600) >= 0


def loops(_: str) -> object:
    while True:
        pass


def sleeps(_: str) -> object:
    time.sleep(600)
    return True


def ends(code: str) -> object:
    os._exit(int(code))


def runs_a_thread(_: str) -> object:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(True))
    thread.start()
    thread.join()
    return found


def maps_memory(_: str) -> object:
    with mmap.mmap(-1, 4096) as page:
        page[:1] = b"x"
        return True


def leaves_something(text: str) -> object:
    globals()["left"] = text
    return True


def finds_something(_: str) -> object:
    return globals().get("left", "")


def descriptors(_: str) -> object:
    found = []
    for each in range(100):
        try:
            os.fstat(each)
        except OSError:
            continue
        found.append(each)
    return len(found)


ACTIONS: dict[str, Callable[[str], object]] = {
    name: each for name, each in globals().items() if callable(each) and name.islower()
}


def main(process: ConfinedProcess) -> None:
    process.limit_memory(256 << 20)
    process.send(b"{}")
    while (request := process.receive()) is not None:
        name, argument = json.loads(request)
        process.limit_cpu(1.0)
        try:
            found: object = {"found": ACTIONS[name](argument)}
        except (OSError, MemoryError) as error:
            found = {"refused": type(error).__name__}
        process.send(json.dumps(found).encode())
