"""A filter plan that is maintained as filters are added and removed ([RoSeS §8]).

    add      below the most selective node that subsumes the filter; if it and its siblings have
             clauses in common that are worth a node, that node is inserted (Algorithm 1, one
             filter)
    remove   the filter's node goes, or stays as an inserted node if its children are worth it

Invariant: the tree has just the filters that were added, each below a node that it implies.

[RoSeS §8] leaves open when to build a new tree, and says what is needed: the difference to a new
tree, without building it. Here it is estimated from the changed filters alone. A filter that was
added costs w(parent); the least that it could cost is w(x), where x is the most that it has in
common with any other filter. In a new tree the two differ as well, by some mean; the difference
beyond that mean is the loss. A removed filter may raise the cost of others: that is a loss, too.

        loss = (Σ added (w(parent) − w(x) − mean) + Σ costs raised) / cost

Cost: a new filter looks at the nodes that have one of its clauses: some thousands, by a few NumPy
operations, for a million filters of 200 words. A removed one looks at its children.

Rejected: maintaining the subsumption graph (§8). It has 2^n edges for a filter of n clauses; the
list of nodes for each clause (`Postings`) gives the same answer on demand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from headgate.factor.candidates import CandidateSets, find_candidates
from headgate.factor.clause_sets import ClauseSets
from headgate.factor.filter_tree import PAPER, CostModel, FilterTree, Predicate, benefit
from headgate.factor.selectivity import Selectivities
from headgate.factor.vcb import factorize_vcb
from headgate.match.bit_rows import Ints, Longs

GONE = -2
COMMON_MAX = 16
"""Of a filter so many clauses are looked at for what it has in common with others."""


class Postings:
    """For each clause the nodes that have it. Nodes are numbered in the order in which they are
    added."""

    def __init__(self, start: Longs, clauses: Ints, clause_count: int) -> None:
        lengths = np.diff(start)
        order = np.argsort(clauses, kind="stable")
        self._nodes = np.repeat(np.arange(lengths.size), lengths)[order]
        counts = np.bincount(clauses, minlength=clause_count)
        self._start = np.concatenate([[0], np.cumsum(counts)])
        self._lengths = lengths.tolist()
        self._since: defaultdict[int, list[int]] = defaultdict(list)

    def make_room(self, clause_count: int) -> None:
        """For clauses that are new: no node that was there has them."""
        more = clause_count + 1 - self._start.size
        self._start = np.concatenate([self._start, np.full(more, self._start[-1])])

    def append(self, clauses: Sequence[int]) -> None:
        """A further node."""
        for clause in clauses:
            self._since[clause].append(len(self._lengths))
        self._lengths.append(len(clauses))

    def with_clause(self, clause: int) -> Longs:
        old = self._nodes[self._start[clause] : self._start[clause + 1]]
        since = self._since.get(clause)
        return np.concatenate([old, np.array(since, np.int64)]) if since else old

    def in_common(self, clauses: Sequence[int]) -> tuple[Longs, Longs]:
        """The nodes that have some of the clauses, and which: bit n stands for clauses[n]."""
        listed = [self.with_clause(each) for each in clauses]
        bits = np.repeat(1 << np.arange(len(listed)), [each.size for each in listed])
        nodes, place = np.unique(np.concatenate(listed), return_inverse=True)
        masks = np.zeros(nodes.size, np.int64)
        np.bitwise_or.at(masks, place, bits)
        return nodes, masks

    def lengths(self, nodes: Longs) -> Longs:
        """How many clauses these nodes have."""
        return np.array([self._lengths[node] for node in nodes.tolist()], np.int64)


class IncrementalTree:
    """For one thread. Nodes are numbered as they come; a node that is gone is not used again."""

    def __init__(self, given: ClauseSets, *, model: CostModel = PAPER) -> None:
        candidates = find_candidates(given)
        tree = factorize_vcb(given, model=model, candidates=candidates)
        self._model = model
        self._known = given.selectivities
        self._predicates = [tree.predicate(node) for node in range(tree.parent.size)]
        self._node_of = {each: node for node, each in enumerate(self._predicates)}
        self._weight = model.weight(tree.selectivity).tolist()
        self._parent = _Growing(tree.parent)
        self._children = np.bincount(tree.parent + 1, minlength=tree.parent.size + 1)[1:].tolist()
        self._first = np.argsort(tree.parent, kind="stable")[np.count_nonzero(tree.parent < 0) :]
        self._first_start = np.cumsum([0, *self._children])
        self._since: defaultdict[int, list[int]] = defaultdict(list)
        self._asked = [0] * tree.parent.size
        for filter_ in given.distinct.tolist():
            self._asked[filter_] += 1
        self._postings = Postings(tree.start, tree.clauses, given.selectivities.single.size)
        self._cost = tree.cost(model)
        self._regret: dict[int, float] = {}
        self._lost, self._mean = 0.0, _mean_regret(tree, candidates, model)

    @property
    def cost(self) -> float:
        """What the tree costs now, in the model's evaluations."""
        return self._cost

    def estimated_loss(self) -> float:
        """By what share a tree that was built anew would be cheaper, as an estimate."""
        return max(self._lost, 0.0) / self._cost if self._cost else 0.0

    def learn(self, known: Selectivities) -> None:
        """What is known of clauses that are new; the old ones keep their numbers."""
        assert known.single.size >= self._known.single.size
        self._known = known
        self._postings.make_room(known.single.size)

    def add(self, predicate: Predicate) -> None:
        """A filter comes: its clauses, ascending, none of which implies another."""
        node = self._node_of.get(predicate)
        if node is not None:
            self._asked[node] += 1
            return
        clauses = predicate[:COMMON_MAX]
        nodes, masks = self._postings.in_common(clauses)
        alive = self._parent.array[nodes] != GONE
        nodes, masks = nodes[alive], masks[alive]
        above = self._best_above(predicate, nodes, masks)
        node = self._insert(predicate, above, asked=1)
        self._share(node, nodes, masks)
        price = self._weight_above(node)
        common = {int(mask) for mask in np.unique(masks)}
        least = min((self._weight_of(_chosen(clauses, mask)) for mask in common), default=1.0)
        self._regret[node] = price - min(price, least) - self._mean
        self._lost += self._regret[node]

    def remove(self, predicate: Predicate) -> None:
        """A filter goes; it must be there."""
        node = self._node_of[predicate]
        assert self._asked[node] > 0, f"{predicate} is no filter of the tree"
        self._asked[node] -= 1
        if not self._asked[node]:
            self._lost -= self._regret.pop(node, 0.0)
        self._drop_if_useless(node)

    def tree(self, start: Longs, clauses: Ints) -> FilterTree:
        """The tree as it is, with the filters in this order: they must be all that there are."""
        predicates = [
            tuple(clauses[at:end].tolist())
            for at, end in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
        ]
        asked = [self._node_of[each] for each in predicates]
        living = np.nonzero(self._parent.array != GONE)[0].tolist()
        wanted = set(asked)
        kept = asked + [node for node in living if node not in wanted]
        number = {node: at for at, node in enumerate(kept)} | {-1: -1}
        parent = np.array([number[int(self._parent.array[node])] for node in kept], np.int32)
        sets = [self._predicates[node] for node in kept]
        own_start = np.cumsum([0, *map(len, sets)])
        flat = np.array([clause for each in sets for clause in each], np.int32)
        share = self._known.of_sets(own_start, flat)
        return FilterTree(parent, own_start, flat, share, len(asked))

    def _best_above(self, predicate: Predicate, nodes: Longs, masks: Longs) -> int:
        """The most selective node whose clauses are all among these; −1 is `true`."""
        common = np.bitwise_count(masks)
        best, least = -1, 1.0
        for node in nodes[common == self._postings.lengths(nodes)].tolist():
            if self._weight[node] < least:
                best, least = node, self._weight[node]
        assert best < 0 or set(self._predicates[best]) <= set(predicate)
        return best

    def _share(self, node: int, nodes: Longs, masks: Longs) -> None:
        """Move siblings below the new node where it subsumes them, and insert the node between them
        and their parent that has the greatest benefit."""
        above = int(self._parent.array[node])
        beside = self._parent.array[nodes] == above
        nodes, masks = nodes[beside], masks[beside]
        predicate = self._predicates[node]
        whole = (1 << len(predicate)) - 1
        if len(predicate) <= COMMON_MAX:
            for each in nodes[masks == whole].tolist():
                self._move(each, node)
        nodes, masks = nodes[masks != whole], masks[masks != whole]
        best, gain = None, 0.0
        for mask in np.unique(masks).tolist():
            chosen = _chosen(predicate, mask)
            below = nodes[(masks & mask) == mask]
            own = benefit(below.size + 1, self._weight_of_node(above), self._weight_of(chosen))
            if own > gain and chosen not in self._node_of:
                best, gain = (chosen, below), own
        if best is not None:
            chosen, below = best
            inserted = self._insert(chosen, above, asked=0)
            for each in (node, *below.tolist()):
                self._move(each, inserted)

    def _insert(self, predicate: Predicate, above: int, *, asked: int) -> int:
        node = len(self._predicates)
        self._predicates.append(predicate)
        self._node_of[predicate] = node
        self._weight.append(self._weight_of(predicate))
        self._children.append(0)
        self._asked.append(asked)
        self._parent.append(above)
        self._postings.append(predicate)
        self._cost += self._weight_of_node(above)
        if above >= 0:
            self._children[above] += 1
            self._since[above].append(node)
        return node

    def _move(self, node: int, above: int) -> None:
        before = int(self._parent.array[node])
        self._cost += self._weight_of_node(above) - self._weight_of_node(before)
        self._parent.array[node] = above
        if before >= 0:
            self._children[before] -= 1
        if above >= 0:
            self._children[above] += 1
            self._since[above].append(node)

    def _drop_if_useless(self, node: int) -> None:
        """A node that nobody asks for goes where its children cost less without it; then the one
        above it may be useless, too."""
        while node >= 0 and not self._asked[node]:
            above, count = int(self._parent.array[node]), self._children[node]
            price, own = self._weight_of_node(above), self._weight[node]
            if count and benefit(count, price, own) >= 0:
                return
            for child in self._children_of(node) if count else ():
                self._move(child, above)
            self._lost += count * (price - own) - price if count else 0.0
            self._parent.array[node] = GONE
            self._cost -= price
            del self._node_of[self._predicates[node]]
            if above >= 0:
                self._children[above] -= 1
            node = above

    def _children_of(self, node: int) -> list[int]:
        """Those that were there from the beginning, and those that came; some have left since."""
        near = dict.fromkeys(self._since.get(node, ()))
        if node + 1 < self._first_start.size:
            start, end = self._first_start[node : node + 2].tolist()
            near |= dict.fromkeys(self._first[start:end].tolist())
        return [each for each in near if self._parent.array[each] == node]

    def _weight_above(self, node: int) -> float:
        return self._weight_of_node(int(self._parent.array[node]))

    def _weight_of_node(self, node: int) -> float:
        return self._weight[node] if node >= 0 else 1.0

    def _weight_of(self, predicate: Predicate) -> float:
        start = np.array([0, len(predicate)])
        return float(
            self._model.weight(self._known.of_sets(start, np.array(predicate, np.int32)))[0]
        )


