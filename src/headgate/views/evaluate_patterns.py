"""Many patterns over one document in one pass, each distinct step once ([Delta §4.1, §5.5]).

Subtrees of patterns that ask for the same are one *step*, whatever their marks (canonical.py puts
children in the order in which most are the same). The table of a step has a line for each way to
embed its subtree, with the numbers of the nodes. Steps are computed children first, so that each
finds the tables of its children ready:

    //item[name]/mailbox/mail      mail ─► mailbox[mail] ─► item[name][mailbox[mail]]
    //item[name {val}]             name ─────────────────► item[name]

A table is sorted by the number of its topmost node. What lies below a node is a range of numbers,
hence of lines; children by '/' are those of the range whose parent it is, a range in the order of
parents. So what is below a node is found by binary search (step_kernels.py).

Law: the tuples are those of evaluate_naive. An element's text is asked for only where a predicate
or a mark needs it, and once for all patterns.

Cost: the sum of the tables, which is what the views hold, and no more than the patterns ask for: a
node has lines only if all its children have some. What is too large is refused, as documents come
from strangers. Rejected: one XPath for each view, which cannot return tuples.

It is a level program without rewritings (run_levels.py): all views are of level 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.model.tree_pattern import PatternNode
from headgate.views.compile_levels import compile_levels
from headgate.views.document import Document
from headgate.views.run_levels import LevelRunner, RoomLimits
from headgate.views.view_tuples import ViewTuples


class PatternSet:
    """Patterns, compiled together. One thread at a time."""

    def __init__(self, patterns: Sequence[PatternNode], limits: RoomLimits | None = None) -> None:
        self.patterns = list(patterns)
        self._runner = LevelRunner(compile_levels(self.patterns), limits)

    @property
    def steps(self) -> range:
        """The numbers of the distinct steps."""
        return range(len(self._runner.program.steps.label))

    def evaluate(self, document: Document) -> list[ViewTuples]:
        """The tuples of each pattern, in the order of the patterns."""
        held = self._runner.run(document)
        return [held.view(number) for number in range(len(self.patterns))]
