"""Which leaves of the graph items are in: one program for all leaves on a source (DESIGN.md §5).

Cost for a batch of items: that of the matcher, and one step for each leaf that an item is in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.match.batch import batch_of_items
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import compile_program
from headgate.model.filters import Filter
from headgate.model.schema import Schema
from headgate.windows.arrivals import Element

BATCH = 4_096


class LeafMatcher:
    """The leaves on one source. It has no state."""

    def __init__(self, leaves: Mapping[Filter, int], schema: Schema) -> None:
        self._matcher = ProgramMatcher(compile_program(list(leaves), schema))
        self._numbers = list(leaves.values())

    def match(self, elements: Sequence[Element]) -> dict[int, list[Element]]:
        """For each leaf, by its number in the graph, the items that are in it, in their order."""
        found: dict[int, list[Element]] = {}
        for start in range(0, len(elements), BATCH):
            some = elements[start : start + BATCH]
            program = self._matcher.program
            matches = self._matcher.match(batch_of_items([e.item for e in some], program.types))
            for at, element in enumerate(some):
                for leaf in matches.of(at).tolist():
                    found.setdefault(self._numbers[leaf], []).append(element)
        return found
