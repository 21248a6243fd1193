"""How many views the source must feed, whatever rewritings are found.

A bound from the rewritings that were found says nothing about those that were not. This one is from
the whole embedding graph: every rewriting of v is a cover by views that embed into v, so it has a
view for each attribute. At any prices of the views' places it costs at least

    needed(v) = max over attributes a of v    min over views u that cover a    price[u]

and no view pays more than 1, at which the source serves it. So at least

    Σ_v min(1, needed(v))  −  B_out · Σ_u price[u]

views are fed by the source in any configuration of any rewritings; a view that nothing covers
counts 1. (Of two views that embed into each other, the graph has one edge: the order in which such
views serve each other is given.) Prices are whole millionths, so that the sum is exact. Good prices
are those of the Lagrangian on the rewritings that were found.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.network.configuration_problem import Floats
from headgate.views.cover_search import Query, popularity_needed
from headgate.views.pattern_arrays import ALL, NODES_MAX
from headgate.views.rewrite_cgr import Coverage

ONE = 1_000_000


def whole_graph_bound(coverage: Coverage, price: Floats, limit: int) -> float:
    """No configuration in which a view feeds at most `limit` others has fewer from the source."""
    whole = np.floor(price * ONE).astype(np.int64)
    paid = int(_paid(coverage._replace(popular=whole)))
    return (paid - limit * int(whole.sum())) / ONE


@nb.njit(nogil=True, cache=True)
def _paid(graph):  # type: ignore[no-untyped-def]
    """What all views together pay at least, where a view's popularity is its price."""
    total = 0
    for view in range(graph.start.shape[0] - 1):
        views = graph.embedded[graph.start[view] : graph.start[view + 1]]
        covers = graph.covers[graph.start[view] : graph.start[view + 1]]
        if views.shape[0] == 0:
            total += ONE
            continue
        wanted = ALL >> np.uint64(NODES_MAX - graph.attribute_count[view])
        query = Query(view, views, covers, graph.popular[views], wanted, graph.tops[view])
        total += min(ONE, popularity_needed(query))
    return total
