"""What runs in a new process before the code of a stranger: it builds the walls, and supervises.

    parent ── pipes ──► supervisor ──┬──► worker: walls, then the target module
                                     └──► init of the process namespace, if there is one

The *supervisor* ends when the worker ends, with the same code or signal, and when its parent ends
or asks it to (SIGTERM). Before that it ends every process that the worker has left: the kernel does
it for a namespace; else orphans become children of the supervisor, which kills them.

The *worker* is not the first process of its namespace: the kernel would not deliver the signal to
it that ends a process without processor time. The order of the walls follows from what each needs:
mounts and limits first, Landlock after everything is opened, the filter of system calls last.
Modules are imported behind the walls; only their folders are looked up before.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from typing import BinaryIO

from headgate.sandbox import kernel
from headgate.sandbox.system_calls import refuse_system_calls

NAMESPACES, LANDLOCK, SECCOMP = "namespaces", "landlock", "seccomp"
WALLS = (NAMESPACES, LANDLOCK, SECCOMP)


@dataclass(frozen=True, slots=True)
class ConfinedProcess:
    """What the target gets: the two pipes, its arguments, and what stands around it."""

    incoming: BinaryIO
    outgoing: BinaryIO
    arguments: Sequence[str]
    standing: Mapping[str, object]
    memory_file: int
    """An open file of the kernel with the pages in use; /proc cannot be opened any more."""

    def limit_memory(self, allowed_bytes: int) -> None:
        """Limit the address space beyond what is in use now."""
        pages = int(os.pread(self.memory_file, 100, 0).split()[0])
        _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + allowed_bytes)

    def limit_cpu(self, seconds: float) -> None:
        """Allow so much processor time from now on. The hard limit stays, so that the next request
        has its own time."""
        spent = resource.getrusage(resource.RUSAGE_SELF)
        until = int(spent.ru_utime + spent.ru_stime + seconds) + 1
        _limit(resource.RLIMIT_CPU, until, hard=False)

    def receive(self) -> bytes | None:
        """The next request: four bytes of length, and as many as they say."""
        header = self.incoming.read(4)
        return self.incoming.read(int.from_bytes(header, "big")) if len(header) == 4 else None

    def send(self, content: bytes) -> None:
        self.outgoing.write(len(content).to_bytes(4, "big") + content)
        self.outgoing.flush()


def main(policy_text: str) -> None:
    """Called in the new process with the policy of confinement.py."""
    policy = json.loads(policy_text)
    sys.dont_write_bytecode = True
    _limit(resource.RLIMIT_CORE, 0)
    kernel.adopt_orphans()
    is_separate = NAMESPACES in policy["walls"]
    namespaces = kernel.enter_namespaces(network=policy["network"]) if is_separate else ()
    alive, supervisor_end = os.pipe()
    first = _fork(_be_first, alive, supervisor_end) if "pid" in namespaces else 0
    worker = _fork(lambda: _work(policy, namespaces), alive, supervisor_end)
    os.close(alive)
    _supervise(worker, first)


# --- the supervisor -------------------------------------------------------------------------------


class _AskedToEnd(Exception):
    pass


def _supervise(worker: int, first: int) -> None:
    def end(_number: int, _frame: object) -> None:
        raise _AskedToEnd

    status = None
    try:
        signal.signal(signal.SIGTERM, end)
        waiting = select.poll()
        process = os.pidfd_open(worker)
        waiting.register(process, select.POLLIN)
        waiting.register(0, 0)  # only that the other end is closed
        os.close(1)
        waiting.poll()
        _, status = os.waitpid(worker, os.WNOHANG)
    except _AskedToEnd:
        pass
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    status = status or _killed(worker)
    if first:
        _killed(first)
    _end_orphans()
    _end_like(status)


def _killed(pid: int) -> int:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return 0


def _end_orphans() -> None:
    """Kill and await children until there are none; those of the killed become ours."""
    while True:
        for pid in _children():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    own = os.getpid()
    with suppress(OSError), open(f"/proc/self/task/{own}/children", encoding="ascii") as file:
        return [int(each) for each in file.read().split()]
    return []


def _end_like(status: int) -> None:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        os._exit(1)
    os._exit(code)


def _fork(run: Callable[[], None], alive: int, supervisor_end: int) -> int:
    """A child that does not outlive this process."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.close(supervisor_end)
        kernel.die_with_parent(signal.SIGKILL)
        waiting = select.poll()
        waiting.register(alive, 0)
        if not waiting.poll(0):  # else the parent ended before it was watched
            os.close(alive)
            run()
            code = 0
    finally:
        os._exit(code)


