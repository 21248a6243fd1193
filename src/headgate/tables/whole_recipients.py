"""Which subscriptions have a result of a join of many tables: those whose box contains it.

The boxes are those of two tables, as files and trees have them (`stored_boxes.py`): the first table
is the left one, and all others together are the right one. A result is asked for as a message is
that selects its left part and has its right part as the only pair.

While a result is being joined, some of its values are not known yet: NaN. Then the question is
whether there is a box that contains the others.
"""

from __future__ import annotations

import numpy as np

from headgate.tables import change_kernels as columns
from headgate.tables.audience import Audience
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.changes import Mask
from headgate.tables.dispatch import recipient_lines
from headgate.tables.messages import Kind, Table
from headgate.tables.recipient_kernels import mark_wanted_points


def are_wanted(points: Floats, audience: Audience) -> Mask:
    """Whether any subscription contains each point as far as it is known."""
    found = np.empty(len(points), np.bool_)
    mark_wanted_points(points, audience.trees[0], audience.questions[0], found)
    return found


def subscriptions_with(
    points: Floats, audience: Audience, dimensions: tuple[int, int]
) -> tuple[Longs, Longs]:
    """Pairs of a result and a subscription that has it; points are [result, attribute]."""
    left, right = dimensions
    numbers = np.hstack([points, points[:, left:]])
    header = np.zeros((len(points), columns.HEADER), np.int64)
    header[:, columns.MESSAGE_KIND] = Kind.INSERT
    header[:, columns.OWN_SIDE] = header[:, columns.ROW_SIDE] = Table.LEFT
    header[:, columns.PARTNER] = -1
    header[:, columns.START] = np.arange(len(points)) * (left + 2 * right)
    header[:, columns.PAIRS] = 1
    found = recipient_lines(audience, dimensions, header, np.ascontiguousarray(numbers).ravel())
    return found[:, 1], found[:, 0]
