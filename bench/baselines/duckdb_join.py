"""Matching as a join in DuckDB: events unpivoted, joined with atoms on ranges, grouped.

    events (item, attribute, value)  ⋈  atoms (attribute, low, high)  ⋈  uses (atom, subscription)

A subscription matches an item if as many of its atoms hold as it has. One thread, tables in memory.
"""

from __future__ import annotations

import time

import duckdb
import numpy as np
import pyarrow as pa

from bench.baselines.bounds import bounds_of
from bench.workloads.conjunctions import ATTRIBUTES, Workload, batch

_QUERY = """
    select count(*) from (
        select e.item, u.subscription, count(*) as held
        from events e
        join atoms a on e.attribute = a.attribute and e.value between a.low and a.high
        join uses u on u.atom = a.atom
        group by e.item, u.subscription
    ) h
    join lengths l on l.subscription = h.subscription and l.length = h.held
"""


def duckdb_us(work: Workload, *, items: int, seed: int) -> tuple[float, int]:
    """Microseconds per item, and how many matches there were in all."""
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        for name, table in _tables(work).items():
            connection.register("given", table)
            connection.execute(f"create table {name} as select * from given").fetchall()
            connection.unregister("given")
        connection.register("events", _events(items, seed=seed))
        began = time.perf_counter()
        ((found,),) = connection.execute(_QUERY).fetchall()
        return (time.perf_counter() - began) / items * 1e6, found


def _tables(work: Workload) -> dict[str, pa.Table]:
    bounds = np.array([bounds_of(atom) for atom in work.pool])
    subscription, column = np.nonzero(work.chosen >= 0)
    return {
        "atoms": pa.table(
            {
                "atom": np.arange(len(work.pool)),
                "attribute": [int(atom.attribute[1:]) for atom in work.pool],  # type: ignore[union-attr]
                "low": bounds[:, 0],
                "high": bounds[:, 1],
            }
        ),
        "uses": pa.table({"subscription": subscription, "atom": work.chosen[subscription, column]}),
        "lengths": pa.table(
            {
                "subscription": np.arange(len(work.chosen)),
                "length": (work.chosen >= 0).sum(axis=1),
            }
        ),
    }


def _events(items: int, *, seed: int) -> pa.Table:
    columns = batch(items, seed=seed).columns
    values = [columns[f"a{n}"][0] for n in range(ATTRIBUTES)]
    return pa.table(
        {
            "item": np.tile(np.arange(items), ATTRIBUTES),
            "attribute": np.repeat(np.arange(ATTRIBUTES), items),
            "value": np.concatenate(values),
        }
    )
