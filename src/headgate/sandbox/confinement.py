"""How a sandboxed process is started and ended, what it may read, and which walls stand.

    Confinement("headgate.deliver.transform_child:main")      what runs, and what it is granted
    SandboxedProcess(confinement)                             the process, from its parent's side
    standing_walls()                                          what this machine's kernel gives

A sandboxed process sees an environment of a few harmless variables, and of the files only Python,
the installed packages, the system's libraries and the modules that it is told by name. It writes no
file, opens no socket, starts no process and signals none, and nothing of it remains when it ends
(enter.py). The target sets its own limits of memory and processor time, as it knows when a
request begins; time is its parent's business.

Three mechanisms of the kernel build the walls, and they overlap. Namespaces are missing in most
containers, Landlock before Linux 5.13. What no mechanism provides is said: `Walls.missing`.
"""

from __future__ import annotations

import json
import os
import signal
import site
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO

from headgate.model.errors import HeadgateError
from headgate.sandbox.enter import WALLS

_PACKAGE = Path(__file__).resolve().parents[1]
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from headgate.sandbox.enter import main; main(sys.argv[2])"
)
_PASSED_ON = {
    *("PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "PYTHONHASHSEED", "MALLOC_ARENA_MAX"),
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
}
_SYSTEM_FILES = (
    *("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib"),
    *("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/etc/mime.types"),
    *("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"),
    *("/sys/devices/system/cpu", "/proc/cpuinfo", "/proc/meminfo"),
)
_NETWORK_FILES = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf"),
    *("/etc/services", "/etc/protocols", "/etc/ssl", "/etc/pki", "/usr/share/ca-certificates"),
)
_END_S = 5.0


class SandboxError(HeadgateError):
    """A sandboxed process cannot be started."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What runs in a sandboxed process, and what it is granted."""

    target: str
    """`package.module:function`; it is called with a `ConfinedProcess`."""
    arguments: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    """Modules that may be imported although they are not installed: their folders are readable."""
    read: tuple[str, ...] = ()
    """Files and folders that may be read besides."""
    network: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    walls: tuple[str, ...] = WALLS
    """Tests leave out some, to see that the others hold."""
    file_bytes: int = 0
    """The size of files that it may write, where it can open one at all."""

    def policy(self) -> str:
        """What enter.py reads."""
        readable = [*python_files(), *self.read, *(_NETWORK_FILES if self.network else ())]
        return json.dumps(
            {
                "target": self.target,
                "arguments": self.arguments,
                "path": [os.path.abspath(each) for each in sys.path if each],
                "modules": self.modules,
                "read": readable,
                "network": self.network,
                "walls": self.walls,
                "file_bytes": self.file_bytes,
            }
        )


def python_files() -> tuple[str, ...]:
    """Python, what is installed for it, the libraries of the system, and Headgate."""
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.__file__)]
    found += [*site.getsitepackages(), str(_PACKAGE)]
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    return tuple(dict.fromkeys([*found, *filter(None, libraries), *_SYSTEM_FILES]))


def clean_environment(more: Mapping[str, str]) -> dict[str, str]:
    """What Python and numeric libraries need; no secret is in a variable of these names."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name.startswith("LC_")
    }
    return {**kept, **more}


class SandboxedProcess:
    """The process and its two pipes, which do not block. Ending it ends all that it has started."""

    def __init__(self, confinement: Confinement, *, pass_fds: tuple[int, ...] = ()) -> None:
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _BOOT, str(_PACKAGE.parent), confinement.policy()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=clean_environment(confinement.environment),
                cwd="/",
                start_new_session=True,
                pass_fds=pass_fds,
            )
        except OSError as error:
            raise SandboxError(f"no sandboxed process can be started: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.to_child: BinaryIO = self._process.stdin  # type: ignore[assignment]
        self.from_child: BinaryIO = self._process.stdout  # type: ignore[assignment]
        for pipe in (self.to_child, self.from_child):
            os.set_blocking(pipe.fileno(), False)

    @property
    def pid(self) -> int:
        """Of the supervisor; the worker is its child."""
        return self._process.pid

    def exit_code(self, wait_s: float) -> int | None:
        """The code or negative signal with which it has ended; None if it runs on."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout=wait_s)
        return None

    def end(self) -> None:
        """The supervisor ends the others; if it does not, it is killed, and they die with it."""
        self._process.terminate()
        if self.exit_code(_END_S) is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for pipe in (self.to_child, self.from_child):
            pipe.close()


@dataclass(frozen=True, slots=True)
class Walls:
    """Which mechanisms of the kernel confine a sandboxed process here."""

    namespaces: tuple[str, ...] = ()
    landlock: int = 0
    seccomp: bool = False

    @property
    def missing(self) -> tuple[str, ...]:
        """What a sandboxed process could do here that it should not."""
        found = {
            "read files of this user": not (self.landlock or "mount" in self.namespaces),
            "write files of this user": not (
                self.landlock or "mount" in self.namespaces or self.seccomp
            ),
            "open network connections": not (self.seccomp or "net" in self.namespaces),
            "start processes": not self.seccomp,
            "leave processes behind": not (self.seccomp or "pid" in self.namespaces),
        }
        return tuple(name for name, is_missing in found.items() if is_missing)

    def __str__(self) -> str:
        parts = [
            *(["seccomp"] if self.seccomp else []),
            *([f"Landlock {self.landlock}"] if self.landlock else []),
            *([f"namespaces ({', '.join(self.namespaces)})"] if self.namespaces else []),
        ]
        said = ", ".join(parts) or "limits and an empty environment only"
        if self.missing:
            said += f"; what it could do all the same: {', '.join(self.missing)}"
        return said


@cache
def standing_walls() -> Walls:
    """The walls around sandboxed processes on this machine, found by starting one."""
    process = SandboxedProcess(Confinement("headgate.sandbox.enter:report"))
    try:
        os.set_blocking(process.from_child.fileno(), True)
        length = int.from_bytes(process.from_child.read(4), "big")
        found = json.loads(process.from_child.read(length))
    except ValueError as error:
        raise SandboxError("no sandboxed process can be started") from error
    finally:
        process.end()
    return Walls(tuple(found["namespaces"]), int(found["landlock"]), bool(found["seccomp"]))
