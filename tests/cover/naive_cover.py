"""Covering without any structure: a new filter is compared with every root ([MBD §4.1]).

It is the oracle of the other two: whatever they answer is compared with this in the tests.

Cost: a call of `implies_filter` for each root, and one more where the new filter is not covered.
"""

from __future__ import annotations

from collections.abc import Sequence

from headgate.model.filters import Filter
from headgate.model.implies import implies_filter


class NaiveCover:
    """The roots, in a list. One writer at a time."""

    def __init__(self) -> None:
        self._roots: dict[int, Filter] = {}

    def insert(self, numbers: Sequence[int], filters: Sequence[Filter]) -> dict[int, int]:
        """See `Cover.insert`."""
        covered: dict[int, int] = {}
        for number, filter_ in zip(numbers, filters, strict=True):
            coverer = self._coverer(filter_)
            if coverer is not None:
                covered[number] = coverer
                continue
            within = [each for each, root in self._roots.items() if implies_filter(root, filter_)]
            for each in within:
                covered[each] = number
                del self._roots[each]
            self._roots[number] = filter_
        return covered

    def remove(self, number: int) -> None:
        del self._roots[number]

    def _coverer(self, filter_: Filter) -> int | None:
        result = (each for each, root in self._roots.items() if implies_filter(filter_, root))
        return next(result, None)
