"""The process that Spark forks its Python workers from, with everything loaded that a batch needs.

PySpark's own daemon is nearly empty: each worker that it forks loads NumPy, Arrow, Numba and the
compiled kernels for itself, 1 to 2 s of work, and again after a pause, as workers that have nothing
to do for a minute end. Here they are loaded once, before the first fork:

    pyspark.daemon              headgate.pipeline.daemon
    └── worker: load, match     load
    └── worker: load, match     └── worker: match
                                └── worker: match           what is loaded is shared memory

Spark is told by `spark.python.daemon.module`. Nothing may be printed: standard output is the way
on which the daemon tells Spark its address. No thread may be started: none survives a fork.
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
    """Run the kernels that most filters need, so that Numba reads them from its cache."""
    small = Comparison("number", Relation.LESS, 5)
    one = Comparison("number", Relation.EQUAL, 1)
    some = Contains("words", "some words")
    filters: list[Filter] = [And((small, some)), one, Or((And((one, some)), small)), some]
    leaves = {each: FilterUsers(["f"], ["f"]) for each in filters}
    plan = source_plan("", SCHEMA, leaves, number_of={"f": 0})
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    items = [Item("", "", moment, {"number": n, "words": "some words"}) for n in range(70)]
    plan.match(batch_of_arrow(items_to_arrow(items, SCHEMA), SCHEMA))
    gc.collect()
    gc.freeze()


def quiet_worker(sock: socket.socket, authenticated: bool) -> int:
    """A task that Spark has given up has nobody to answer to: that is no error worth a page."""
    try:
        return spark_worker(sock, authenticated)
    except BrokenPipeError:
        return 1


spark_worker = spark_daemon.worker

if __name__ == "__main__":
    load()
    spark_daemon.worker = quiet_worker
    spark_daemon.manager()
