"""The Sub-Order order: visit subscriptions in the sequence that saves most, by linked chains.

[Operators §4.2]. A clause is a *chain* of literals, sorted by cost / (1 − selectivity), so that the
literal most likely to fail for its cost comes first. Literals of different chains are linked if
they are the same predicate with the same requirement. Because one key sorts all chains, links never
cross:

    S1   a ── b ── d            a < b < c < d < e  by cost / (1 − selectivity)
              │    │
    S2   ──── b ── d ── e

Evaluating S1 before S2 rather than after it saves (§4.2.4)

    Σ over links l   (1 − p_l) · (P_1,l · C′_2,l − P_2,l · C′_1,l)

P is the probability that all literals before the link are true, C′ the expected cost of those
before it that the other chain does not share. With C′ over the probabilities of unshared literals
as well, the formula is exact for any number of links and any costs; a test compares it with the
expected costs of both sequences. The single-link form of the paper is a special case. For different
costs the paper multiplies each p by its predicate's cost (§4.3), which would multiply costs with
each other along a chain; here C′ adds costs, weighted with the probability of reaching them.

The chains are then joined to a path as in Kruskal's algorithm (§4.2.5): pairs in descending order
of savings, each taken if its first chain has no successor yet, its second no predecessor, and no
cycle is closed. Pairs that share nothing save nothing: the rest is joined in the order of
registration.

Cost: the paper looks at all pairs. With Zipf popularity the most popular predicate alone would give
a billion pairs for 80,000 chains. Among the chains of one literal, sorted by P / C, a pair saves
the more the farther apart it is, so a path takes the first with the last, the second with the last
but one, and so on. Above GROUP_MAX chains only those pairs and direct neighbours are looked at,
WINDOW to each side, which is linear. Tests compare with all pairs.

A few new chains are inserted into the known path, each where it saves most against the chains that
it is linked to.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.match.bit_rows import Ints, Longs
from headgate.operators.orders.clause_table import Bytes, ClauseTable, Floats
from headgate.operators.orders.clauses import FALSE, KNOWN, TRUE
from headgate.operators.orders.estimates import PredicateEstimates
from headgate.operators.orders.evaluator import ChooseNext, PreparedOrder
from headgate.operators.orders.item_evaluations import ItemEvaluations
from headgate.operators.orders.item_kernels import UNDECIDED, first_unknown, one_node_each

GROUP_MAX = 32
WINDOW = 4
INSERTIONS_MAX = 64
"""Up to so many new chains are inserted one by one; for more, the path is computed anew."""


class SubOrder:
    """Remembers its path, so that a few new subscriptions can be inserted into it."""

    name = "sub-order"

    def __init__(self, *, group_max: int = GROUP_MAX, window: int = WINDOW) -> None:
        self._group_max, self._window = group_max, window
        self._path: Ints = np.zeros(0, np.int32)  # keys of clauses

    def prepare(self, table: ClauseTable, estimates: PredicateEstimates) -> PreparedOrder:
        chains = Chains(table, estimates)
        kept = self._path[np.isin(self._path, table.keys)]
        if kept.size and table.clause_count - kept.size <= INSERTIONS_MAX:
            visit = np.searchsorted(table.keys, kept).astype(np.int32)
            for chain in np.flatnonzero(~np.isin(table.keys, kept)).tolist():
                visit = chains.insert(visit, chain)
        else:
            visit = chains.path(self._group_max, self._window)
        self._path = table.keys[visit]
        return PreparedOrder(chains.table, visit, _begin)


def _begin(evaluations: ItemEvaluations) -> ChooseNext:
    graphs, state = evaluations.graphs, evaluations.state
    current_slot = state.slot_start[:-1].copy()

    def choose_next(items: Ints) -> tuple[Ints, Ints]:
        return one_node_each(items, next_in_chains(graphs, state, items, current_slot))

    return choose_next


class ChainArrays(NamedTuple):
    """Chains as the kernels take them."""

    start: Ints  # [chain + 1]: the first literal of each chain
    literals: Longs  # [literal]: predicate and requirement, as one number
    shares: Floats  # [literal]: the probability that it is as required
    costs: Floats  # [literal]


class Chains:
    """The table with sorted literals, and the probability and cost of each literal."""

    def __init__(self, table: ClauseTable, estimates: PredicateEstimates) -> None:
        selectivity, cost = estimates.selectivity(), estimates.cost()
        share = _probabilities_satisfied(selectivity[table.predicates], table.wants)
        key = cost[table.predicates] / np.maximum(1 - share, 1e-12)
        self.table = sort_literals(table, key)
        self._arrays = ChainArrays(
            self.table.clause_start,
            self.table.predicates.astype(np.int64) * 3 + self.table.wants,
            _probabilities_satisfied(selectivity[self.table.predicates], self.table.wants),
            cost[self.table.predicates],
        )
        self._chain_of = np.repeat(
            np.arange(table.clause_count, dtype=np.int32), self.table.lengths
        )

    def path(self, group_max: int, window: int) -> Ints:
        """All chains, in the sequence of the path."""
        literals = self._arrays.literals
        order = np.lexsort((-ratios(self._arrays), literals))
        order = order[self.table.wants[order] != KNOWN]
        limits = group_max, window
        pairs = np.empty((2, 0), np.int32)
        pairs = np.empty((2, list_pairs(order, literals, self._chain_of, limits, pairs)), np.int32)
        list_pairs(order, literals, self._chain_of, limits, pairs)
        firsts, seconds = pairs
        saved = self.savings(firsts, seconds)
        firsts, seconds = np.where(saved < 0, [seconds, firsts], [firsts, seconds])
        worth = np.flatnonzero(saved != 0)
        by_savings = worth[np.argsort(-np.abs(saved[worth]), kind="stable")]
        visit: Ints = join_path(self.table.clause_count, firsts, seconds, by_savings)
        return visit

    def savings(self, firsts: Ints, seconds: Ints) -> Floats:
        """How much each first chain saves if it comes before the second one."""
        saved: Floats = all_savings(firsts, seconds, self._arrays)
        return saved

    def insert(self, visit: Ints, chain: int) -> Ints:
        """The path with one more chain where it saves most, or at the end if it saves nothing."""
        start, literals = self._arrays.start, self._arrays.literals
        chain_literals = literals[start[chain] : start[chain + 1]]
        linked = np.zeros(self.table.clause_count, np.bool_)
        linked[self._chain_of[np.isin(literals, chain_literals)]] = True
        places = np.flatnonzero(linked[visit])
        linked_chains = visit[places]
        saved = self.savings(np.full(linked_chains.size, chain, np.int32), linked_chains)
        # Before others[k] it saves against all from there on, and loses against those before.
        before = np.append(0.0, np.cumsum(saved))
        best = places.size - int(np.argmax((saved.sum() - 2 * before)[::-1]))
        place = visit.size if best == places.size else int(places[best])
        return np.insert(visit, place, chain)


def _probabilities_satisfied(selectivity: Floats, required: Bytes) -> Floats:
    """The probability that a literal is as required."""
    return np.select([required == TRUE, required == FALSE], [selectivity, 1 - selectivity], 1.0)


def sort_literals(table: ClauseTable, key: Floats) -> ClauseTable:
    """The table with the literals of every clause sorted by key, then by predicate."""
    clause = np.repeat(np.arange(table.clause_count), table.lengths)
    order = np.lexsort((table.predicates, key, clause))
    counts = np.diff(table.test_start)[order]
    starts = np.zeros(counts.size + 1, np.int32)
    np.cumsum(counts, out=starts[1:])
    tests = np.repeat(table.test_start[:-1][order] - starts[:-1], counts) + np.arange(starts[-1])
    return replace(
        table,
        predicates=table.predicates[order],
        wants=table.wants[order],
        test_start=starts,
        test_columns=table.test_columns[tests],
        test_relations=table.test_relations[tests],
        test_constants=table.test_constants[tests],
    )


@nb.njit(nogil=True, cache=True)
def next_in_chains(graphs, state, items, current_slot):  # type: ignore[no-untyped-def]
    """The first unknown node of the first undecided slot.

    items         int32 [n]     the items that choose
    current_slot  int32 [item]  in and out: the slot that each item has reached
    returns       int32 [n]     a node for each, or -1 where nothing is left to evaluate
    """
    edge_start, edges = graphs.clause_edge_start, graphs.clause_edges
    slot_offset, node_offset = state.slot_offset, state.node_offset
    verdicts, slot_start, answers = state.verdicts, state.slot_start, state.answers
    chosen = np.full(items.shape[0], -1, np.int32)
    for n in range(items.shape[0]):
        item = items[n]
        slot, end = current_slot[item], slot_start[item + 1]
        while slot < end and verdicts[slot] != UNDECIDED:
            slot += 1
        current_slot[item] = slot
        if slot < end:
            clause = slot - slot_offset[item]
            first, last = edge_start[clause], edge_start[clause + 1]
            chosen[n] = first_unknown(edges, first, last, node_offset[item], answers)
    return chosen


@nb.njit(nogil=True, cache=True)
def is_in(literal, chain):  # type: ignore[no-untyped-def]
    for chain_literal in chain:  # noqa: SIM110 - any() is no kernel
        if chain_literal == literal:
            return True
    return False


@nb.njit(nogil=True, cache=True)
def reach_and_cost(chain, shares, costs, end, other_chain):  # type: ignore[no-untyped-def]
    """P: the probability to reach place `end`; C′: the cost until then of unshared literals."""
    reach, unshared_reach, cost = 1.0, 1.0, 0.0
    for place in range(end):
        reach *= shares[place]
        if not is_in(chain[place], other_chain):
            cost += costs[place] * unshared_reach
            unshared_reach *= shares[place]
    return reach, cost


@nb.njit(nogil=True, cache=True)
def savings(first, second, chains):  # type: ignore[no-untyped-def]
    """How much less it costs to evaluate the first chain before the second than after it."""
    start, literals, shares, costs = chains
    left, right = slice(start[first], start[first + 1]), slice(start[second], start[second + 1])
    total = 0.0
    for a in range(left.stop - left.start):
        for b in range(right.stop - right.start):
            if literals[left.start + a] == literals[right.start + b]:
                reach_1, cost_1 = reach_and_cost(
                    literals[left], shares[left], costs[left], a, literals[right]
                )
                reach_2, cost_2 = reach_and_cost(
                    literals[right], shares[right], costs[right], b, literals[left]
                )
                total += (1 - shares[left.start + a]) * (reach_1 * cost_2 - reach_2 * cost_1)
    return total


@nb.njit(nogil=True, cache=True)
def all_savings(firsts, seconds, chains):  # type: ignore[no-untyped-def]
    """float64 [pair]: the savings of each pair of chains."""
    saved = np.empty(firsts.shape[0])
    for n in range(firsts.shape[0]):
        saved[n] = savings(firsts[n], seconds[n], chains)
    return saved


@nb.njit(nogil=True, cache=True)
def ratios(chains):  # type: ignore[no-untyped-def]
    """float64 [literal]: P / C; the higher, the earlier its chain should come (§4.2.4)."""
    start, _, shares, costs = chains
    ratio = np.empty(shares.shape[0])
    for chain in range(start.shape[0] - 1):
        reach, cost = 1.0, 0.0
        for place in range(start[chain], start[chain + 1]):
            ratio[place] = reach / cost if cost > 0 else np.inf
            cost += costs[place] * reach
            reach *= shares[place]
    return ratio


@nb.njit(nogil=True, cache=True)
def list_pairs(order, literals, chain_of, limits, pairs):  # type: ignore[no-untyped-def]
    """Write the pairs of chains to look at, and return how many; without room it only counts.

    order     int64 [n]        literals sorted, equal ones by descending ratio
    chain_of  int32 [literal]
    limits    (GROUP_MAX, WINDOW)
    pairs     int32 [2, pair]  out
    """
    group_max, window = limits
    count = 0
    write = pairs.shape[1] > 0
    begin = 0
    while begin < order.shape[0]:
        end = begin
        while end < order.shape[0] and literals[order[end]] == literals[order[begin]]:
            end += 1
        is_small = end - begin <= group_max
        for place in range(begin, end):
            opposite = begin + end - 1 - place
            for second in range(place + 1, end):
                if not is_small and second > place + window and abs(second - opposite) > window:
                    if second > opposite:
                        break
                    continue
                if write:
                    pairs[0, count] = chain_of[order[place]]
                    pairs[1, count] = chain_of[order[second]]
                count += 1
        begin = end
    return count


@nb.njit(nogil=True, cache=True)
def join_path(count, firsts, seconds, order):  # type: ignore[no-untyped-def]
    """Join chains to paths by Kruskal's rule, taking the pairs in `order`; int32 [chain]."""
    after = np.full(count, -1, np.int32)
    before = np.full(count, -1, np.int32)
    root = np.arange(count)
    for pair in order:
        u, v = firsts[pair], seconds[pair]
        if after[u] >= 0 or before[v] >= 0:
            continue
        first_root, second_root = u, v
        while root[first_root] != first_root:
            root[first_root] = root[root[first_root]]
            first_root = root[first_root]
        while root[second_root] != second_root:
            root[second_root] = root[root[second_root]]
            second_root = root[second_root]
        if first_root != second_root:
            root[first_root] = second_root
            after[u], before[v] = v, u
    visit = np.empty(count, np.int32)
    place = 0
    for head in range(count):
        if before[head] < 0:
            chain = head
            while chain >= 0:
                visit[place] = chain
                place += 1
                chain = after[chain]
    return visit
