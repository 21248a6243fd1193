"""Spark's Python daemon, for tests: on an executor the folder of the run is an empty one.

The daemon and its workers get a view of the file system of their own (a mount namespace), in which
an empty folder is mounted over that of the run. Whoever opens a file there finds nothing, be it in
Python or in a library.
"""

from __future__ import annotations

import ctypes
import os
import runpy

HIDDEN = "HEADGATE_TEST_HIDDEN"
"""Set for executors only: the process in which the driver plans sources sees the folder."""
_NEW_NAMESPACE, _PRIVATE, _RECURSIVE = 0x20000, 1 << 18, 1 << 14


def hide(folder: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_NEW_NAMESPACE))
    _check(libc.mount(b"none", b"/", None, _PRIVATE | _RECURSIVE, None))
    _check(libc.mount(b"none", folder.encode(), b"tmpfs", 0, None))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    if HIDDEN in os.environ:
        hide(os.environ[HIDDEN])
        assert not os.listdir(os.environ[HIDDEN])
    runpy.run_module("headgate.pipeline.daemon", run_name="__main__", alter_sys=True)
