"""The same on executors that are processes of their own as in one: what the judge says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.running.s3_server import BUCKET, MISSING, S3Server, find_server

import headgate as hg

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]


def test_two_executors_find_what_the_judge_finds(tmp_path: Path) -> None:
    assert "2000 items agree" in cluster_run(tmp_path)


def test_with_the_log_at_a_url_executors_need_no_folder(tmp_path: Path) -> None:
    """The folder of the run is hidden from them (hidden_folder_daemon.py)."""
    if find_server() is None:
        pytest.skip(MISSING)
    try_hiding = "from tests.pipeline.hidden_folder_daemon import hide; hide('.')"
    probed = subprocess.run([sys.executable, "-c", try_hiding], cwd=ROOT, check=False)
    if probed.returncode != 0:
        pytest.skip("folders can only be hidden by one who may mount")
    log = f"s3://{BUCKET}/cluster"
    with S3Server(tmp_path / "s3") as server:
        environment = {**server.environment, "HEADGATE_CACHE": str(tmp_path / "driver-cache")}
        assert "2000 items agree" in cluster_run(tmp_path, log, **environment)
        with (
            pytest.MonkeyPatch.context() as patch,
            hg.open(str(tmp_path / "catalog.db"), folder=tmp_path / "elsewhere", log=log) as h,
        ):
            for name, value in environment.items():
                patch.setenv(name, value)
            assert len(h.tail("F7", 5)) == 5
            assert h.why("96", "F7").has
    plans = [path.name for path in (tmp_path / "executors-cache").rglob("plans/*")]
    assert any(name.endswith(".snapshot.json") for name in plans)
    own = {path.name for path in (tmp_path / "data").iterdir()}
    assert "log.url" in own
    assert not own & {"log", "data"}, "nothing of the log is in the folder"


def cluster_run(folder: Path, log: str = "", **environment: str) -> str:
    command = [sys.executable, "-m", "tests.pipeline.cluster_run", folder]
    done = subprocess.run(
        [*command, "local-cluster[2,1,1024]", *([log] if log else [])],
        cwd=ROOT,
        # Executors have other working directories.
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", **environment},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout
