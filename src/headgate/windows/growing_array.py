"""Arrays that grow at their end, by doubling their capacity: kernels need flat arrays."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

CAPACITY_MIN = 16
Number = TypeVar("Number", np.int32, np.int64)


class GrowingArray(Generic[Number]):
    """`array[:size]` are the values; the rest of the array has the value `fill`."""

    __slots__ = ("array", "fill", "size")

    def __init__(self, type_: type[Number], *, fill: int = 0) -> None:
        self.array: npt.NDArray[Number] = np.full(CAPACITY_MIN, fill, type_)
        self.fill = fill
        self.size = 0

    @property
    def filled(self) -> npt.NDArray[Number]:
        return self.array[: self.size]

    def extend(self, values: npt.ArrayLike, count: int) -> None:
        """Append `count` values."""
        self.reserve(self.size + count)
        self.array[self.size : self.size + count] = values
        self.size += count

    def reserve(self, capacity: int) -> None:
        """Make the array at least this long."""
        if capacity > self.array.size:
            grown = np.full(max(capacity, 2 * self.array.size), self.fill, self.array.dtype)
            grown[: self.array.size] = self.array
            self.array = grown

    def replace(self, values: npt.NDArray[Number]) -> None:
        """Replace all values with these, and shrink the array to their number."""
        self.array = np.full(max(CAPACITY_MIN, values.size), self.fill, self.array.dtype)
        self.array[: values.size] = values
        self.size = values.size
