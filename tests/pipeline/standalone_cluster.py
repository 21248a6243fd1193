"""A standalone Spark master with workers on loopback, as processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

import pyspark
from bench.running.processes import below, end, is_java
from tests.pipeline.sources.kafka_broker import free_port
from tests.pipeline.sources.streams import wait_for

HOME = Path(pyspark.__file__).parent
PACKAGE = "org.apache.spark.deploy"


class StandaloneCluster:
    """`with StandaloneCluster(folder) as cluster`. Each worker has one core; it may be killed."""

    def __init__(
        self, folder: Path, *, workers: int = 2, memory_mb: int = 1_024, options: str = ""
    ) -> None:
        self.url = f"spark://127.0.0.1:{free_port()}"
        self._folder, self._workers, self._memory_mb = folder, workers, memory_mb
        self._options = options
        self._master: subprocess.Popen[bytes] | None = None
        self._running: list[subprocess.Popen[bytes]] = []
        folder.mkdir(parents=True, exist_ok=True)
        settings = f"spark.executor.memory {memory_mb * 2 // 3}m\n"
        (folder / "spark-defaults.conf").write_text(settings)

    @property
    def environment(self) -> dict[str, str]:
        """What a driver needs: the size of its executors, and loopback."""
        return {"SPARK_CONF_DIR": str(self._folder), "SPARK_LOCAL_IP": "127.0.0.1"}

    def __enter__(self) -> Self:
        where = ("--host", "127.0.0.1", "--port", self.url.rpartition(":")[2], "--webui-port", "0")
        self._master, log = self._spawn("master", f"{PACKAGE}.master.Master", *where)
        wait_for(lambda: b"Starting Spark master" in log.read_bytes())
        for number in range(self._workers):
            self._running.append(self._start_worker(number))
        return self

    def __exit__(self, *_: object) -> None:
        processes = [*self._running, *([self._master] if self._master else [])]
        family = [pid for each in processes for pid in below(each.pid)]
        for pid in family:
            end(pid, signal.SIGKILL)
        for each in processes:
            each.wait()

    def executors(self) -> list[int]:
        """The JVMs of the executors that run now."""
        return [pid for each in self._running for pid in below(each.pid)[1:] if is_java(pid)]

    def kill_worker(self) -> None:
        """Kill a worker with its executors, and start another in its place."""
        victim = self._running.pop(0)
        for pid in below(victim.pid):
            end(pid, signal.SIGKILL)
        victim.wait()
        self._workers += 1
        self._running.append(self._start_worker(self._workers))

    def _start_worker(self, number: int) -> subprocess.Popen[bytes]:
        size = ("--cores", "1", "--memory", f"{self._memory_mb}m", "--webui-port", "0")
        work = ("--work-dir", str(self._folder / f"work{number}"), self.url)
        process, log = self._spawn(f"worker{number}", f"{PACKAGE}.worker.Worker", *size, *work)
        wait_for(lambda: b"registered with master" in log.read_bytes())
        return process

    def _spawn(self, name: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = self._folder / f"{name}.log"
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(HOME),
            "SPARK_DAEMON_JAVA_OPTS": self._options,
            "SPARK_DAEMON_MEMORY": "256m",
        }
        command = [str(HOME / "bin" / "spark-class"), *arguments]
        with log.open("wb") as file:
            return subprocess.Popen(command, env=environment, stdout=file, stderr=file), log
