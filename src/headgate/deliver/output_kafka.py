"""Kafka: one record for each item, by an idempotent producer.

    key      the item's id: the records of an item are in one partition, in order
    value    the body of a webhook call (output_webhook.py)
    headers  feed, subscription, message: the id that is the same at every attempt

`output kafka 'topic'` names a topic; the brokers are the operator's (HEADGATE_KAFKA_BROKERS, a list
such as `a:9092,b:9092`; further settings of librdkafka in HEADGATE_KAFKA_SETTINGS as
`name=value,name=value`). A send returns when all in-sync replicas have the record (acks=all). The
producer is idempotent, so its own retries repeat nothing; after a crash of the worker a record may
be repeated, under the same message id.

Rejected: transactions (one for each worker and topic, and readers that must be `read_committed`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.deliver.errors import OutputError
from headgate.model.errors import printable

TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    brokers: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further settings of librdkafka; they may hold passwords."""
    total_s: float = 20.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> KafkaSettings:
        given = environment.get("HEADGATE_KAFKA_SETTINGS", "")
        pairs = [each.partition("=") for each in given.split(",") if each]
        wrong = [name for name, equals, _ in pairs if not equals]
        if wrong:
            raise OutputError(
                f"HEADGATE_KAFKA_SETTINGS has '{wrong[0]}' without a value; write name=value"
            )
        options = {name.strip(): value for name, _, value in pairs}
        return cls(environment.get("HEADGATE_KAFKA_BROKERS", ""), options)


def checked_topic(topic: str) -> str:
    """The name of a topic, or an error."""
    if not TOPIC.fullmatch(topic) or topic in (".", ".."):
        shown = printable(topic)[:100]
        raise OutputError(
            f"'{shown}' is no topic: use letters, digits, '.', '_' and '-'", lasting=True
        )
    return topic


class KafkaOutput:
    """Thread-safe. The producer is made when the first record is sent."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._producer: Any = None

    def close(self) -> None:
        if self._producer is not None:
            self._producer.flush(self._settings.total_s)

    def send(self, topic: str, *, key: str, value: str, headers: Mapping[str, str]) -> None:
        """Returns when the brokers have the record."""
        checked_topic(topic)
        producer = self._connected()
        delivered: list[Any] = []
        done = threading.Event()

        def on_delivery(error: object, _: object) -> None:
            delivered.append(error)
            done.set()

        try:
            producer.produce(
                topic,
                key=key.encode("utf-8", "replace"),
                value=value.encode(),
                headers={name: each.encode("utf-8", "replace") for name, each in headers.items()},
                on_delivery=on_delivery,
            )
        except BufferError:
            raise OutputError("the brokers do not keep up", busy=True) from None
        waited_s = 0.0
        while not done.is_set() and waited_s < self._settings.total_s:
            producer.poll(0.05)  # whichever thread polls serves the callbacks of all
            waited_s += 0.05 if not done.is_set() else 0.0
        if not delivered:
            raise OutputError(f"no broker has taken the record for '{topic}'", unreachable=True)
        if delivered[0] is not None:
            raise _refused(topic, delivered[0])

    def _connected(self) -> Any:
        with self._lock:
            if self._producer is None:
                self._producer = _producer(self._settings)
            return self._producer


def _producer(settings: KafkaSettings) -> Any:
    if not settings.brokers:
        raise OutputError(
            "no Kafka brokers are set; name them by HEADGATE_KAFKA_BROKERS", unreachable=True
        )
    try:
        import confluent_kafka  # noqa: PLC0415 - only where somebody uses it
    except ImportError:
        raise OutputError(
            "Kafka needs the package confluent-kafka; install headgate[kafka]", unreachable=True
        ) from None
    options: dict[str, object] = {
        "bootstrap.servers": settings.brokers,
        "enable.idempotence": True,
        "linger.ms": 2,
        "message.timeout.ms": int(settings.total_s * 1000),
        "log_level": 0,
        **settings.options,
    }
    try:
        return confluent_kafka.Producer(options)
    except (confluent_kafka.KafkaException, ValueError, TypeError) as error:
        raise OutputError(
            f"the settings for Kafka are refused: {error}", unreachable=True
        ) from None


def _refused(topic: str, error: Any) -> OutputError:
    """What the answer of the brokers means. A record that is too large is refused by itself; other
    errors concern the topic or the brokers."""
    too_large = error.name() in ("MSG_SIZE_TOO_LARGE", "INVALID_MSG", "INVALID_RECORD")
    return OutputError(
        f"the brokers refused the record for '{topic}': {error.str()}",
        lasting=too_large,
        busy=not too_large,
    )
