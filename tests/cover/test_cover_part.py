"""What new cubes cover among themselves is what looking at all pairs finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.cover.cover_strategies import any_kind, cubes

from headgate.cover.cover_cubes import Cubes, cube_list
from headgate.cover.cover_part import NewCubes
from headgate.cover.cover_scan_kernels import is_covered
from headgate.model.filters import TRUE, Filter


@given(st.lists(cubes | any_kind | st.just(TRUE), min_size=1, max_size=70))
def test_new_cubes_within_each_other(some: list[Filter]) -> None:
    vocabulary = Cubes()
    described = [cube for cube in map(vocabulary.cube, some) if not cube.is_never]
    found, lines = cube_list(described), vocabulary.lines
    within = NewCubes(found, lines).within()
    bits = np.unpackbits(within.view(np.uint8), axis=1, bitorder="little")
    spans = list(zip(found.start[:-1], found.start[1:], strict=True))
    expected = [
        [is_covered(found.flat, *narrow, found.flat, *wide, lines) for narrow in spans]
        for wide in spans
    ]
    assert bits[:, : len(spans)].astype(bool).tolist() == expected
    assert not bits[:, len(spans) :].any()
