"""What a person is told when a query fails."""

from headgate.pipeline.queries import ERROR_LENGTH_MAX, first_reason

SPARKS = """[STREAM_FAILED] Query [id = 1] terminated with exception: raised by Python:
Traceback (most recent call last):
  File "run_batch.py", line 3, in run
OSError: the disk is full
\tat org.apache.spark.api.python.PythonForeachWriter
"""


def test_the_reason_is_the_line_that_python_names() -> None:
    assert first_reason(RuntimeError(SPARKS)) == "OSError: the disk is full"
    assert first_reason(RuntimeError("only this")) == "only this"
    assert first_reason(RuntimeError("")) == "unknown"
    assert first_reason(None) == "the query has ended"
    assert "\x1b" not in first_reason(RuntimeError("ValueError: \x1b[2J"))
    assert len(first_reason(RuntimeError("x" * 10_000))) == ERROR_LENGTH_MAX
