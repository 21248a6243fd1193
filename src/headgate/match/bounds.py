"""Checks of stored arrays: the conditions that kernels rely on, tested once when a file is opened.

Kernels use indices without checking them. A file may be damaged, or made with intent and with the
right checksums. So each group of atoms has a `check` method, which uses these functions for all
that it stores:

    starts    0 ≤ … ≤ count        where each part of another array begins, and the end of the last
    indices   least ≤ … < limit    places in another array
    slots     a hash table         a power of two, at least one slot free, so that a search ends

Invariant: a group that has passed its `check` never reads or writes outside of an array. Whether
its answers are right is a matter of the file's hashes.

Each check reads its array once; a million subscriptions take some milliseconds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headgate.model.errors import SnapshotError

Array = npt.NDArray[np.int32] | npt.NDArray[np.int64] | npt.NDArray[np.uint8]
AnyArray = Array | npt.NDArray[np.float64] | npt.NDArray[np.uint64]


def refuse_unless(sound: bool, name: str, reason: str) -> None:
    if not sound:
        raise SnapshotError(f"'{name}' of a program is damaged: {reason}; write it again")


def check_length(name: str, values: AnyArray, length: int) -> None:
    """Check that the array has one dimension and just this length."""
    refuse_unless(values.ndim == 1, name, "it is no simple list")
    refuse_unless(values.size == length, name, f"it has {values.size} entries and not {length}")


def check_starts(name: str, starts: Array, count: int, *, parts: int | None = None) -> None:
    """Check that the starts ascend from 0 to `count`, and are those of `parts` parts if given."""
    check_length(name, starts, max(starts.size, 1) if parts is None else parts + 1)
    refuse_unless(int(starts[0]) == 0, name, "it does not begin with 0")
    refuse_unless(int(starts[-1]) == count, name, f"it does not end with {count}")
    refuse_unless(bool((starts[1:] >= starts[:-1]).all()), name, "it does not ascend")


def check_indices(
    name: str, values: Array, limit: int, *, least: int = 0, length: int | None = None
) -> None:
    """Check that all values are at least `least` and below `limit`."""
    check_length(name, values, values.size if length is None else length)
    if values.size:
        low, high = int(values.min()), int(values.max())
        refuse_unless(low >= least, name, f"{low} is less than {least}")
        refuse_unless(high < limit, name, f"{high} is not below {limit}")


def check_slots(name: str, slots: Array, count: int) -> None:
    """Check that a hash table holds numbers below `count`, or −1, and that a search in it ends."""
    check_indices(name, slots, count, least=-1)
    size = slots.size
    refuse_unless(size > 0 and size & (size - 1) == 0, name, "its size is no power of two")
    refuse_unless(bool((slots < 0).any()), name, "it has no free slot")
