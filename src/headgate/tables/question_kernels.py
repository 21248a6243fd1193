"""Questions to the tree of subscriptions about one tuple and the rows that it joins with.

A question is a bound below and above for each coordinate of `box_tree_kernels.py`. It is made from
the tuple (who selects it?) and then narrowed by what is asked about ranges on the other table.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from headgate.tables.box_tree_kernels import (
    Excluded,
    Floats,
    Longs,
    greatest,
    is_one_there,
)
from headgate.tables.table_kernels import first_at_least


class Question(NamedTuple):
    """What is asked of the tree, and room for asking."""

    least: Floats  # [2 · dimensions]
    most: Floats
    none: Excluded
    stack: Longs
    found: Longs  # [point]
    first: int  # the other table's first dimension


@nb.njit(nogil=True, cache=True)
def ask_all(question):  # type: ignore[no-untyped-def]
    """Forget all conditions."""
    question.least[:] = -np.inf
    question.most[:] = np.inf


@nb.njit(nogil=True, cache=True)
def ask_containing(question, first, values):  # type: ignore[no-untyped-def]
    """Ask only for those whose ranges contain the values, from dimension `first` on."""
    half = question.least.shape[0] // 2
    for d in range(values.shape[0]):
        question.most[first + d] = values[d]
        question.least[half + first + d] = values[d]


@nb.njit(nogil=True, cache=True)
def ask_range(question, low_least, low_most, high_least, high_most):  # type: ignore[no-untyped-def]
    """Ask for such ranges on the other table's first attribute."""
    low, high = question.first, question.least.shape[0] // 2 + question.first
    question.least[low], question.most[low] = low_least, low_most
    question.least[high], question.most[high] = high_least, high_most


@nb.njit(nogil=True, cache=True)
def is_there(question, tree, excluded):  # type: ignore[no-untyped-def]
    return is_one_there(tree, question.least, question.most, excluded, question.stack)


@nb.njit(nogil=True, cache=True)
def value_at(index, place):  # type: ignore[no-untyped-def]
    return index.value[index.pool[place], 0]


@nb.njit(nogil=True, cache=True)
def mark_wanted(tree, question, excluded, other, join, wanted):  # type: ignore[no-untyped-def]
    """Which of the joining rows are in the range of someone the question asks for; whether any is.

    The union of these ranges is walked from left to right: the range that contains this row and
    reaches farthest tells how many rows are wanted; if there is none, the range that begins next
    tells where to go on. So there are two questions for each piece of the union, whatever the
    number of subscriptions.
    """
    begin, size = other.start[join], other.size[join]
    wanted[:size] = False
    if size == 0:
        return False
    if other.value.shape[1] > 1:
        some = False
        for at in range(size):
            ask_containing(question, question.first, other.value[other.pool[begin + at]])
            wanted[at] = is_there(question, tree, excluded)
            some |= wanted[at]
        return some
    low, high = question.first, question.least.shape[0] // 2 + question.first
    at, some, last = 0, False, value_at(other, begin + size - 1)
    while at < size:
        value = value_at(other, begin + at)
        ask_range(question, -np.inf, value, value, np.inf)
        found, reach = greatest(
            tree, question.least, question.most, excluded, high, 1.0, last, question.stack
        )
        if found:
            some = True
            while at < size and value_at(other, begin + at) <= reach:
                wanted[at] = True
                at += 1
            continue
        ask_range(question, np.nextafter(value, np.inf), last, np.nextafter(value, np.inf), np.inf)
        found, start = greatest(
            tree, question.least, question.most, excluded, low, -1.0, np.inf, question.stack
        )
        if not found:
            break
        at = first_at_least(other, join, -start) - begin
    return some
