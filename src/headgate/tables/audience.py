"""Whom a server tells: subscriptions as arrays, and the scheme by which they are told.

A server has one audience of its own, all its subscriptions. It can serve another one beside it from
the same rows: those who want join results as items, say, while relays get semijoins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.tables.box_tree_kernels import STACK, Excluded, Floats, Tree
from headgate.tables.messages import Table
from headgate.tables.question_kernels import Question
from headgate.tables.schemes import JoinScheme


@dataclass(frozen=True, slots=True, eq=False)
class Audience:
    trees: tuple[Tree, ...]
    """The subscriptions, ordered for questions about changes of either table."""
    questions: tuple[Question, ...]
    anchors: tuple[Floats, ...]
    scheme: JoinScheme

    @classmethod
    def of(
        cls,
        dimensions: tuple[int, int],
        trees: tuple[Tree, ...],
        anchors: tuple[Floats, ...],
        scheme: JoinScheme,
    ) -> Audience:
        questions = tuple(question(dimensions, table, trees[table]) for table in Table)
        return cls(trees, questions, anchors, scheme)


def question(dimensions: tuple[int, int], own: Table, tree: Tree) -> Question:
    """Room for asking who is affected by tuples of a table."""
    width, other = 2 * sum(dimensions), 0 if own is Table.RIGHT else dimensions[0]
    none = Excluded(np.empty((0, dimensions[own])), 0)
    found = np.empty(len(tree.points), np.int64)
    stack = np.empty((STACK, 3), np.int64)
    return Question(np.empty(width), np.empty(width), none, stack, found, other)
