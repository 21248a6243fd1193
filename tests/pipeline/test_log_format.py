"""Logs as lines of JSON, whatever is in them."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.log_format import TEXT_LENGTH_MAX, JsonFormatter


def line_of(message: str, *arguments: object, **extra: object) -> dict[str, object]:
    record = logging.getLogger("headgate.x").makeRecord(
        "headgate.x", logging.WARNING, "f.py", 1, message, arguments, None, extra=extra
    )
    text = JsonFormatter().format(record)
    assert text.isascii()
    assert "\n" not in text
    found: dict[str, object] = json.loads(text)
    return found


def test_fields_of_a_line() -> None:
    found = line_of("%s is gone", "News", source="News", failures=3, why=ValueError("x"))
    assert str(found.pop("time")).endswith("Z")
    assert found == {
        "level": "warning",
        "logger": "headgate.x",
        "message": "News is gone",
        "source": "News",
        "failures": 3,
        "why": "x",
    }


@given(st.text(), st.dictionaries(st.sampled_from(["source", "feed", "level", "time"]), st.text()))
def test_any_text_is_one_line(text: str, extra: dict[str, str]) -> None:
    found = line_of("%s", text, **extra)
    assert found["message"] == text[:TEXT_LENGTH_MAX]
    assert found["level"] == "warning", "what a record is about does not change what it is"
    assert found.get("source") == extra.get("source")


def test_long_texts_are_cut() -> None:
    assert len(json.dumps(line_of("%s", "x" * 10**6, source="y" * 10**6))) < 3 * TEXT_LENGTH_MAX


LOGGING = """
import logging, warnings
from headgate.pipeline.log_format import LogFormat, configure_logs
configure_logs(LogFormat({choice!r}))
logging.getLogger("headgate.run").error("of the run", extra={{"query": "feeds-a"}})
logging.getLogger("headgate.acquire").info("info")
logging.getLogger("httpx").info("GET https://a.example/?key=secret")
logging.getLogger("py4j.clientserver").error("pages of frames")
try:
    1 / 0
except ZeroDivisionError as error:
    logging.getLogger("headgate.x").warning("bad", exc_info=error)
"""


def logged(choice: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOGGING.format(choice=choice)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr.splitlines()


def test_a_process_that_logs_json() -> None:
    lines = [json.loads(line) for line in logged("json")]
    assert [line["message"] for line in lines] == ["of the run", "info", "bad"]
    assert lines[0]["query"] == "feeds-a"
    assert lines[2]["exception"].endswith("ZeroDivisionError: division by zero")


def test_a_process_that_logs_text() -> None:
    text = "\n".join(logged("text"))
    assert "of the run" not in text, "the screen of the run shows it"
    assert text.startswith("bad\nTraceback")
