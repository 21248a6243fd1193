"""Flat feeds run level by level ([Delta §4.4]): the publisher's share, and the time of all.

Conjunctions of one to four comparisons over eight integer attributes with twenty values each; items
with all attributes, evenly drawn. CPU time of one thread, least of several times, and the same bits
as direct evaluation.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from random import Random

import numpy as np

from bench import Row, Say
from headgate.match.batch import Batch, batch_of_items
from headgate.model.atoms import Comparison, Relation
from headgate.model.filters import And
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.network.configuration_problem import Limits, Problem
from headgate.network.configure import configure
from headgate.network.flat_levels import (
    FlatLevels,
    compile_flat_levels,
    empty_rows,
    run_flat_levels,
)
from headgate.network.physical_plans import price_rewritings
from headgate.network.wide_area import uniform_area
from headgate.views.flat_feeds import FlatFeed
from headgate.views.flat_graph import rewrite_flat

TYPES = {f"a{n}": Type.INT for n in range(8)}
SCHEMA = Schema(tuple(Attribute(name, type_) for name, type_ in TYPES.items()))
RELATIONS = Relation.GREATER, Relation.LESS, Relation.EQUAL
VALUES, ITEMS, SITES, LIMIT, TIMES = 20, 4_096, 300, 30, 5
ITEM_BYTES = 1_000.0


def flat_row(count: int, *, say: Say) -> Row:
    say(f"{count:,} flat feeds")
    random = Random(3)
    feeds, batch = [_feed(random) for _ in range(count)], _batch(random)
    direct = compile_flat_levels(feeds, None, SCHEMA)
    judged = run_flat_levels(direct, batch)[direct.view_row]
    sizes = np.maximum(1.0, np.bitwise_count(judged).sum(axis=1) / ITEMS * ITEM_BYTES)
    rewritings = rewrite_flat(feeds)
    area = uniform_area(sizes, document_bytes=ITEM_BYTES, sites=SITES)
    costs = price_rewritings(rewritings, area).costs
    plan = configure(Problem(rewritings, costs, Limits.uniform(count, view=LIMIT)), time_s=60.0)
    levels = compile_flat_levels(feeds, plan.fast.reads(), SCHEMA)
    is_same = bool((run_flat_levels(levels, batch)[levels.view_row] == judged).all())
    own_s, direct_s = _level_s(levels, batch), sum(_level_s(direct, batch))
    fed = int(plan.fast.loads[-1])
    return Row(
        "flat feeds, level by level",
        f"{count:,} feeds, {ITEMS:,} items, B_out {LIMIT}; the source feeds {fed:,}",
        f"{1e6 * sum(own_s) / ITEMS:.2f} µs an item on {len(own_s)} levels, publisher "
        f"{1e6 * own_s[0] / ITEMS:.2f} µs ({own_s[0] / direct_s:.0%} of direct); "
        f"{'the same' if is_same else 'NOT the same'} answers",
        "the same",
        is_same,
        baseline=f"directly {1e6 * direct_s / ITEMS:.2f} µs",
    )


def _feed(random: Random) -> FlatFeed:
    names = random.sample(sorted(TYPES), random.randint(1, 4))
    conditions = [
        Comparison(name, random.choice(RELATIONS), random.randrange(VALUES)) for name in names
    ]
    return FlatFeed.of("S", And(tuple(conditions)))


def _batch(random: Random) -> Batch:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    items = [
        Item(str(n), "S", moment, {name: random.randrange(VALUES) for name in TYPES})
        for n in range(ITEMS)
    ]
    return batch_of_items(items, TYPES)


def _level_s(levels: FlatLevels, batch: Batch) -> list[float]:
    """Seconds for each level."""
    rows, least = empty_rows(levels, batch), [float("inf")] * len(levels.programs)
    for _ in range(TIMES):
        for level in range(len(levels.programs)):
            began = time.thread_time()
            levels.run_level(level, batch, rows)
            least[level] = min(least[level], time.thread_time() - began)
    return least
