"""What a person is told when a query fails."""

from headgate.pipeline.queries import ERROR_LENGTH_MAX, first_reason

SPARKS = """[STREAM_FAILED] Query [id = 1] terminated with exception: raised by Python:
Traceback (most recent call last):
  File "run_batch.py", line 3, in run
OSError: the disk is full
\tat org.apache.spark.api.python.PythonForeachWriter
"""


STATE = """
=== Streaming Query ===
Identifier: tables [id = 1, runId = 2]
Current State: ACTIVE
Thread State: RUNNABLE
"""
JAVA = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted. SQLSTATE: XXKST
\tat org.apache.spark.Something(Some.scala:1)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""
PLAIN = "[STREAM_FAILED] Query [id = 1] terminated with exception: it is lost SQLSTATE: XXKST"


def test_the_state_of_a_thread_is_no_reason() -> None:
    assert first_reason(RuntimeError(PLAIN + STATE)) == "it is lost"
    assert first_reason(RuntimeError(JAVA + STATE)) == (
        "java.io.IOException: No space left on device"
    )
    assert first_reason(RuntimeError(SPARKS + STATE)) == "OSError: the disk is full"


def test_the_reason_is_the_line_that_python_names() -> None:
    assert first_reason(RuntimeError(SPARKS)) == "OSError: the disk is full"
    assert first_reason(RuntimeError("only this")) == "only this"
    assert first_reason(RuntimeError("")) == "unknown"
    assert first_reason(None) == "the query has ended"
    assert "\x1b" not in first_reason(RuntimeError("ValueError: \x1b[2J"))
    assert len(first_reason(RuntimeError("x" * 10_000))) == ERROR_LENGTH_MAX
