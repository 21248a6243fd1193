"""Covering among the new cubes of a batch equals comparing all pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.cover.cover_strategies import any_kind, cubes

from headgate.cover.cubes import CubeEncoder, cube_list
from headgate.cover.forest_index import NewCubeBatch
from headgate.cover.scan_index import is_covered
from headgate.model.filters import TRUE, Filter


@given(st.lists(cubes | any_kind | st.just(TRUE), min_size=1, max_size=70))
def test_new_cubes_within_each_other(some: list[Filter]) -> None:
    encoder = CubeEncoder()
    described = [cube for cube in map(encoder.cube, some) if not cube.is_never]
    result, table = cube_list(described), encoder.table
    within = NewCubeBatch(result, table).within()
    bits = np.unpackbits(within.view(np.uint8), axis=1, bitorder="little")
    spans = list(zip(result.start[:-1], result.start[1:], strict=True))
    expected = [
        [is_covered(result.flat, narrow, result.flat, wide, table) for narrow in spans]
        for wide in spans
    ]
    assert bits[:, : len(spans)].astype(bool).tolist() == expected
    assert not bits[:, len(spans) :].any()
