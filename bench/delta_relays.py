"""Delta at work with real relays: view latency and document delivery on loopback ([Delta §5.5]).

The same figures as those that `delta-run` takes from a simulated wide area, of processes that are
really there (bench/running/relays.py), and `kill -9` of them. It has loopback instead of a wide
area and two cores instead of 300 machines, so the two together tell what is the network's, and what
is the work's.
"""

from __future__ import annotations

from bench import Plot, Result, Say
from bench.configured.priced import told_limit
from bench.running.relays import LIMITS, relay_rows


def run(*, quick: bool, say: Say) -> Result:
    rows, lines = relay_rows(quick=quick, say=say)
    ticks = ", ".join(told_limit(each) for each in LIMITS)
    return Result(rows, Plot("View latency with real relays", f"B_out: {ticks}", "seconds", lines))
