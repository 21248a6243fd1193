"""The resident process of a bucket: it keeps the bucket's state between the tasks of a stage.

    Spark task ──► ask() ──► <folder>/3.sock ──► serve() in a process of its own ──► JoinBucket
                   │  no one listens: start the process, under a file lock
                   ▼
    one line of JSON there, one line back: {"plans", "start", "end"} ──► files, next instant, counts

A task runs in whichever worker comes. If each worker held state, every worker would insert the rows
of every bucket, and two cores would be no faster than one. A process per bucket and host inserts
them once. It reads and writes the log itself; through the socket go names and numbers only.

The folder is private (mode 0700, owned by this user) and named after the run. A process ends

    when it is asked to              `end_processes`, when the run ends
    when its executor is gone        a thread looks for it every PARENT_EVERY_S
    after IDLE_S without a request   the next request starts a new one, which rebuilds its state

Nothing depends on it: a process that dies loses a cache of the log.

Rejected: state in Spark's Python workers (they end after a minute without tasks, and tasks are not
bound to them); state in transformWithState (docs/design/2026-11-16-window-joins.md); pickle on the
socket (whoever writes to it would run code).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headgate.model.errors import HeadgateError, PipelineError
from headgate.store.log_state import LogPoint, WrittenFile
from headgate.windows.join_bucket import AdvanceAnswer, AdvanceRequest, BucketSettings

IDLE_S = 3_600.0
"""A quiet run keeps its windows for so long; a rebuild of months of items takes minutes."""
REQUEST_S = 60.0
"""How long a task may take to send its request."""
PARENT_EVERY_S = 2.0
START_S = 120.0
"""How long a process may take to load its modules."""
LINE_MAX = 64_000_000


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """What a process is started with: where the log and its socket are, and its bucket."""

    root: str
    run: str
    """The nonce of the run, a part of the folder's name."""
    module: str
    """The module that runs `serve`; it is started as `python -m module`."""
    bucket: BucketSettings

    def encoded(self) -> str:
        return json.dumps(asdict(self))


def decode_settings(text: str) -> ProcessSettings:
    stored = json.loads(text)
    bucket = BucketSettings(**stored.pop("bucket"))
    return ProcessSettings(**stored, bucket=bucket)


def private_folder(run: str) -> Path:
    """The folder of a run's sockets on this host; it is created where it is missing."""
    folder = _folder_of(run)
    for each in (folder.parent, folder):
        each.mkdir(mode=0o700, exist_ok=True)
        status = each.stat()
        if status.st_uid != os.getuid() or each.is_symlink():
            raise PipelineError(f"'{each}' belongs to another user; set TMPDIR to another folder")
    folder.chmod(0o700)
    return folder


def _folder_of(run: str) -> Path:
    return Path(tempfile.gettempdir()) / f"headgate-{os.getuid()}" / f"joins-{run[:16]}"


def location_of(folder: Path) -> str:
    """A name for the processes that a folder's sockets lead to: tasks that see another folder
    have another location."""
    path = folder / "location"
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(uuid.uuid4().hex)
    deadline = time.monotonic() + 10
    while not (name := path.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)  # another task has created it and not written it yet
    return name


# --- asking ---------------------------------------------------------------------------------------


def ask(settings: ProcessSettings, request: AdvanceRequest) -> AdvanceAnswer:
    """What the process of the bucket answers; it is started if it does not run."""
    with _connected(settings) as connection:
        answer = _exchange(connection, asdict(request))
    if "error" in answer:
        number = settings.bucket.bucket
        raise PipelineError(f"bucket {number} of the window joins failed: {answer['error']}")
    files = tuple(WrittenFile(**each) for each in answer.pop("files"))
    return AdvanceAnswer(files=files, **answer)


def end_processes(run: str) -> int:
    """Ask all processes of a run on this host to end; how many there were.

    Several tasks of the host may do this at once, so whatever is there may be gone at any time.
    """
    ended, folder = 0, _folder_of(run)
    for path in _files(folder):
        if path.suffix == ".sock":
            with contextlib.suppress(OSError), _connect(path) as connection:
                _exchange(connection, {"quit": True})
                ended += 1
    for path in _files(folder):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
    return ended


def _files(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]
    except FileNotFoundError:
        return []


