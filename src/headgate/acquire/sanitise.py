"""Sanitises markup that may be expensive, in a sandboxed process and within a budget of time.

    markup ── cheap by a linear scan? ──► nh3 in this process        nearly all
                     │
                     └─ no ──► a sandboxed process ── in time? ──► the same result
                                                        └─ no ──► `TooExpensive`: tags are removed

So the cost of a document is bounded, and a document of one feed does not delay the others by more
than its budget. The process is started with the first expensive markup and shared by all threads.
"""

from __future__ import annotations

import json
import threading
import time

from headgate.acquire.plain_text import TooExpensive, safe_html
from headgate.sandbox.confinement import Confinement, SandboxError
from headgate.sandbox.enter import ConfinedProcess
from headgate.sandbox.markup_cost import is_cheap
from headgate.sandbox.request_process import RequestFailed, RequestProcess

_MEMORY_BYTES = 256 << 20
_ANSWER_BYTES_MAX = 16 << 20


class SanitiseBudget:
    """The seconds that the expensive markup of one document may still take."""

    def __init__(self, seconds: float) -> None:
        self._left_s = seconds

    def safe_html(self, markup: str, base: str) -> str:
        """The sanitised markup; `TooExpensive` if it would take longer than what is left."""
        if is_cheap(markup):
            return safe_html(markup, base=base)
        if self._left_s <= 0:
            raise TooExpensive("the time for the markup of its document is used up")
        with _turn:
            began = time.monotonic()
            try:
                return str(_process.ask_json([markup, base], timeout_s=self._left_s))
            except (RequestFailed, SandboxError) as error:
                raise TooExpensive(str(error)) from error
            finally:
                self._left_s -= time.monotonic() - began


_turn = threading.Lock()
_process = RequestProcess(
    Confinement("headgate.acquire.sanitise:serve"), answer_bytes_max=_ANSWER_BYTES_MAX
)


def serve(process: ConfinedProcess) -> None:
    """What runs in the sandboxed process."""
    safe_html("<b>x")
    process.limit_memory(_MEMORY_BYTES)
    process.send(b"[]")
    while (request := process.receive()) is not None:
        markup, base = json.loads(request)
        process.limit_cpu(60.0)
        process.send(json.dumps(safe_html(markup, base=base)).encode())
