"""Partial answers are merged correctly in any order; Arrow arrays are built without pandas."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.match.item_columns import STORED_AS
from headgate.model.values import Type, Value
from headgate.operators.answers import (
    FAILED,
    TRUE,
    PartialAnswers,
    answers_of,
    arrow_of,
    arrow_of_lists,
    bound_of,
    failed_part,
)


@given(st.lists(st.lists(st.integers(), max_size=3), max_size=12), st.data())
def test_parts_in_any_order(lists: list[list[int]], data: st.DataObject) -> None:
    lists = [[each % 1000 for each in inner] for inner in lists]
    part_of = [data.draw(st.integers(0, 3)) for _ in lists]
    parts = []
    for part in data.draw(st.permutations(range(4))):
        positions = [at for at, each in enumerate(part_of) if each == part]
        states = np.array([TRUE if lists[at] else FAILED for at in positions], np.uint8)
        column = pa.array([lists[at] for at in positions], pa.list_(pa.int64()))
        parts.append((np.array(positions, np.int32), PartialAnswers(states, (column,))))
    bound = bound_of(parts, [pa.int64()])
    assert bound.values[0].to_pylist() == [each for inner in lists for each in inner]
    assert np.diff(bound.starts).tolist() == [len(each) for each in lists]


def test_an_empty_answer_is_an_answer() -> None:
    assert bound_of([], [pa.int64()]).starts.tolist() == [0]
    assert len(answers_of(failed_part(0, []), [])) == 0
    assert failed_part(2, [pa.int64()]).lists[0].to_pylist() == [[], []]


# The same arrays as `pa.array` makes, but pandas is not loaded for them.

texts = st.text(max_size=5)
VALUES: dict[Type, st.SearchStrategy[Value]] = {
    Type.INT: st.integers(-(2**63), 2**63 - 1),
    Type.FLOAT: st.floats(allow_nan=False),
    Type.BOOL: st.booleans(),
    Type.TEXT: texts,
    Type.LINK: texts,
    Type.XML: texts,
    Type.BYTES: st.binary(max_size=5),
    Type.TIMESTAMP: st.datetimes(
        min_value=datetime(1, 1, 2), max_value=datetime(9999, 1, 1), timezones=st.just(UTC)
    ),
}


@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.int64, np.float64, np.uint8, "U3"])
@given(values=st.lists(st.integers(0, 9), max_size=20), step=st.sampled_from([1, 2, -1]))
def test_arrays(dtype: type, values: list[int], step: int) -> None:
    array = np.array(values).astype(dtype)[::step]
    assert arrow_of(array).equals(pa.array(array))


@pytest.mark.parametrize("type_", list(Type))
@given(data=st.data())
def test_lists(type_: Type, data: st.DataObject) -> None:
    lists = data.draw(st.lists(st.lists(VALUES[type_], max_size=3), max_size=6))
    stored = STORED_AS[type_]
    made = arrow_of_lists(lists, stored)
    made.validate(full=True)
    assert made.equals(pa.array(lists, pa.list_(stored)))


def test_a_child_does_not_load_pandas() -> None:
    script = """
import sys
from tests.operators import functions
from headgate.model.values import Type
from headgate.operators import child
from headgate.operators.answers import arrow_of_lists
from headgate.match.item_columns import STORED_AS
arrow_of_lists([[1], []], STORED_AS[Type.INT])
sys.exit("pandas" in sys.modules)
"""
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert done.returncode == 0
