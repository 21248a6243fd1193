"""The join results of new tuples for all subscriptions in DuckDB, one thread, tables in memory."""

from __future__ import annotations

import time
from collections.abc import Sequence

import duckdb
import pyarrow as pa

from headgate.tables.changes import JoinChange
from headgate.tables.messages import JoinSide
from headgate.tables.server import SelectJoinServer

QUERY = """
select count(*) from new join s using (b) join subscription as x
on new.a between x.a_low and x.a_high and s.c between x.c_low and x.c_high
"""


def duckdb_join_us(server: SelectJoinServer, inserted: Sequence[JoinChange]) -> tuple[float, int]:
    """Microseconds for each new tuple of R, and how many join results there are in all."""
    low, high = server.tree.bounds(server.tree.numbers())
    right = server.tables[JoinSide.RIGHT]
    rows = [right.row(slot) for slot in right.current_slots().tolist()]
    tables = {
        "subscription": pa.table(
            {"a_low": low[:, 0], "a_high": high[:, 0], "c_low": low[:, 1], "c_high": high[:, 1]}
        ),
        "s": pa.table({"b": [r.join[0] for r in rows], "c": [r.values[0] for r in rows]}),
        "new": pa.table(
            {
                "b": [each.join[0] for each in inserted if each.join],
                "a": [each.values[0] for each in inserted if each.values],
            }
        ),
    }
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        for name, table in tables.items():
            connection.register("given", table)
            connection.execute(f"create table {name} as select * from given").fetchall()
            connection.unregister("given")
        began = time.perf_counter()
        ((found,),) = connection.execute(QUERY).fetchall()
        return (time.perf_counter() - began) / len(inserted) * 1e6, found