class _Growing:
    """An array that grows at its end; what is appended one by one is copied rarely."""

    def __init__(self, values: Ints) -> None:
        self._room = values.astype(np.int32, copy=True)
        self._size = values.size

    @property
    def array(self) -> Ints:
        return self._room[: self._size]

    def append(self, value: int) -> None:
        if self._size == self._room.size:
            self._room = np.concatenate([self._room, np.empty(self._size + 64, np.int32)])
        self._room[self._size] = value
        self._size += 1


def _chosen(clauses: Sequence[int], mask: int) -> Predicate:
    return tuple(clause for at, clause in enumerate(clauses) if (mask >> at) & 1)


def _mean_regret(tree: FilterTree, candidates: CandidateSets, model: CostModel) -> float:
    """What a filter of a new tree costs more than the least that it could cost, in the mean."""
    if not tree.filter_count:
        return 0.0
    lengths = np.diff(candidates.members.start)
    others = candidates.members.values != np.repeat(candidates.as_filter, lengths)
    weights = np.repeat(model.weight(candidates.selectivity), lengths)
    least = np.ones(tree.filter_count)
    np.minimum.at(least, candidates.members.values[others], weights[others])
    above = np.append(tree.selectivity, 1.0)[tree.parent[: tree.filter_count]]
    prices = model.weight(above)
    return float(np.mean(prices - np.minimum(prices, least)))
