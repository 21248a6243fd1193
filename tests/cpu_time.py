"""Bounds on the CPU time of a call that hold on a busy machine.

A call that is slow is slow every time. A call that was slow once may have met the garbage collector
of a large test process, or a machine that counts the time of others as ours. So the least of some
calls is compared with the bound, and the collector rests.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
CALLS = 4


def cpu_time(call: Callable[[], Result]) -> tuple[Result, float]:
    """The result of a call, and its CPU time in this thread."""
    gc.disable()
    try:
        began_s = time.thread_time()
        result = call()
        return result, time.thread_time() - began_s
    finally:
        gc.enable()


def within_cpu(bound_s: float, call: Callable[[], Result]) -> Result:
    """The result of a call; the call is repeated where it takes as long as the bound."""
    times: list[float] = []
    while True:
        result, took_s = cpu_time(call)
        if took_s < bound_s:
            return result
        times.append(took_s)
        assert len(times) < CALLS, f"{min(times):.3f} s of CPU, {bound_s} s at most"
