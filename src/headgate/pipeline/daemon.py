"""Spark's Python daemon, with all modules that a batch needs loaded before it forks workers.

PySpark's own daemon loads little: each worker that it forks loads NumPy, Arrow, Numba and the
compiled kernels itself, which takes 1 to 2 s. Workers end after a minute without tasks, so this
recurs after each pause. This daemon loads them once, before the first fork:

    pyspark.daemon              headgate.pipeline.daemon
    └── worker: load, match     load
    └── worker: load, match     └── worker: match
                                └── worker: match           loaded modules are shared memory

The setting `spark.python.daemon.module` names this module. Loading must not print anything, since
the daemon reports its port to Spark on standard output. It must not start threads of ours, since
threads do not survive a fork. Arrow's jemalloc has a thread of its own before the fork; it prepares
itself for forks, and a test (tests/pipeline/test_daemon.py) forks workers that allocate, compute
and start threads.
"""

from __future__ import annotations

import gc
import socket
from datetime import UTC, datetime

from pyspark import daemon as spark_daemon
from pyspark import worker as _worker  # noqa: F401 - each worker imports it

from headgate.match.batch import batch_of_arrow
from headgate.match.item_columns import items_to_arrow
from headgate.model.atoms import Comparison, Contains, Relation
from headgate.model.filters import And, Filter, Or
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline import batch_stage as _batch_stage  # noqa: F401 - each batch needs it
from headgate.pipeline.source_plan import source_plan
from headgate.plan.leaves import FilterUsers

SCHEMA = Schema((Attribute("number", Type.INT), Attribute("words", Type.TEXT)))


def load() -> None:
    """Run the kernels that most filters need, so that Numba loads them from its cache."""
    below_five = Comparison("number", Relation.LESS, 5)
    equals_one = Comparison("number", Relation.EQUAL, 1)
    has_words = Contains("words", "some words")
    filters: list[Filter] = [
        And((below_five, has_words)),
        equals_one,
        Or((And((equals_one, has_words)), below_five)),
        has_words,
    ]
    leaves = {filter_: FilterUsers(["f"], ["f"]) for filter_ in filters}
    plan = source_plan("", SCHEMA, leaves, number_of={"f": 0})
    instant = datetime(2026, 1, 1, tzinfo=UTC)
    items = [Item("", "", instant, {"number": n, "words": "some words"}) for n in range(70)]
    plan.match(batch_of_arrow(items_to_arrow(items, SCHEMA), SCHEMA))
    gc.collect()
    gc.freeze()


def quiet_worker(sock: socket.socket, authenticated: bool) -> int:
    """Spark closes the socket of a cancelled task; print no stack trace for it."""
    try:
        return spark_worker(sock, authenticated)
    except BrokenPipeError:
        return 1


spark_worker = spark_daemon.worker

if __name__ == "__main__":
    load()
    spark_daemon.worker = quiet_worker
    spark_daemon.manager()
