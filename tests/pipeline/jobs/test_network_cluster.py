"""The same on executors that are processes of their own as in one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[3]
MODULE = "tests.pipeline.jobs.network_cluster_run"


def test_two_executors_find_what_one_process_finds(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", MODULE, tmp_path, "local-cluster[2,1,1024]"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "rewritings agree" in done.stdout
