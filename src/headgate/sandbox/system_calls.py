"""The system calls that a confined process may not make, as a seccomp filter.

A filter is a small program that the kernel runs before each system call. Ours refuses, with "not
permitted":

    new processes and programs    fork, clone without CLONE_THREAD, execve; threads are allowed
    sockets                       all; with a grant only IPv4 and IPv6
    writing                       open for writing, create, rename, remove, change modes and times
    other processes               signals, limits, ptrace, reading and writing their memory
    the machine                   mounts, namespaces, modules, clocks, keys, shared memory, io_uring

It is a list of what is refused: operators use any library, and a list of what is allowed would
break with the next version of the C library. Calls that are newer than this file do not exist for
the process (ENOSYS).

Rejected: `pyseccomp`, which needs libseccomp on the machine and had its last release in 2021.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}
_LAST_KNOWN = 470
_NONE = -1

# Name, number on x86_64, number on aarch64. From 424 on they are the same everywhere.
_REFUSED = """
fork 57 -1, vfork 58 -1, execve 59 221, execveat 322 281,
ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272,
pidfd_send_signal 424 424, pidfd_open 434 434, pidfd_getfd 438 438, process_madvise 440 440,
process_mrelease 448 448,
mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, unshare 272 97, setns 308 268,
open_tree 428 428, move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432,
fspick 433 433, mount_setattr 442 442, open_tree_attr 467 467,
bpf 321 280, perf_event_open 298 241, userfaultfd 323 282, keyctl 250 219, add_key 248 217,
request_key 249 218, io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427,
kexec_load 246 104, kexec_file_load 320 294, init_module 175 105, finit_module 313 273,
delete_module 176 106, reboot 169 142, swapon 167 224, swapoff 168 225, acct 163 89,
settimeofday 164 170, clock_settime 227 112, adjtimex 159 171, clock_adjtime 305 266,
sethostname 170 161, setdomainname 171 162, iopl 172 -1, ioperm 173 -1, personality 135 92,
quotactl 179 60, quotactl_fd 443 443, syslog 103 116, vhangup 153 58,
name_to_handle_at 303 264, open_by_handle_at 304 265, fanotify_init 300 262,
shmget 29 194, msgget 68 186, semget 64 190, mq_open 240 180, mq_unlink 241 181,
creat 85 -1, truncate 76 45, rename 82 -1, renameat 264 38, renameat2 316 276,
mkdir 83 -1, mkdirat 258 34, rmdir 84 -1, unlink 87 -1, unlinkat 263 35, link 86 -1,
linkat 265 37, symlink 88 -1, symlinkat 266 36, mknod 133 -1, mknodat 259 33,
chmod 90 -1, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, chown 92 -1, fchown 93 55,
lchown 94 -1, fchownat 260 54, setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7,
removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16, setxattrat 463 463,
removexattrat 466 466, utime 132 -1, utimes 235 -1, futimesat 261 -1, utimensat 280 88
"""
# Calls that take their arguments in a structure, which a filter cannot see. The C library
# falls back to the older call where these do not exist.
_UNKNOWN = "clone3 435 435, openat2 437 437"
_SOCKET = "socket 41 198"
_CLONE = "clone 56 220"
_OPEN, _OPENAT = "open 2 -1", "openat 257 56"
_TO_SELF = "kill 62 129, tkill 200 130, tgkill 234 131, rt_sigqueueinfo 129 138, "
_TO_SELF += "rt_tgsigqueueinfo 297 240"
_PRLIMIT = "prlimit64 302 261"

_CLONE_THREAD = 0x10000
_WRITING = 0o3 | 0o100 | 0o1000  # the access mode, O_CREAT and O_TRUNC
_FAMILIES = (2, 10, 16)  # AF_INET, AF_INET6, and AF_NETLINK, by which names are resolved

_LOAD, _EQUAL, _GREATER, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_SET_FILTER, _ALL_THREADS, _NO_SLOWDOWN = 1, 1, 4


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse_system_calls(*, own_pid: int, network: bool) -> bool:
    """Install the filter for this process; False if the kernel has none or the processor is
    another. The process must have given up new privileges before."""
    machine = os.uname().machine
    if machine not in _AUDIT_ARCH:
        return False
    encoded = filter_program(machine, own_pid=own_pid, network=network)
    program = _Program(len(encoded) // 8, encoded)
    flags = _ALL_THREADS | _NO_SLOWDOWN
    libc = ctypes.CDLL(None, use_errno=True)
    call = ctypes.c_long(_SECCOMP_CALL[machine])
    return bool(libc.syscall(call, _SET_FILTER, flags, ctypes.byref(program)) == 0)


def filter_program(machine: str, *, own_pid: int, network: bool) -> bytes:
    """The instructions, eight bytes each."""
    denied = _ERRNO | errno.EPERM
    lines = [
        _line(_LOAD, 4),  # the processor of the call
        _line(_EQUAL, _AUDIT_ARCH[machine], 1, 0),
        _line(_RETURN, _KILL),
        _line(_LOAD, 0),  # its number
        _line(_GREATER, _LAST_KNOWN, 0, 1),
        _line(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    for names, result in ((_REFUSED, denied), (_UNKNOWN, _ERRNO | errno.ENOSYS)):
        for number in _numbers(names, machine):
            lines += [_line(_EQUAL, number, 0, 1), _line(_RETURN, result)]
    families = _FAMILIES if network else ()
    lines += _argument_in(_numbers(_SOCKET, machine), 0, families)
    lines += _argument_in(_numbers(_TO_SELF, machine), 0, (own_pid,))
    lines += _argument_in(_numbers(_PRLIMIT, machine), 0, (0, own_pid))
    for names, argument, bits, with_bits, without in (
        (_CLONE, 0, _CLONE_THREAD, _ALLOW, denied),
        (_OPEN, 1, _WRITING, denied, _ALLOW),
        (_OPENAT, 2, _WRITING, denied, _ALLOW),
    ):
        for number in _numbers(names, machine):
            lines += [
                _line(_EQUAL, number, 0, 4),
                _line(_LOAD, 16 + 8 * argument),
                _line(_ANY_BIT, bits, 0, 1),
                _line(_RETURN, with_bits),
                _line(_RETURN, without),
            ]
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _argument_in(numbers: Iterable[int], argument: int, allowed: tuple[int, ...]) -> list[bytes]:
    """Refuse these calls unless the argument, of 32 bits, is one of the allowed values."""
    lines = []
    for number in numbers:
        lines += [
            _line(_EQUAL, number, 0, 2 + 2 * len(allowed)),
            _line(_LOAD, 16 + 8 * argument),
        ]
        for value in allowed:
            lines += [_line(_EQUAL, value, 0, 1), _line(_RETURN, _ALLOW)]
        lines.append(_line(_RETURN, _ERRNO | errno.EPERM))
    return lines


def _numbers(names: str, machine: str) -> list[int]:
    column = 1 + list(_AUDIT_ARCH).index(machine)
    found = (int(each.split()[column]) for each in names.split(","))
    return [number for number in found if number != _NONE]


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
