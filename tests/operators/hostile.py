"""Operators that misbehave, each only on items whose `n` is negative."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from headgate.model.items import Item
from headgate.model.values import Value
from headgate.operators import batch_operator, binds


def is_bad(item: Item) -> bool:
    found = item.attributes["n"]
    assert isinstance(found, int)
    return found < 0


def sleeps(item: Item) -> bool:
    if is_bad(item):
        time.sleep(3600)
    return True


def loops(item: Item) -> bool:
    while is_bad(item):
        pass
    return True


def loops_in_c(item: Item) -> bool:
    """A pattern that backtracks for years, with the interpreter's lock held."""
    if is_bad(item):
        re.match(r"(a+)+$", "a" * 60 + "b")
    return True


def sleeps_in_c(item: Item) -> bool:
    """With the lock held, and deaf to signals of Python."""
    if is_bad(item):
        ctypes.PyDLL(None).sleep(3600)
    return True


def catches_all(item: Item) -> bool:
    while is_bad(item):
        try:
            time.sleep(3600)
        except BaseException:
            continue
    return True


def stops_itself(item: Item) -> bool:
    if is_bad(item):
        os.kill(os.getpid(), signal.SIGSTOP)
    return True


def raises(item: Item) -> bool:
    if is_bad(item):
        raise ValueError(f"no {item.id}\n\x1b[31m")
    return True


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


def raises_badly(item: Item) -> bool:
    if is_bad(item):
        raise Unspeakable
    return True


def exits(item: Item) -> bool:
    if is_bad(item):
        sys.exit("enough")
    return True


def exits_at_once(item: Item) -> bool:
    if is_bad(item):
        os._exit(7)
    return True


def crashes(item: Item) -> bool:
    if is_bad(item):
        ctypes.string_at(0)
    return True


def recurses(item: Item) -> bool:
    return recurses(item) if is_bad(item) else True


def takes_memory(item: Item) -> bool:
    if is_bad(item):
        taken = [bytes(64 << 20) for _ in range(1000)]
        return bool(taken)
    return True


def forks(item: Item) -> bool:
    """Both come back, and both would answer."""
    if is_bad(item):
        os.fork()
    return True


def leaves_a_copy(item: Item) -> bool:
    """The copy, in a session of its own, holds the pipes open; the original is gone."""
    if is_bad(item):
        if os.fork() == 0:
            os.setsid()
            time.sleep(3600)
        os._exit(1)
    return True


def bombs(item: Item) -> bool:
    for _ in range(50 if is_bad(item) else 0):
        if os.fork() == 0:
            os.setsid()
            time.sleep(3600)
    return True


def reads_secrets(item: Item) -> bool:
    if is_bad(item):
        found = "".join(os.environ.values())
        raise ValueError(found + Path(f"/proc/{os.getppid()}/environ").read_text(encoding="utf-8"))
    return True


def reads_a_file(item: Item) -> bool:
    if is_bad(item):
        raise ValueError(Path("/etc/passwd").read_text(encoding="utf-8"))
    return True


def writes_a_file(item: Item) -> bool:
    if is_bad(item):
        Path(tempfile.gettempdir(), "headgate-hostile").write_text("x", encoding="utf-8")
    return True


def connects(item: Item) -> bool:
    if is_bad(item):
        socket.create_connection(("127.0.0.1", 9), timeout=1)
    return True


def kills_its_parent(item: Item) -> bool:
    if is_bad(item):
        os.kill(os.getppid() or 1, signal.SIGKILL)
        os.kill(-1, signal.SIGKILL)
    return True


def prints(item: Item) -> bool:
    sys.stdout.write("x" * 100_000)
    sys.stdout.flush()
    os.write(1, b"y" * 1000)
    return not is_bad(item)


def reads(item: Item) -> bool:
    return sys.stdin.read() == "" and not is_bad(item)


def writes_into_the_pipes(item: Item) -> bool:
    if is_bad(item):
        for descriptor in range(3, 20):
            try:
                os.write(descriptor, b"\xff" * 100)
            except OSError:
                continue
    return True


def changes_the_item(item: Item) -> bool:
    item.attributes["n"] = 5  # type: ignore[index]
    return True


def answers_nonsense(item: Item) -> object:
    return {-1: None, -2: 1, -3: "true", -4: [(1,)]}.get(item.attributes["n"], True)  # type: ignore[call-overload]


@binds("found")
def binds_nonsense(item: Item) -> object:
    n = item.attributes["n"]
    assert isinstance(n, int)
    wrong = {
        -1: None,
        -2: True,
        -3: [5],
        -4: [(1, 2)],
        -5: [("five",)],
        -6: [(2**70,)],
        -7: [(1.5,)],
        -8: "12",
        -9: 5,
        -10: [(float("nan"),)],
        -11: [(None,)],
        -12: [()],
    }
    return wrong.get(n, [(n,)])


@binds("found")
def never_ends(item: Item) -> Iterator[tuple[Value]]:
    yield (1,)
    while is_bad(item):
        yield (1,)


@batch_operator
def batch_raises(batch: pa.RecordBatch) -> pa.Array:
    if min(batch["n"].to_pylist(), default=0) < 0:
        raise ValueError("one of them is bad")
    return pa.array([True] * batch.num_rows)


@batch_operator
def batch_crashes(batch: pa.RecordBatch) -> pa.Array:
    if min(batch["n"].to_pylist(), default=0) < 0:
        ctypes.string_at(0)
    return pa.array([True] * batch.num_rows)


@batch_operator
def batch_sleeps(batch: pa.RecordBatch) -> pa.Array:
    if min(batch["n"].to_pylist(), default=0) < 0:
        time.sleep(3600)
    return pa.array([True] * batch.num_rows)


def notes_each_call(item: Item, port: int) -> bool:
    """One datagram for each call, whatever becomes of it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(item.id.encode(), ("127.0.0.1", port))
    if is_bad(item):
        os._exit(1)
    return True
