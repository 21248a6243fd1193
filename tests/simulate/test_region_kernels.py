"""Regions against boxes: exact for points and boxes, and seen whole from their heart."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulate.region_worlds import flat, holds, regions
from tests.tables.histories import Bounds, boxes

from headgate.simulate.region_kernels import heart, meets
from headgate.tables.messages import Region

BOTH = [(1, 1), (2, 1), (1, 2)]


def small(dimensions: tuple[int, int]) -> st.SearchStrategy[tuple[Region, list[list[int]]]]:
    """A region and a box, of whole numbers, in a space that can be looked through."""
    size, most = 2 * sum(dimensions), 4 if sum(dimensions) == 2 else 2
    number = st.integers(0, most)
    sides = st.tuples(number, number).map(sorted)
    return st.tuples(
        regions(dimensions).map(lambda region: _within(region, most)),
        st.lists(sides, min_size=size, max_size=size),
    )


def _within(region: Region, most: int) -> Region:
    def cut(point: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(min(max(each, 0), most) for each in point)

    return Region(
        region.own,
        cut(region.selected),
        tuple(map(cut, region.excluded)),
        tuple((cut(x), cut(y)) for x, y in region.pairs),
    )


def _holds(region: Region, point: tuple[float, ...], dimensions: tuple[int, int]) -> bool:
    half = len(point) // 2
    return holds(region, (point[:half], point[half:]), dimensions)


@pytest.mark.parametrize("dimensions", BOTH)
@given(data=st.data())
def test_a_point_is_met_if_the_region_holds_it(
    dimensions: tuple[int, int], data: st.DataObject
) -> None:
    region = data.draw(regions(dimensions))
    bounds: Bounds = data.draw(boxes(sum(dimensions)))
    point = np.array([[*bounds[0], *bounds[1]]])
    assert meets(flat([region], dimensions), 0, point, point, 0) == holds(
        region, bounds, dimensions
    )


@pytest.mark.parametrize("dimensions", BOTH)
@given(data=st.data())
def test_a_box_is_met_if_one_of_its_points_is(
    dimensions: tuple[int, int], data: st.DataObject
) -> None:
    region, sides = data.draw(small(dimensions))
    least, most = np.array(sides, float).T[:, None].copy()
    inside = product(*(range(low, high + 1) for low, high in sides))
    expected = any(_holds(region, point, dimensions) for point in inside)
    assert meets(flat([region], dimensions), 0, least, most, 0) == expected


def test_an_empty_place_is_never_met() -> None:
    everyone = Region(0, (-np.inf,), (), (((np.inf,), (-np.inf,)),))  # type: ignore[arg-type]
    nobody = np.full((1, 4), np.nan)
    assert not meets(flat([everyone], (1, 1)), 0, nobody, nobody, 0)


@pytest.mark.parametrize("dimensions", BOTH)
@given(data=st.data())
def test_the_heart_sees_all_of_the_region(dimensions: tuple[int, int], data: st.DataObject) -> None:
    region, _ = data.draw(small(dimensions))
    size, top = 2 * sum(dimensions), 4 if sum(dimensions) == 2 else 2
    space = list(product(range(top + 1), repeat=size))
    least, most = np.empty(size), np.empty(size)
    held = [point for point in space if _holds(region, point, dimensions)]
    if not heart(flat([region], dimensions), 0, least, most):
        assert not held
        return
    seeing = [point for point in space if (least <= point).all() and (point <= most).all()]
    assert set(seeing) <= set(held)
    for one, other in product(data.draw(_some(seeing)), data.draw(_some(held))):
        sides = (range(min(pair), max(pair) + 1) for pair in zip(one, other, strict=True))
        assert all(_holds(region, point, dimensions) for point in product(*sides))


def _some(points: list[tuple[int, ...]]) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.sampled_from(points), max_size=3) if points else st.just([])
