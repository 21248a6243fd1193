"""Matching as a join: events unpivoted, joined with the atoms on ranges, grouped.

    events (item, attribute, value)  ⋈  atoms (attribute, low, high)  ⋈  uses (atom, subscription)

A subscription matches an item if as many of its atoms hold as it has. The same tables and the same
query serve every database that is measured.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench.workloads.conjunctions import ATTRIBUTES, VALUES, Workload, batch
from headgate.model.atoms import Atom, Between, Comparison, Relation

QUERY = """
    select count(*) from (
        select e.item, u.subscription, count(*) as held
        from events e
        join atoms a on e.attribute = a.attribute and e.value between a.low and a.high
        join uses u on u.atom = a.atom
        group by e.item, u.subscription
    ) h
    join lengths l on l.subscription = h.subscription and l.length = h.held
"""


def subscription_tables(work: Workload) -> dict[str, pa.Table]:
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


def event_table(items: int, *, seed: int) -> pa.Table:
    columns = batch(items, seed=seed).columns
    values = [columns[f"a{n}"][0] for n in range(ATTRIBUTES)]
    return pa.table(
        {
            "item": np.tile(np.arange(items), ATTRIBUTES),
            "attribute": np.repeat(np.arange(ATTRIBUTES), items),
            "value": np.concatenate(values),
        }
    )


def bounds_of(atom: Atom) -> tuple[int, int]:
    """The values from … to … that satisfy an atom of the workload."""
    if isinstance(atom, Between):
        return int(atom.low), int(atom.high)  # type: ignore[arg-type]
    assert isinstance(atom, Comparison)
    value = int(atom.value)  # type: ignore[arg-type]
    return {
        Relation.EQUAL: (value, value),
        Relation.LESS: (0, value - 1),
        Relation.LESS_EQUAL: (0, value),
        Relation.GREATER: (value + 1, VALUES),
        Relation.GREATER_EQUAL: (value, VALUES),
    }[atom.relation]
