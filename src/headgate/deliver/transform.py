"""XSLT 1.0 on items ([RoSeS §3.1, §3.2]: τ), in a child process that can do no harm.

    Transformer ──► sandboxed process (transform_child.py) ── one stylesheet, one item ──► output
         │               │
         │               └── ended after a limit; the next request starts a new one
         └── an `item` element becomes an item again, anything else is text

What a stylesheet sees and may answer is described in item_encoding.py. Stylesheets are read from
one folder of the operator's, and the child gets their bytes, so it needs no file.

Invariants. A stylesheet reads no file and reaches no network, whatever it contains. It ends within
its limits and has no effect on the next one. Every error names the stylesheet, and the line if
there is one.

Cost: 0.1 s for starting a child, once; then 0.25 ms for a small stylesheet and item, most of it
for the way to the child and back. Compiled stylesheets are kept in the child.

A stylesheet that has broken a limit is not run again for five minutes, as each attempt would cost
all others a time limit and a new process.

Rejected: threads (a loop in libxslt cannot be stopped); one process for each item (0.05 s each);
XSLT without the child but with libxslt's own limits (they know nothing of memory and time); a
timer that kills the child (a thread for each item made it 1.5 ms, so the pipes are polled).
How the process is confined: headgate/sandbox.
"""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from headgate.deliver.entry import TransformedText
from headgate.deliver.errors import OutputError, TransformError
from headgate.deliver.item_encoding import item_of_xml, item_xml
from headgate.deliver.safe_folder import read_file
from headgate.model.errors import printable
from headgate.model.items import Item
from headgate.sandbox.confinement import Confinement, SandboxError
from headgate.sandbox.request_process import RequestFailed, RequestProcess

STYLESHEET_BYTES_MAX = 1_000_000
_CHILD = "headgate.deliver.transform_child:main"
_PENALTY_S = 300.0
_REFUSED_MAX = 1_000


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
        # A character may take twelve bytes of JSON.
        arguments = (str(self.limits.memory_bytes), str(self.limits.output_length_max))
        self._child = RequestProcess(
            Confinement(_CHILD, arguments),
            answer_bytes_max=12 * self.limits.output_length_max + 10_000,
            requests_max=self.limits.requests_max,
        )
        self._refused_until: dict[bytes, float] = {}
        self.cpu_s = 0.0
        """What all stylesheets have taken in the child; one that broke a limit, its whole limit."""

    def __enter__(self) -> Transformer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._child.end()

    @property
    def child_pid(self) -> int | None:
        """The process id of the child, if it is running."""
        return self._child.pid

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
                self.cpu_s += self.limits.cpu_s
                if len(self._refused_until) >= _REFUSED_MAX:
                    self._refused_until.clear()
                self._refused_until[digest] = time.monotonic() + _PENALTY_S
                raise
            cpu_ns = found.get("cpu_ns")
            self.cpu_s += cpu_ns / 1e9 if isinstance(cpu_ns, int) else 0.0
        output, line = found.get("output"), found.get("line")
        if not isinstance(output, str):
            message, place = (
                printable(str(found.get("error"))),
                line if isinstance(line, int) else 0,
            )
            raise TransformError(message, stylesheet=stylesheet.name, line=place)
        return output, bool(found.get("is_html"))

    def _ask(self, stylesheet: Stylesheet, document: str) -> dict[str, object]:
        request = {
            "stylesheet": base64.b64encode(stylesheet.content).decode(),
            "item": document,
            "cpu_s": self.limits.cpu_s,
        }
        try:
            found = self._child.ask_json(request, timeout_s=self.limits.wall_s)
        except RequestFailed as failure:
            raise LimitBroken(str(failure), stylesheet=stylesheet.name) from failure
        except SandboxError as error:
            raise OutputError(str(error)) from error
        if not isinstance(found, dict) or found.get("limit"):
            self._child.end()
            reason = found.get("error") if isinstance(found, dict) else "its process says nonsense"
            raise LimitBroken(printable(str(reason)), stylesheet=stylesheet.name)
        return found
