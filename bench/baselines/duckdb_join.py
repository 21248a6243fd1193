"""The range join in DuckDB, with one thread and its tables in memory."""

from __future__ import annotations

import time

import duckdb

from bench.baselines.range_join import QUERY, event_table, subscription_tables
from bench.workloads.conjunctions import Workload


def duckdb_us(work: Workload, *, items: int, seed: int) -> tuple[float, int]:
    """Microseconds per item, and how many matches there were in all."""
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        for name, table in subscription_tables(work).items():
            connection.register("given", table)
            connection.execute(f"create table {name} as select * from given").fetchall()
            connection.unregister("given")
        connection.register("events", event_table(items, seed=seed))
        began = time.perf_counter()
        ((found,),) = connection.execute(QUERY).fetchall()
        return (time.perf_counter() - began) / items * 1e6, found
