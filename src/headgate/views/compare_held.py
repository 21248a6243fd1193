"""Do views hold the same of a document, however they were served?"""

from __future__ import annotations

import numpy as np

from headgate.model.tree_pattern import Mark
from headgate.views.encode_views import Ints
from headgate.views.run_levels import MARKS, HeldTuples


def differing_views(one: HeldTuples, judge: HeldTuples) -> list[int]:
    """The views that have other tuples or other texts in one than in the judge's answer.

    Both are of the same views over the same document; the judge has all texts that views mark. A
    view that was refused has no answer to compare: `refused` tells it.
    """
    same: dict[tuple[int, int], bool] = {}
    missing = {mark: _differing_nodes(one, judge, mark) for mark in MARKS.values()}
    found = []
    tables = zip(one.program.views.table.tolist(), judge.program.views.table.tolist(), strict=True)
    for view, pair in enumerate(tables):
        if pair not in same:
            same[pair] = _same_tuples(one, judge, *pair)
        if not same[pair] or _marks_one_of(missing, one, view):
            found.append(view)
    return found


def _same_tuples(one: HeldTuples, judge: HeldTuples, table: int, other: int) -> bool:
    if one.rows[table] < 0 or judge.rows[other] < 0:
        return True
    if one.rows[table] != judge.rows[other]:
        return False
    left, right = one.numbers(table), judge.numbers(other)
    return np.array_equal(left, right) or np.array_equal(_sorted(left), _sorted(right))


def _sorted(numbers: Ints) -> Ints:
    return numbers[np.lexsort(numbers.T)]


def _differing_nodes(one: HeldTuples, judge: HeldTuples, mark: Mark) -> set[int]:
    return {n for n, text in judge.texts[mark].items() if one.texts[mark].get(n) != text}


def _marks_one_of(nodes: dict[Mark, set[int]], held: HeldTuples, view: int) -> bool:
    if not any(nodes.values()):
        return False
    views = held.program.views
    numbers = held.numbers(int(views.table[view]))
    own = slice(*views.mark_start[view : view + 2].tolist())
    return any(
        not nodes[MARKS[code]].isdisjoint(numbers[:, column].tolist())
        for column, code in views.marks[own].tolist()
    )
