"""Subscriptions as boxes: a range for each selection attribute of either table (§2.2).

    from Stocks join Reviews on Symbol          attributes   PER          Rating
    where PER between 45 and 70                 box          [45, 70]  ×  [6, ∞)
    and Rating >= 6

Ranges are closed. An attribute without a condition has the range [−∞, ∞], which also contains the
value −∞ that stands for a missing one; a condition never does, so its bounds are finite or ∞: at
least the least finite number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headgate.model.errors import InvalidValue
from headgate.tables.box_tree_kernels import Floats, Longs

MISSING = -math.inf
LEAST = -float(np.finfo(np.float64).max)
"""The lower bound of a condition that has none, as `PER <= 70`."""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Bounds are [subscription, attribute], the attributes of the left table first.

    A number stands for a subscription. Numbers are small and may be used again after its end.
    """

    numbers: Longs
    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        if self.low.shape != self.high.shape or len(self.low) != len(self.numbers):
            raise InvalidValue(
                f"bounds do not fit: {len(self.numbers)} subscriptions, lower bounds "
                f"{self.low.shape}, upper bounds {self.high.shape}"
            )
        if np.isnan(self.low).any() or np.isnan(self.high).any():
            at = int(np.argmax((np.isnan(self.low) | np.isnan(self.high)).any(axis=1)))
            raise InvalidValue(f"subscription {self.numbers[at]} has a bound that is not a number")
        if len(np.unique(self.numbers)) < len(self.numbers) or (self.numbers < 0).any():
            raise InvalidValue("a number stands for one subscription, and is not negative")
        if (self.low > self.high).any():
            at = int(np.argmax((self.low > self.high).any(axis=1)))
            raise InvalidValue(f"subscription {self.numbers[at]} has a range that is empty")


def checked_values(values: Sequence[float] | None, dimensions: int) -> tuple[float, ...] | None:
    """A row's values as kernels want them: NaN is missing, and −∞ the least finite number."""
    if values is None:
        return None
    if len(values) != dimensions:
        raise InvalidValue(f"a row has {len(values)} selection values: expected {dimensions}")
    return tuple(MISSING if math.isnan(each) else max(each, LEAST) for each in map(float, values))
