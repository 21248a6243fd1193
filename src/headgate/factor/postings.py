"""For each clause the nodes that have it: how a filter finds those it has something in common with.

    clause 3   nodes 0, 4, 9         of a tree that was built: one array for all clauses
               nodes 12, 15          that came since: a list for each clause

Cost: a filter of n clauses looks at the nodes of these n clauses; nodes that came since are few.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from headgate.match.kernels import Ints, Longs


class Postings:
    """Nodes are numbered as they come."""

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
