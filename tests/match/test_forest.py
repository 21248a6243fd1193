"""A stored forest is refused unless walks over it stay within all arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headgate.match.forest import Forest, build_forest, build_path_forest
from headgate.model.errors import SnapshotError

ROWS, OWNERS = 5, 4


def forest() -> Forest:
    """The forest of the module's picture, and one conjunction more."""
    paths = [[0, 1, 2], [0, 1, 3], [0, 4], [3]]
    lengths = np.array([len(path) for path in paths], np.int32)
    flat = np.array([row for path in paths for row in path], np.int32)
    return build_forest(
        lengths, flat, np.arange(OWNERS, dtype=np.int32), np.arange(ROWS, dtype=np.int32)
    )


def test_a_sound_forest_passes() -> None:
    found = forest()
    assert found.node_depth.tolist() == [0, 1, 2, 2, 1, 0]
    assert found.node_skip.tolist() == [5, 4, 3, 4, 5, 6]
    assert found.node_end.tolist() == [-1, -1, 0, 1, 2, 3]
    assert found.check(ROWS, OWNERS) is None


@pytest.mark.parametrize("name", ["node_row", "node_depth", "node_skip", "node_end", "end_start"])
def test_a_number_beyond_its_bounds_is_refused(name: str) -> None:
    whole = getattr(forest(), name)
    for at in range(whole.size):
        for number in (-2, 6, 2**31 - 1):
            if number == whole[at]:
                continue
            damaged = whole.copy()
            damaged[at] = number
            with pytest.raises(SnapshotError, match="of a program is damaged"):
                replace(forest(), **{name: damaged}).check(ROWS, OWNERS)


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("node_skip", [5, 4, 3, 4, 5, 5], "it leads elsewhere"),
        ("node_skip", [5, 3, 3, 4, 5, 6], "it leads elsewhere"),
        ("node_skip", [5, 4, 3, 4, 5], "it leads elsewhere"),
        ("node_depth", [0, 2, 2, 2, 1, 0], "a node has no parent"),
        ("node_depth", [1, 1, 2, 2, 1, 0], "a node has no parent"),
        ("node_end", [-1, -1, 0, 0, 2, 3], "the ends do not ascend"),
        ("node_end", [-1, 3, 0, 1, 2, 3], "the ends do not ascend"),
    ],
)
def test_walks_that_would_not_agree_are_refused(name: str, values: list[int], why: str) -> None:
    with pytest.raises(SnapshotError, match=why):
        replace(forest(), **{name: np.array(values, np.int32)}).check(ROWS, OWNERS)


def test_paths_share_equal_beginnings_in_the_order_in_which_they_are_given() -> None:
    paths = [[2, 0, 1], [1, 0], [2, 0, 3], [2], [1, 0]]
    lengths = np.array([len(path) for path in paths], np.int32)
    flat = np.array([row for path in paths for row in path], np.int32)
    found = build_path_forest(lengths, flat, np.arange(5, dtype=np.int32))
    assert found.check(ROWS, 5) is None
    assert found.node_row.tolist() == [1, 0, 2, 0, 1, 3]
    assert found.node_depth.tolist() == [0, 1, 0, 1, 2, 2]
    assert found.subscriptions.tolist() == [1, 4, 3, 0, 2]
    assert found.end_start.tolist() == [0, 2, 3, 4, 5]