def _be_first() -> None:
    """The first process of a namespace. All others end with it."""
    os.closerange(0, 64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        signal.pause()


# --- the worker -----------------------------------------------------------------------------------


def _work(policy: dict[str, object], namespaces: tuple[str, ...]) -> None:
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.close(nowhere)
    memory_file = os.open("/proc/self/statm", os.O_RDONLY)
    sys.path[:] = _texts(policy["path"])
    found = _PinnedModules(_texts(policy["modules"]))
    sys.meta_path.insert(0, found)
    readable = existing([*_texts(policy["read"]), *found.locations])
    standing = build_walls(policy, readable, namespaces)
    process = ConfinedProcess(
        incoming, outgoing, _texts(policy["arguments"]), standing, memory_file
    )
    module, _, function = str(policy["target"]).partition(":")
    try:
        getattr(importlib.import_module(module), function)(process)
    except SystemExit as exit_:
        os._exit(exit_.code if isinstance(exit_.code, int) else 1)
    outgoing.flush()


def build_walls(
    policy: Mapping[str, object], readable: Sequence[str], namespaces: tuple[str, ...]
) -> dict[str, object]:
    walls, network = _texts(policy["walls"]), bool(policy["network"])
    mounts = bool(namespaces) and kernel.show_only(readable, os.uname().machine)
    _limit(resource.RLIMIT_FSIZE, int(str(policy["file_bytes"])))
    _limit(resource.RLIMIT_MEMLOCK, 0)
    _limit(resource.RLIMIT_MSGQUEUE, 0)
    unprivileged = kernel.give_up_privileges()
    landlock = kernel.read_only(readable, network=network) if LANDLOCK in walls else 0
    seccomp = (
        SECCOMP in walls
        and unprivileged
        and refuse_system_calls(own_pid=os.getpid(), network=network)
    )
    if not seccomp and SECCOMP in walls:
        _limit(resource.RLIMIT_NPROC, 0)
    return {
        NAMESPACES: [*namespaces, *(["mount"] if mounts else [])],
        LANDLOCK: landlock,
        SECCOMP: seccomp,
    }


class _PinnedModules:
    """Finds the named top-level modules where they were before the walls, as their folder's own
    folder cannot be listed any more."""

    def __init__(self, names: Iterable[str]) -> None:
        self._specs: dict[str, ModuleSpec] = {}
        self.locations: list[str] = []
        for name in {each.partition(".")[0] for each in names}:
            try:
                spec = importlib.util.find_spec(name)
            except (ImportError, ValueError):
                continue
            if spec is not None:
                self._specs[name] = spec
                self.locations += spec.submodule_search_locations or [spec.origin or ""]

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        return self._specs.get(name) if path is None else None


def existing(paths: Iterable[str]) -> list[str]:
    """The paths that exist; for one inside an archive, the archive. Parents come first, and what
    is below a path that is there already is left out."""
    found: list[str] = []
    for path in sorted({os.path.abspath(each) for each in paths if each}):
        at = path
        while not os.path.exists(at):
            at = os.path.dirname(at)
        if at != path and os.path.isdir(at):
            continue  # it does not exist, and is in no archive
        if not any(at == each or at.startswith(f"{each}/") for each in found):
            found.append(at)
    return found


def _limit(which: int, value: int, *, hard: bool = True) -> None:
    _, highest = resource.getrlimit(which)
    if highest != resource.RLIM_INFINITY:
        value = min(value, highest)
    resource.setrlimit(which, (value, value if hard else highest))


def _texts(value: object) -> list[str]:
    assert isinstance(value, list)
    return [str(each) for each in value]


def report(process: ConfinedProcess) -> None:
    """A target that only says which walls stand."""
    process.send(json.dumps(process.standing).encode())
