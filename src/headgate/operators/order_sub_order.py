"""Sub-Order: subscriptions in the order that saves most, by linked chains.

[Operators §4.2]. A clause is a *chain* of nodes, the one that is least probable for
its cost on top; nodes of different chains are linked if they are the same predicate. As one order
sorts all chains, links never cross:

    S1   a ── b ── d            a < b < c < d < e  by cost / (1 − selectivity)
              │    │
    S2   ──── b ── d ── e

Evaluating S1 before S2 rather than after it saves (§4.2.4)

    Σ over links l   (1 − p_l) · (P_1,l · C′_2,l − P_2,l · C′_1,l)

P is the probability that all nodes above the link are true, C′ the expected cost of those above it
that the other chain does not share. Read so, with C′ over probabilities of unshared nodes as well,
the formula is exact for any number of links and any costs: a test compares it with the expected
costs of both orders. The single-link form in the paper is a case of it. For different costs the
paper multiplies each p by its predicate's cost (§4.3); that would multiply costs with each other
along a chain, so here C′ adds costs, weighted with the probability of getting there.

The chains are then joined to a path as in Kruskal's algorithm (§4.2.5): pairs in the order of what
they save, each taken if its first chain has no successor yet, its second no predecessor, and no
path is closed. Pairs that share nothing save nothing: what is left joins as the chains came.

Cost: the paper looks at all pairs. Under Zipf's law the most popular predicate alone would give a
billion of them for 80,000 chains. Within the chains of one node, sorted by P / C, a pair saves the
more the farther apart it is, so that a path takes the first with the last, the second with the last
but one … Above GROUP_MAX chains only those pairs and neighbours are looked at, WINDOW to each side:
linear. Tests compare with all pairs.

A single new chain is put where it saves most against all chains that it is linked to.
"""

from __future__ import annotations

import numpy as np

from headgate.match.kernels import Ints, Longs
from headgate.operators.order_arrangement import Arrangement, clause_by_clause, sort_literals
from headgate.operators.order_chain_kernels import all_savings, join_path, list_pairs, ratios
from headgate.operators.order_clauses import FALSE, KNOWN, TRUE
from headgate.operators.order_estimates import Estimates
from headgate.operators.order_next_kernels import next_in_chains
from headgate.operators.order_table import ClauseTable, Floats

GROUP_MAX = 32
WINDOW = 4
INSERTIONS_MAX = 64
"""Up to so many new chains are inserted one by one; beyond that, the path is made anew."""


class SubOrder:
    """Remembers its path, so that a few new subscriptions are put into it where they belong."""

    def __init__(self, *, group_max: int = GROUP_MAX, window: int = WINDOW) -> None:
        self._group_max, self._window = group_max, window
        self._path: Ints = np.zeros(0, np.int32)  # keys of clauses

    def arrange(self, table: ClauseTable, estimates: Estimates) -> Arrangement:
        chains = Chains(table, estimates)
        kept = self._path[np.isin(self._path, table.keys)]
        if kept.size and table.clause_count - kept.size <= INSERTIONS_MAX:
            visit = np.searchsorted(table.keys, kept).astype(np.int32)
            for chain in np.flatnonzero(~np.isin(table.keys, kept)).tolist():
                visit = chains.insert(visit, chain)
        else:
            visit = chains.path(self._group_max, self._window)
        self._path = table.keys[visit]
        return Arrangement(chains.table, visit, clause_by_clause(next_in_chains))


class Chains:
    """The linked chains: the table with sorted clauses, and the probability and cost of nodes."""

    def __init__(self, table: ClauseTable, estimates: Estimates) -> None:
        selectivity, cost = estimates.selectivity(), estimates.cost()
        share = _satisfied(selectivity[table.predicates], table.wants)
        key = cost[table.predicates] / np.maximum(1 - share, 1e-12)
        self.table = sort_literals(table, key)
        self._shares = _satisfied(selectivity[self.table.predicates], self.table.wants)
        self._costs = cost[self.table.predicates]
        self._nodes: Longs = self.table.predicates.astype(np.int64) * 3 + self.table.wants
        self._chain_of = np.repeat(
            np.arange(table.clause_count, dtype=np.int32), self.table.lengths
        )

    def path(self, group_max: int, window: int) -> Ints:
        start = self.table.clause_start
        order = np.lexsort((-ratios(start, self._shares, self._costs), self._nodes))
        order = order[self.table.wants[order] != KNOWN]
        firsts = seconds = np.zeros(0, np.int32)
        count = list_pairs(order, self._nodes, self._chain_of, group_max, window, firsts, seconds)
        if count:
            firsts, seconds = np.empty(count, np.int32), np.empty(count, np.int32)
            list_pairs(order, self._nodes, self._chain_of, group_max, window, firsts, seconds)
        saved = self.savings(firsts, seconds)
        firsts, seconds = np.where(saved < 0, [seconds, firsts], [firsts, seconds])
        worth = np.flatnonzero(saved != 0)
        by_savings = worth[np.argsort(-np.abs(saved[worth]), kind="stable")]
        visit: Ints = join_path(self.table.clause_count, firsts, seconds, by_savings)
        return visit

    def savings(self, firsts: Ints, seconds: Ints) -> Floats:
        """What each first chain saves if it comes before the second one."""
        start = self.table.clause_start
        found: Floats = all_savings(firsts, seconds, start, self._nodes, self._shares, self._costs)
        return found

    def insert(self, visit: Ints, chain: int) -> Ints:
        """The path with one more chain, where it saves most; at the end if that is all the same."""
        start = self.table.clause_start
        own = self._nodes[start[chain] : start[chain + 1]]
        linked = np.zeros(self.table.clause_count, np.bool_)
        linked[self._chain_of[np.isin(self._nodes, own)]] = True
        places = np.flatnonzero(linked[visit])
        others = visit[places]
        saved = self.savings(np.full(others.size, chain, np.int32), others)
        # Before others[k] it saves against all from there on, and loses against those before.
        before = np.append(0.0, np.cumsum(saved))
        best = places.size - int(np.argmax((saved.sum() - 2 * before)[::-1]))
        place = visit.size if best == places.size else int(places[best])
        return np.insert(visit, place, chain)


def _satisfied(selectivity: Floats, wants: np.ndarray[tuple[int], np.dtype[np.int8]]) -> Floats:
    """The probability that a literal is as wanted."""
    return np.select([wants == TRUE, wants == FALSE], [selectivity, 1 - selectivity], 1.0)