@contextlib.contextmanager
def _connected(settings: ProcessSettings) -> Iterator[socket.socket]:
    folder = private_folder(settings.run)
    path = folder / f"{settings.bucket.bucket}.sock"
    connection = _connect_if_served(path)
    if connection is None:
        with (folder / f"{settings.bucket.bucket}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # of several tasks one starts the process
            connection = _connect_if_served(path) or _start(settings, folder, path)
    with connection:
        yield connection


def _connect_if_served(path: Path) -> socket.socket | None:
    try:
        return _connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        return None


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _start(settings: ProcessSettings, folder: Path, path: Path) -> socket.socket:
    log = folder / f"{settings.bucket.bucket}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", settings.module, settings.encoded(), str(executor_pid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,  # Spark's daemon signals its process group when it ends
        )
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        connection = _connect_if_served(path)
        if connection is not None:
            return connection
        if process.poll() is not None:
            break
        time.sleep(0.02)
    reason = log.read_text(errors="replace").strip().splitlines()[-1:]
    raise PipelineError(
        f"the process of bucket {settings.bucket.bucket} of the window joins did not start"
        f"{': ' if reason else ''}{''.join(reason)}; see '{log}'"
    )


def _exchange(connection: socket.socket, message: Mapping[str, object]) -> dict[str, Any]:
    connection.sendall(json.dumps(message).encode() + b"\n")
    with connection.makefile("rb") as lines:
        line = lines.readline(LINE_MAX)
    if not line.endswith(b"\n"):
        raise PipelineError("a process of the window joins ended in the middle of a step")
    answer: dict[str, Any] = json.loads(line)  # of the types that _answer has written
    return answer


# --- serving --------------------------------------------------------------------------------------

Advance = Callable[[AdvanceRequest], AdvanceAnswer]


def serve(
    settings: ProcessSettings, advance: Advance, *, parent: int, idle_s: float = IDLE_S
) -> None:
    """Answer requests until one of the ends that the module names."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    path = private_folder(settings.run) / f"{settings.bucket.bucket}.sock"
    path.unlink(missing_ok=True)  # of a process that was killed; the caller holds the lock
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen(64)
        listener.settimeout(idle_s)
        own = path.stat().st_ino
        try:
            while _serve_one(listener, advance):
                pass
        finally:
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == own:  # not that of a process which has followed
                    path.unlink()


def _serve_one(listener: socket.socket, advance: Advance) -> bool:
    """Answer the next request; False if the process has to end."""
    try:
        connection, _ = listener.accept()
    except TimeoutError:
        return False
    with connection, connection.makefile("rb") as lines:
        connection.settimeout(REQUEST_S)
        try:
            line = lines.readline(LINE_MAX)
        except OSError:
            return True
        connection.settimeout(None)
        if not line.endswith(b"\n"):
            return True  # the task was cancelled
        message = json.loads(line)
        is_last = bool(message.get("quit"))
        answer = {} if is_last else _answer(message, advance)
        with contextlib.suppress(OSError):  # the task may be gone; the next one asks again
            connection.sendall(json.dumps(answer).encode() + b"\n")
        return not is_last


def _answer(message: dict[str, Any], advance: Advance) -> dict[str, Any]:
    try:
        points = [LogPoint(*map(int, message[name])) for name in ("start", "end")]
        return asdict(advance(AdvanceRequest(str(message["plans"]), *points)))
    except (HeadgateError, OSError, ValueError, TypeError, AssertionError, LookupError) as error:
        traceback.print_exc()  # to the log of the process
        return {"error": f"{type(error).__name__}: {error}"}


def executor_pid() -> int:
    """The process for which this one works: the JVM above a Python worker, else the parent."""
    pid = os.getpid()
    while pid > 1:
        name, parent = _name_and_parent(pid)
        if name == "java":
            return pid
        pid = parent
    return os.getpid()


def _name_and_parent(pid: int) -> tuple[str, int]:
    """From /proc; (\"\", 0) where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "", 0
    name = text[text.index("(") + 1 : text.rindex(")")]
    return name, int(text[text.rindex(")") + 2 :].split()[1])


def _end_with(parent: int) -> None:
    """End this process when another one has ended."""
    began = _start_time(parent)
    while _is_running(parent) and _start_time(parent) == began:
        time.sleep(PARENT_EVERY_S)
    os._exit(0)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start_time(pid: int) -> str:
    """It tells a process from a later one with the same number; empty where it is not known."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    state = text[text.rindex(")") + 2 :].split()
    return "ended" if state[0] == "Z" else state[19]
