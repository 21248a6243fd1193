"""Which feeds pay for the CPU time of window joins: those of a family, or above a node.

    family 3f0c…   F1, F2         4.2 ms ──► F1 2.1 ms, F2 2.1 ms
    node 6  ⋈      F7             its own, and the feeds of nodes above it

A lookup is made once for all feeds of a family, so its cost is shared equally (`shared_costs` in
match/row_users.py). Patterns on the leaves are charged by the match stage, which evaluates them
too.
"""

from __future__ import annotations

import numpy as np

from headgate.match.row_users import SHARED_BY_MAX
from headgate.plan.algebra import Join
from headgate.windows.graph import Graph
from headgate.windows.join_plan_file import JoinPlans


def feeds_of_families(plans: JoinPlans) -> list[list[int]]:
    """For each family the numbers of its feeds; empty for more than SHARED_BY_MAX."""
    feeds: list[set[int]] = [set() for _ in plans.families]
    for source in plans.sources:
        sizes = np.diff(source.feed_start)
        families = np.repeat(source.slot_family, sizes)
        order = np.argsort(families, kind="stable")
        distinct, first = np.unique(families[order], return_index=True)
        numbers = np.split(plans.numbers[source.feeds[order]], first[1:])
        for family, of_family in zip(distinct.tolist(), numbers, strict=bool(distinct.size)):
            feeds[family].update(of_family.tolist())
    return [sorted(each) if len(each) <= SHARED_BY_MAX else [] for each in feeds]


def feeds_above_nodes(graph: Graph) -> list[list[int]]:
    """For each node the numbers of the feeds that use it; empty for more than SHARED_BY_MAX. The
    names of feeds are their numbers here (join_bucket.py)."""
    feeds: list[set[int]] = [set(map(int, graph.feeds.get(n, ()))) for n in range(len(graph.nodes))]
    users: list[list[int]] = [[*graph.flows[n], *graph.joins[n]] for n in range(len(graph.nodes))]
    for number, node in enumerate(graph.nodes):
        if isinstance(node, Join):
            users[graph.number_of[node.window]].append(number)
    for number in range(len(graph.nodes) - 1, -1, -1):  # users have higher numbers
        for user in users[number]:
            if len(feeds[number]) <= SHARED_BY_MAX:
                feeds[number] |= feeds[user]
    return [sorted(each) if len(each) <= SHARED_BY_MAX else [] for each in feeds]
