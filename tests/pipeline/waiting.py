"""Waiting for what another thread or process does, with an end to patience."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], object], *, patience_s: float = 300.0) -> None:
    """Returns as soon as the condition holds."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, f"waited for {patience_s:g} s in vain"
        time.sleep(0.02)
