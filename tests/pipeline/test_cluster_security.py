"""A standalone master with two workers and a secret: a session that has the secret works, and is
encrypted; one with another secret is refused."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest
from tests.pipeline.sources.streams import wait_for

from headgate.pipeline.session import SECRET_VARIABLE

HOME = Path(pyspark.__file__).parent
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


@contextmanager
def spark_process(log: Path, *arguments: str) -> Iterator[None]:
    options = (
        f"-Dspark.authenticate=true -Dspark.authenticate.secret={SECRET} "
        "-Dspark.network.crypto.enabled=true"
    )
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(HOME),
        "SPARK_DAEMON_JAVA_OPTS": options,
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), *arguments],
            env=environment,
            stdout=file,
            stderr=file,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cluster")
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    package = "org.apache.spark.deploy"
    with ExitStack() as opened:
        log = folder / "master.log"
        where = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        opened.enter_context(spark_process(log, f"{package}.master.Master", *where))
        wait_for(lambda: b"Starting Spark master" in log.read_bytes())
        for number in range(2):
            own = folder / f"worker{number}.log"
            size = ("--cores", "1", "--memory", "600m", "--webui-port", "0")
            work = ("--work-dir", str(folder / f"work{number}"), url)
            opened.enter_context(spark_process(own, f"{package}.worker.Worker", *size, *work))
            wait_for(lambda own=own: b"registered with master" in own.read_bytes())
        yield url


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
