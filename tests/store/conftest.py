"""An S3 server for the tests of a log at a URL; without one these tests are skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from bench.running.s3_server import MISSING, S3Server, find_server


@pytest.fixture(scope="session")
def _running_s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    if find_server() is None:
        pytest.skip(MISSING)
    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3_server(_running_s3_server: S3Server, tmp_path: Path) -> Iterator[S3Server]:
    """A server that runs, and an environment in which clients find it."""
    cache = {"HEADGATE_CACHE": str(tmp_path / "cache")}
    with patch.dict(os.environ, {**_running_s3_server.environment, **cache}):
        yield _running_s3_server
