"""A standalone master with two workers and a secret: a session that has the secret works, and is
encrypted; one with another secret is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.pipeline.standalone_cluster import StandaloneCluster

from headgate.pipeline.session import SECRET_VARIABLE

SECRET = "the-secret-of-the-cluster"
SCRIPT = """
import sys
from headgate.pipeline.session import start_session

def same(batches):
    yield from batches

settings = {"spark.executor.memory": "500m", "spark.cores.max": "2", "spark.jars": ""}
session = start_session(sys.argv[1], settings=settings)
conf = session.sparkContext.getConf()
names = ("spark.authenticate", "spark.network.crypto.enabled", "spark.io.encryption.enabled")
print([conf.get(name) for name in names])
print(session.range(1000, numPartitions=8).repartition(4).mapInArrow(same, "id long").count())
session.stop()
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    options = (
        f"-Dspark.authenticate=true -Dspark.authenticate.secret={SECRET} "
        "-Dspark.network.crypto.enabled=true"
    )
    folder = tmp_path_factory.mktemp("cluster")
    with StandaloneCluster(folder, memory_mb=600, options=options) as cluster:
        yield cluster.url


def run_session(master: str, secret: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, SECRET_VARIABLE: secret, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, master],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_session_with_the_secret_is_authenticated_and_encrypted(master: str) -> None:
    done = run_session(master, SECRET)
    assert done.stdout.split("\n")[:2] == ["['true', 'true', 'true']", "1000"], done.stderr[-2_000:]


def test_a_session_with_another_secret_is_refused(master: str) -> None:
    done = run_session(master, "guessed")
    assert "1000" not in done.stdout
    assert done.returncode != 0
