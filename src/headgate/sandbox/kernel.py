"""The walls that the Linux kernel builds around a process: namespaces, capabilities, Landlock.

Each function returns what it has achieved and changes nothing where the kernel refuses: an old
kernel, a container that forbids it, a security module. All of it works without privileges. The
calls have no wrapper in Python before 3.12, and then only `unshare`.

Rejected, after a look at what the package index has: `py-landlock` (0.1, one release), `sandlock`
(needs Linux 6.7 and has no lesser way), `python-prctl` (no wheels), and the program `bubblewrap`,
which is not installed by default and would be one more process to supervise.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)

_DEATH_SIGNAL, _NO_NEW_PRIVILEGES, _CHILD_SUBREAPER = 1, 38, 36
_NEW_NAMESPACES = {
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "ipc": 0x08000000,
}
_NEW_MOUNTS = 0x00020000
_BIND, _RECURSIVE, _PRIVATE, _DETACH = 0x1000, 0x4000, 1 << 18, 2
_READ_ONLY, _NO_SUID, _NO_DEV = 1, 2, 4
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_QUESTION, _PATH_BENEATH = 1, 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FS_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""How many rights on files each version of Landlock has."""
_CAPABILITY_VERSION = 0x20080522


def _succeeds(result: int) -> bool:
    return int(result) == 0


def die_with_parent(signal_number: int) -> None:
    _LIBC.prctl(_DEATH_SIGNAL, signal_number, 0, 0, 0)


def adopt_orphans() -> None:
    """Descendants whose parent has ended become children of this process."""
    _LIBC.prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)


def give_up_privileges() -> bool:
    """No capabilities, and none to be gained: root is then a user like others."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    _LIBC.capset(header, bytes(24))
    return _succeeds(_LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))


# --- namespaces -----------------------------------------------------------------------------------


def enter_namespaces(*, network: bool) -> tuple[str, ...]:
    """New namespaces of processes (for children), shared memory, and network unless it is granted;
    with a user namespace where that is allowed, else by the privileges of root."""
    uid, gid = os.geteuid(), os.getegid()
    wanted = tuple(name for name in _NEW_NAMESPACES if not (network and name == "net"))
    for names in (wanted, wanted[1:]):
        flags = sum(_NEW_NAMESPACES[name] for name in names)
        if _succeeds(_LIBC.unshare(flags)):
            if "user" in names:
                for file, text in (
                    ("setgroups", "deny"),
                    ("uid_map", f"{uid} {uid} 1"),
                    ("gid_map", f"{gid} {gid} 1"),
                ):
                    with suppress(OSError):
                        Path("/proc/self", file).write_text(text, encoding="ascii")
            return names
    return ()


def show_only(paths: Iterable[str], machine: str) -> bool:
    """Replace the tree of files by one that has nothing but these paths.

    The new root is mounted over /proc, of which nothing is shown: every other folder may contain
    one of the paths.
    """
    if not _succeeds(_LIBC.unshare(_NEW_MOUNTS)):
        return False
    root = "/proc"
    _LIBC.mount(None, b"/", None, _RECURSIVE | _PRIVATE, None)
    if not _mount("tmpfs", root, "tmpfs", _NO_SUID | _NO_DEV):
        return False
    try:
        for path in paths:
            if not path.startswith(f"{root}/"):
                _bind(path, root + path)
        os.mkdir(f"{root}/.old")
        os.chdir(root)
        call = ctypes.c_long(_PIVOT_ROOT[machine])
        if _succeeds(_LIBC.syscall(call, root.encode(), f"{root}/.old".encode())):
            os.chdir("/")
            _LIBC.umount2(b"/.old", _DETACH)
        else:  # the root is that of an initial ramdisk; there is no way back without privileges
            os.chroot(root)
            os.chdir("/")
    except (OSError, KeyError):
        os.chdir("/")
        _LIBC.umount2(root.encode(), _DETACH)
        return False
    _mount(None, "/", None, 0x20 | _READ_ONLY | _NO_SUID | _NO_DEV)
    return True


def _bind(path: str, target: str) -> None:
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with suppress(OSError), open(target, "x", encoding="ascii"):
            pass
    if not _mount(os.path.realpath(path), target, None, _BIND | _RECURSIVE):
        raise OSError(ctypes.get_errno(), "cannot be shown", path)


def _mount(source: str | None, target: str, kind: str | None, flags: int) -> bool:
    encoded = [each if each is None else os.fsencode(each) for each in (source, target, kind)]
    return _succeeds(_LIBC.mount(*encoded, ctypes.c_ulong(flags), None))


# --- Landlock -------------------------------------------------------------------------------------


def landlock_version() -> int:
    """0 if the kernel has none."""
    found = _system_call(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_QUESTION)
    return max(found, 0)


def read_only(paths: Iterable[str], *, network: bool) -> int:
    """Allow this process to read these files and folders, and nothing else: no writing, no program,
    no TCP unless granted, no signal and no abstract socket to other processes. Returns the version
    of Landlock that does it; 0 for none."""
    version = landlock_version()
    if not version:
        return 0
    rights = (1 << max(count for first, count in _FS_RIGHTS.items() if first <= version)) - 1
    attributes = struct.pack("=QQQ", rights, 0 if network else 0b11, 0b11)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _system_call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return 0
    try:
        for path in paths:
            _allow_reading(ruleset, path)
        return version if _system_call(_RESTRICT_SELF, ruleset, 0) == 0 else 0
    finally:
        os.close(ruleset)


def _allow_reading(ruleset: int, path: str) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there cannot be read either
    try:
        rights = _READ_FILE | (_READ_DIR if os.path.isdir(path) else 0)
        _system_call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)


def _system_call(number: int, *arguments: object) -> int:
    return int(_LIBC.syscall(ctypes.c_long(number), *arguments))
