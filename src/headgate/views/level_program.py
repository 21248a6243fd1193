"""A configuration of tree patterns as arrays, ready to run level by level ([Delta §2.1, §4.1]).

Level 1 is what the source serves: all its patterns, as distinct steps (evaluate_patterns.py). Each
further level is rewritings, as joins of tables of levels before (rewriting_kernels.py).

    tables    ├ steps, children first ┤ joins of level 2 ┤ joins of level 3 ┤ …
    views     v0 ─► t17    v1 ─► t17    v2 ─► t40       which table has a view's tuples

What is shared: a table is made once however many views have it. Equal steps are one; so are joins
of the same tables in the same way; a view that is a copy of another one reads its table. Marks make
no difference to tables, as they hold identifiers only, and the text of a node belongs to its
identifier: texts are taken from the document once, for level 1 alone.

Law: a view's tuples are those of its pattern over the document (run_levels.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from headgate.views.encode_views import Longs, Vocabulary

Booleans = npt.NDArray[np.bool_]


class Steps(NamedTuple):
    """Table n is step n."""

    label: Longs  # [step]
    is_root: Booleans  # [step]: only the document's root fits
    predicate_start: Longs  # [step + 1]
    predicates: Longs  # [predicate, column]
    child_start: Longs  # [step + 1]
    child_table: Longs
    child_is_near: Booleans
    """Whether it is a child by '/'."""


class Joins(NamedTuple):
    """Table n is join n minus the number of steps; rewriting_kernels.py names the columns."""

    instance_start: Longs  # [join + 1]
    instances: Longs  # [instance, column]
    column_start: Longs  # [instance + 1]
    columns: Longs  # [column of an instance, column]
    edge_start: Longs  # [instance + 1]: what is tested when the instance has come
    edges: Longs
    residual_start: Longs
    residuals: Longs


class ViewTables(NamedTuple):
    """Where a view's tuples are, and which nodes of them are marked."""

    table: Longs  # [view]
    level: Longs  # [view]
    mark_start: Longs  # [view + 1]
    marks: Longs  # [mark, column]: the node's place in preorder, VAL or CONT


@dataclass(frozen=True, slots=True, eq=False)
class LevelProgram:
    """Its arrays cannot be written to, as those of a file: kernels are compiled once for both."""

    vocabulary: Vocabulary
    valued: Booleans
    """Of each label's number, whether the values of its nodes are compared."""
    steps: Steps
    joins: Joins
    views: ViewTables
    width: Longs  # [table]
    level_start: Longs
    """Where the tables of level 1, 2, … begin, and the end of the last."""

    @property
    def slot(self) -> Longs:
        """Where each table's indexes are: one for each column, and one by parents."""
        return np.concatenate([[0], np.cumsum(self.width + 1)])


Arrays = TypeVar("Arrays", Steps, Joins, ViewTables)


def frozen(arrays: Arrays) -> Arrays:
    for each in arrays:
        each.setflags(write=False)
    return arrays
