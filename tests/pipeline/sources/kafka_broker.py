"""A real Kafka broker (KRaft, one JVM, loopback) for tests. Its jars come from the machine's Maven
client, once, into the cache; where they cannot be had, tests are skipped with the reason."""

from __future__ import annotations

import shutil
import socket
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Self

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pipeline.sources.streams import wait_for

from headgate.pipeline.java_archive import cache_folder
from headgate.pipeline.spark_jars import MISSING, has_connector_jars, resolve

VERSION = "4.1.0"
JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xlog:disable")
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


@lru_cache(maxsize=1)
def broker_jars() -> Path:
    """The folder of the broker's jars; the test is skipped without them."""
    if not has_connector_jars():
        pytest.skip(MISSING)
    folder = cache_folder() / f"kafka-broker-{VERSION}"
    if not folder.exists():
        problem = resolve([("org.apache.kafka", "kafka_2.13", VERSION)], folder, transitive=True)
        if problem:
            pytest.skip(f"no Kafka broker: {problem}")
    return folder


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class KafkaBroker:
    """`with KafkaBroker(folder) as broker`. It may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._jars = broker_jars()
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        port, controller = free_port(), free_port()
        self.address = f"127.0.0.1:{port}"
        self._settings = folder / "server.properties"
        self._settings.write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://{self.address}
controller.listener.names=CONTROLLER
log.dirs={folder / "logs"}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.segment.bytes=1048576
log.retention.check.interval.ms=500
file.delete.delay.ms=100
"""
        )
        command = ("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self._settings))
        subprocess.run(self._java(*command), check=True, capture_output=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._admin = AdminClient({"bootstrap.servers": self.address, "logger": _Silent()})

    def _java(self, *arguments: str) -> list[str]:
        java = shutil.which("java")
        assert java is not None
        return [java, *JVM, "-cp", f"{self._jars}/*", *arguments]

    def start(self) -> None:
        log = (self._folder / "broker.log").open("ab")
        command = self._java("kafka.Kafka", str(self._settings))
        self._process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        wait_for(self._answers)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "broker.log").read_text()[-2_000:]
        try:
            return bool(self._admin.list_topics(timeout=1).brokers)
        except confluent_kafka.KafkaException:
            return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        new = NewTopic(
            topic, partitions, 1, config={k.replace("_", "."): v for k, v in config.items()}
        )
        self._admin.create_topics([new])[topic].result(30)

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(30)
        wait_for(lambda: topic not in self._admin.list_topics(timeout=5).topics)

    def recreate(self, topic: str) -> None:
        self.delete(topic)
        self.create(topic)

    def delete_before(self, topic: str, offset: int) -> None:
        """Expire the messages of partition 0 up to an offset."""
        start = confluent_kafka.TopicPartition(topic, 0, offset)
        for future in self._admin.delete_records([start]).values():
            future.result(30)

    def send(
        self,
        topic: str,
        values: list[bytes | None],
        *,
        partition: int = 0,
        keys: list[bytes] | None = None,
        headers: dict[str, bytes] | None = None,
    ) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.address, "logger": _Silent(), "linger.ms": 5}
        )
        for number, value in enumerate(values):
            key = None if keys is None else keys[number]
            producer.produce(topic, value, key, partition, headers=list((headers or {}).items()))
        assert producer.flush(30) == 0

    def path(self, topic: str) -> str:
        return f"kafka://{self.address}/{topic}"


class _Silent:
    def log(self, *_: object) -> None:
        return None
