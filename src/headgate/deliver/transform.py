"""XSLT 1.0 on items ([RoSeS §3.1, §3.2]: τ), in a child process that can do no harm.

    Transformer ──► child process (transform_child.py) ── one stylesheet, one item ──► output
         │               │
         │               └── killed after a limit; the next request starts a new one
         └── an `item` element becomes an item again, anything else is text

What a stylesheet sees and may answer is described in item_encoding.py. Stylesheets are read from
one folder of the operator's, and the child gets their bytes, so it needs no file.

Invariants. A stylesheet reads no file and reaches no network, whatever it contains. It ends within
its limits and has no effect on the next one. Every error names the stylesheet, and the line if
there is one.

Cost: 0.05 s for starting a child, once; then 0.25 ms for a small stylesheet and item, most of it
for the way to the child and back. Compiled stylesheets are kept in the child.

A stylesheet that has broken a limit is not run again for five minutes, as each attempt would cost
all others a time limit and a new process.

Rejected: threads (a loop in libxslt cannot be stopped); one process for each item (0.05 s each);
XSLT without the child but with libxslt's own limits (they know nothing of memory and time); a
timer that kills the child (a thread for each item made it 1.5 ms, so the pipes are polled).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from signal import SIGXCPU

from headgate.deliver.entry import TransformedText
from headgate.deliver.errors import OutputError, TransformError
from headgate.deliver.item_encoding import item_of_xml, item_xml
from headgate.deliver.safe_folder import read_file
from headgate.model.items import Item

STYLESHEET_BYTES_MAX = 1_000_000
_CHILD = Path(__file__).with_name("transform_child.py")
_START_S = 30.0
_PENALTY_S = 300.0
_REFUSED_MAX = 1_000
_PIPE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class TransformLimits:
    """For one stylesheet on one item."""

    wall_s: float = 3.0
    cpu_s: float = 2.0
    memory_bytes: int = 256 * 1024 * 1024
    output_length_max: int = 1_000_000
    requests_max: int = 10_000
    """After so many a new child is started, in case that libxslt leaks."""


@dataclass(frozen=True, slots=True)
class Stylesheet:
    name: str
    content: bytes


class LimitBroken(TransformError):
    """A stylesheet took too much time, memory or output."""


def read_stylesheet(folder: Path, name: str) -> Stylesheet:
    """The stylesheet of this name below the folder."""
    try:
        content = read_file(folder, name, bytes_max=STYLESHEET_BYTES_MAX)
    except OutputError as error:
        raise TransformError(str(error), stylesheet=name) from error
    if content is None:
        raise TransformError(
            f"there is no such stylesheet of at most {STYLESHEET_BYTES_MAX:,} bytes in the folder "
            "of stylesheets",
            stylesheet=name,
        )
    return Stylesheet(name, content)


class Transformer:
    """Thread-safe; one item is transformed at a time."""

    def __init__(self, limits: TransformLimits | None = None) -> None:
        self.limits = limits or TransformLimits()
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._refused_until: dict[bytes, float] = {}

    def __enter__(self) -> Transformer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._end_child()

    def transform(self, stylesheet: Stylesheet, item: Item) -> Item | TransformedText:
        """The item that the stylesheet makes of this one, or text."""
        output, is_html = self.run(stylesheet, item_xml(item).decode())
        return (item_of_xml(output, item) if is_html else None) or TransformedText(output, is_html)

    def run(self, stylesheet: Stylesheet, document: str) -> tuple[str, bool]:
        """The output for an XML document, and whether it is markup."""
        digest = hashlib.sha256(stylesheet.content).digest()
        with self._lock:
            if time.monotonic() < self._refused_until.get(digest, 0.0):
                raise LimitBroken("it broke a limit a moment ago", stylesheet=stylesheet.name)
            try:
                found = self._ask(stylesheet, document)
            except LimitBroken:
                self._end_child()
                if len(self._refused_until) >= _REFUSED_MAX:
                    self._refused_until.clear()
                self._refused_until[digest] = time.monotonic() + _PENALTY_S
                raise
        output, line = found.get("output"), found.get("line")
        if not isinstance(output, str):
            message, place = str(found.get("error")), line if isinstance(line, int) else 0
            raise TransformError(message, stylesheet=stylesheet.name, line=place)
        return output, bool(found.get("is_html"))

    def _ask(self, stylesheet: Stylesheet, document: str) -> dict[str, object]:
        if self._child is None or self._child.requests >= self.limits.requests_max:
            self._end_child()
            self._child = _Child(self.limits)
        request = {
            "stylesheet": base64.b64encode(stylesheet.content).decode(),
            "item": document,
            "cpu_s": self.limits.cpu_s,
        }
        found = self._child.ask(request, timeout_s=self.limits.wall_s)
        if found is None:
            raise LimitBroken(self._child.death_reason(), stylesheet=stylesheet.name)
        if found.get("limit"):
            raise LimitBroken(str(found.get("error")), stylesheet=stylesheet.name)
        return found

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


class _Child:
    """The process and its pipes. They do not block, so that every exchange ends in time."""

    def __init__(self, limits: TransformLimits) -> None:
        self.requests = 0
        self._limits = limits
        self._late = False
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-I", str(_CHILD)),
                *(str(limits.memory_bytes), str(limits.output_length_max)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={},
            cwd="/",
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._pipes = (self._process.stdin, self._process.stdout)
        for pipe in self._pipes:
            os.set_blocking(pipe.fileno(), False)
        if self._exchange(b"", timeout_s=_START_S) is None:
            self.end()
            raise OutputError("the process for stylesheets cannot be started")

    def ask(self, request: dict[str, object], *, timeout_s: float) -> dict[str, object] | None:
        """The answer, or nothing where the child died or had to be killed."""
        self.requests += 1
        encoded = json.dumps(request).encode()
        answer = self._exchange(len(encoded).to_bytes(4, "big") + encoded, timeout_s=timeout_s)
        if answer is None:
            self._process.kill()
            return None
        found: dict[str, object] = json.loads(answer)
        return found

    def death_reason(self) -> str:
        code = self._process.wait()
        if self._late:
            return f"it takes longer than {self._limits.wall_s:g} s"
        if code == -SIGXCPU:
            return f"it takes more than {self._limits.cpu_s:g} s of processor time"
        return "it takes more memory or stack than allowed"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in self._pipes:
            pipe.close()

    def _exchange(self, request: bytes, *, timeout_s: float) -> bytes | None:
        """Write the request, and read the answer: four bytes of length, and as many as they say."""
        until = time.monotonic() + timeout_s
        to, from_child = (pipe.fileno() for pipe in self._pipes)
        waiting = select.poll()
        waiting.register(from_child, select.POLLIN)
        if request:
            waiting.register(to, select.POLLOUT)
        unsent, answer, wanted = memoryview(request), bytearray(), 4
        while len(answer) < wanted:
            left_s = until - time.monotonic()
            ready = {each for each, _ in waiting.poll(max(left_s, 0) * 1000)}
            if not ready:
                self._late = True
                return None
            try:
                if to in ready:
                    unsent = unsent[os.write(to, unsent) :]
                    if not unsent:
                        waiting.unregister(to)
                if from_child in ready:
                    part = os.read(from_child, _PIPE_BYTES)
                    answer += part
                    if not part:
                        return None
            except OSError:
                return None
            if len(answer) >= 4:
                wanted = 4 + int.from_bytes(answer[:4], "big")
            # A character may take twelve bytes of JSON.
            if wanted > 12 * self._limits.output_length_max + 10_000:
                return None
        return bytes(answer[4:])
