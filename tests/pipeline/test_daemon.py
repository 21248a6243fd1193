"""Workers that are forked from a daemon with everything loaded: they work, all of them, although
libraries may have threads at the time of the fork."""

from __future__ import annotations

import subprocess
import sys

FORKS = 24
SCRIPT = f"""
import os, sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline import daemon

daemon.load()

def work(seed):
    '''What a worker does: kernels, and allocations and threads of Arrow.'''
    daemon.load()
    values = pa.array(np.random.default_rng(seed).integers(0, 1_000, 200_000))
    table = pa.table({{"a": values, "b": pc.cast(values, pa.string())}})
    grouped = table.group_by("a", use_threads=True).aggregate([("b", "count")])
    assert sum(grouped["b_count"].to_pylist()) == 200_000
    with ThreadPoolExecutor(4) as threads:
        sums = list(threads.map(lambda n: pc.sum(values).as_py() + n, range(8)))
    assert len(set(sums)) == 8

children = []
for seed in range({FORKS}):
    child = os.fork()
    if not child:
        try:
            work(seed)
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    children.append(child)
    if len(children) % 8 == 0:  # some are forked while others run and exit
        time.sleep(0.05)
failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
print(f"failed: {{len(failed)}}")
"""


def test_forked_workers_do_not_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.strip() == "failed: 0", done.stderr[-2_000:]
