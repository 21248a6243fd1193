"""The logs of a run, a delivery worker and the service: text for people, or a JSON object a line.

    {"time": "2026-11-17T18:00:01.250Z", "level": "warning", "logger": "headgate.acquire.acquirer",
     "message": "the fetch of a source failed", "source": "News", "failures": 3}

What a record is about is in fields of its own: whoever logs gives them as `extra={"source": name}`.
Messages and fields may come from outside: a line is ASCII and of bounded length, whatever is in it.

The choice is in the environment, so that the processes that a run starts (Spark's, delivery) make
the same one. As text, what a run logs about its own state is not printed: its screen and its lines
show it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from enum import StrEnum

VARIABLE = "HEADGATE_LOG_FORMAT"
RUN_LOGGER = "headgate.run"
TEXT_LENGTH_MAX, TRACE_LENGTH_MAX = 4_000, 20_000
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_OWN = frozenset({"time", "level", "logger", "exception"})


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def logs_are_json() -> bool:
    return os.environ.get(VARIABLE) == LogFormat.JSON


def configure_logs(choice: LogFormat | None = None) -> None:
    """Log as chosen, in this process and those that it starts; without a choice as the environment
    says, for these."""
    if choice is not None:
        os.environ[VARIABLE] = choice
    # A batch that fails is logged by the run (queries.py), without pages of Spark's frames.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    if not logs_are_json():
        logging.getLogger(RUN_LOGGER).addHandler(logging.NullHandler())
        logging.getLogger(RUN_LOGGER).propagate = False
        return
    logging.getLogger(RUN_LOGGER).propagate = True
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    # Libraries log the URLs of requests, which may have secrets in them, below a warning.
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("headgate").setLevel(logging.INFO)
    logging.captureWarnings(capture=True)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": _instant(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:TEXT_LENGTH_MAX],
        }
        for name, value in vars(record).items():
            if name not in _STANDARD and name not in _OWN:
                fields[name] = _plain(value)
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)[-TRACE_LENGTH_MAX:]
        return json.dumps(fields)


def _plain(value: object) -> object:
    if isinstance(value, bool | int | float) or value is None:
        return value
    return str(value)[:TEXT_LENGTH_MAX]


def _instant(seconds: float) -> str:
    """
    >>> _instant(0.25)
    '1970-01-01T00:00:00.250Z'
    """
    instant = datetime.fromtimestamp(seconds, UTC)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
