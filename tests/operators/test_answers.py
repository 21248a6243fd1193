"""Parts of answers put together in any order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.operators.answers import FAILED, TRUE, Part, answers_of, bound_of, failed_part


@given(st.lists(st.lists(st.integers(), max_size=3), max_size=12), st.data())
def test_parts_in_any_order(lists: list[list[int]], data: st.DataObject) -> None:
    lists = [[each % 1000 for each in inner] for inner in lists]
    part_of = [data.draw(st.integers(0, 3)) for _ in lists]
    parts = []
    for part in data.draw(st.permutations(range(4))):
        positions = [at for at, each in enumerate(part_of) if each == part]
        states = np.array([TRUE if lists[at] else FAILED for at in positions], np.uint8)
        column = pa.array([lists[at] for at in positions], pa.list_(pa.int64()))
        parts.append((np.array(positions, np.int32), Part(states, (column,))))
    bound = bound_of(parts, [pa.int64()])
    assert bound.values[0].to_pylist() == [each for inner in lists for each in inner]
    assert np.diff(bound.starts).tolist() == [len(each) for each in lists]


def test_nothing_is_an_answer_too() -> None:
    assert bound_of([], [pa.int64()]).starts.tolist() == [0]
    assert len(answers_of(failed_part(0, []), [])) == 0
    assert failed_part(2, [pa.int64()]).lists[0].to_pylist() == [[], []]
