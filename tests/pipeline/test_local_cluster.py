"""The same on executors that are processes of their own as in one: what the judge says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]


def test_two_executors_find_what_the_judge_finds(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.cluster_run", tmp_path, "local-cluster[2,1,1024]"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "2000 items agree" in done.stdout
