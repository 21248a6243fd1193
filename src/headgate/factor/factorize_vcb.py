"""VCA with the Very Clever Border ([RoSeS §5, Algorithm 1 and Fig. 6]), for a million filters.

    filter     its candidates, the most selective first        the border, as candidates are taken
    a b c      [b c]  a   b  c                                  a b c, b c d, a e, e f
    b c d      [b c]  b   c                                     bc ─┬─ a b c      a e, e f
    a e        [a]    e                                             └─ b c d
    e f        [e]                                              bc, e ─┬─ a e
                                                                       └─ e f

Law: the tree is the one that Algorithm 1 finds, with ties broken by the more specific candidate.

The paper keeps for each border node its best candidate and the siblings to be told when that is no
longer one, because the best candidate overall may come from anywhere. It cannot: a candidate that
enters with a new border node is implied by that node, so it is no more selective. And the border
nodes below a candidate only become fewer, so what has no benefit now never has. Candidates can
therefore be taken once, in the order of their selectivity (candidates.py), and each looks only at
its own members: what is left of the lists of best candidates and of siblings is one pass.

Then, beyond the paper, `improve`: Algorithm 1 puts a filter below the first candidate that wants
it. Every node goes below the most selective node there is by now, and inserted nodes go that cost
more than they spare, until nothing changes. The same is tried with more nodes to begin with: those
that together subsume most filters for least (`cover`), as STA takes them. The cheaper tree is
taken, so the cost never rises.

Cost: one subsumption test for each filter and candidate of it, in the sweep and in each round of
improving: seconds for a million filters of one to three clauses.
"""

from __future__ import annotations

import numpy as np

from headgate.factor.candidates import Candidates, find_candidates
from headgate.factor.factor_cost import PAPER, CostModel
from headgate.factor.factor_input import FactorInput
from headgate.factor.factor_tree import FactorTree
from headgate.factor.vcb_kernels import ABSENT, cover, improve, lists_of_filters, sweep
from headgate.match.kernels import Ints

ROUNDS_MAX = 8


def factorize_vcb(
    given: FactorInput,
    *,
    model: CostModel = PAPER,
    candidates: Candidates | None = None,
    rounds_max: int = ROUNDS_MAX,
) -> FactorTree:
    """The filter plan; with `rounds_max` 0 it is that of Algorithm 1."""
    found = find_candidates(given) if candidates is None else candidates
    filters = given.filter_count
    weight = np.ones(filters + found.count)
    weight[filters:] = model.weight(found.selectivity)
    is_filter = found.as_filter >= 0
    weight[found.as_filter[is_filter]] = weight[filters:][is_filter]
    parent = np.full(weight.size, ABSENT, np.int32)
    parent[:filters] = -1
    sets = (
        found.start,
        found.clauses,
        found.member_start,
        found.members,
        found.as_filter,
        given.implied_start,
        given.implied,
    )
    sweep(filters, *sets, weight, parent)
    if not rounds_max:
        return _tree(given, found, parent)
    list_start, lists = lists_of_filters(filters, found.member_start, found.members)
    rank = np.full(weight.size, -1, np.int64)
    rank[filters:] = np.arange(found.count)
    rank[found.as_filter[is_filter]] = np.nonzero(is_filter)[0]
    covered = parent.copy()
    members = found.member_start, found.members, found.as_filter
    cover(filters, *members, list_start, lists, weight, covered)
    trees = []
    for begun in (parent, covered):
        for _ in range(rounds_max):
            if not improve(filters, *sets, list_start, lists, weight, rank, begun):
                break
        trees.append(_tree(given, found, begun))
    return min(trees, key=lambda tree: tree.cost(model))


def _tree(given: FactorInput, found: Candidates, parent: Ints) -> FactorTree:
    """The nodes that are in the tree, the filters first."""
    filters = given.filter_count
    inserted = np.nonzero(parent[filters:] != ABSENT)[0]
    kept = np.concatenate([np.arange(filters), filters + inserted])
    number = np.full(parent.size + 1, -1, np.int32)  # the last one stands for `true`
    number[kept] = np.arange(kept.size, dtype=np.int32)
    lengths = np.diff(found.start)[inserted]
    start = np.zeros(kept.size + 1, np.int64)
    start[1 : filters + 1] = given.start[1:]
    np.cumsum(lengths, out=start[filters + 1 :])
    start[filters + 1 :] += given.start[-1]
    begins = np.repeat(found.start[inserted] - np.cumsum(lengths) + lengths, lengths)
    own = found.clauses[begins + np.arange(int(lengths.sum()))]
    clauses = np.concatenate([given.clauses, own])
    selectivity = given.selectivities.of_sets(start, clauses)
    return FactorTree(number[parent[kept]], start, clauses, selectivity, filters)
