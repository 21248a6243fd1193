"""What any of many ranges contains: ranges that overlap or touch are one.

[1, 4]  [3, 6]  [8, 9]    ──►    [1, 6]  [8, 9]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.join.select.box_tree_kernels import Floats
from headgate.join.select.changes import Mask


@dataclass(frozen=True, slots=True, eq=False)
class UnionOfRanges:
    low: Floats
    high: Floats

    @classmethod
    def of(cls, low: Floats, high: Floats) -> UnionOfRanges:
        """Of ranges that are not empty, both ends of which belong to them.

        >>> found = UnionOfRanges.of(np.array([8.0, 1.0, 3.0]), np.array([9.0, 4.0, 6.0]))
        >>> found.low.tolist(), found.high.tolist()
        ([1.0, 8.0], [6.0, 9.0])
        """
        order = np.argsort(low, kind="stable")
        low, reach = low[order], np.maximum.accumulate(high[order])
        first = np.ones(low.size, np.bool_)
        first[1:] = low[1:] > reach[:-1]
        last = np.append(first[1:], True)[: low.size]
        return cls(low[first], reach[last])

    def contains(self, values: Floats) -> Mask:
        place = np.searchsorted(self.low, values, "right") - 1
        found: Mask = place >= 0
        if self.low.size:
            found &= values <= self.high[np.maximum(place, 0)]
        return found
