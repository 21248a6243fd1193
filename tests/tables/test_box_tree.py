"""Queries to the tree equal a scan of all boxes, under additions and removals."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headgate.tables.box_tree import BoxTree
from headgate.tables.box_tree_kernels import STACK, BoxQuery, Excluded, any_match, collect, greatest

DIMENSIONS = 2
COORDINATES = 2 * DIMENSIONS
numbers = st.sampled_from([-math.inf, *map(float, range(7)), math.inf])
bounds = st.lists(st.tuples(numbers, numbers), min_size=COORDINATES, max_size=COORDINATES)
points = st.lists(st.tuples(st.floats(0, 6), st.just(0.0)).map(lambda p: p[:1]), max_size=2)


def filled(seed: int, adds: list[int], removed: float) -> tuple[BoxTree, dict[int, np.ndarray]]:
    chance = np.random.default_rng(seed)
    tree, boxes_, used = BoxTree(DIMENSIONS, near=slice(1, 2)), {}, 0
    for size in adds:
        drawn = np.sort(chance.integers(0, 7, (size, DIMENSIONS, 2)).astype(float), axis=2)
        drawn[chance.random((size, DIMENSIONS)) < 0.1, 1] = math.inf
        numbers = np.arange(used, used + size)
        used += size
        tree.add(numbers, drawn[..., 0], drawn[..., 1])
        boxes_ |= {
            int(number): np.concatenate([box[:, 0], box[:, 1]])
            for number, box in zip(numbers, drawn, strict=True)
        }
        gone = [number for number in boxes_ if chance.random() < removed]
        tree.remove(np.array(gone, np.int64))
        for number in gone:
            del boxes_[number]
    return tree, boxes_


fillings = st.tuples(
    st.integers(0, 2**32),
    st.lists(st.integers(0, 90), max_size=6),
    st.sampled_from([0.0, 0.1, 0.6]),
)
aims = st.tuples(st.integers(0, COORDINATES - 1), st.sampled_from([1.0, -1.0]))


@given(filling=fillings, asked=bounds, excluded=points, aim=aims)
def test_queries_equal_a_linear_scan(
    filling: tuple[int, list[int], float],
    asked: list[tuple[float, float]],
    excluded: list[tuple[float]],
    aim: tuple[int, float],
) -> None:
    m, sign = aim
    tree, known = filled(*filling)
    least, most = np.array(asked).T.copy()
    without = Excluded(np.array(excluded).reshape(-1, 1), 0)
    wanted = {
        number: sign * point[m]
        for number, point in known.items()
        if (least <= point).all()
        and (point <= most).all()
        and not any(point[0] <= each[0] <= point[DIMENSIONS] for each in excluded)
    }
    stack, out = np.empty((STACK, 3), np.int64), np.empty(10_000, np.int64)
    query = BoxQuery(least, most, without, stack, out, 0)
    arrays = tree.arrays
    actual, best = greatest(arrays, query, without, m, sign, math.inf)
    assert actual == bool(wanted)
    if actual:
        assert best == max(wanted.values())
    assert any_match(arrays, query, without) == bool(wanted)
    count = collect(arrays, query, without)
    assert sorted(arrays.subscription[out[:count]].tolist()) == sorted(wanted)
    assert tree.numbers().tolist() == sorted(known)
    low, high = tree.bounds(tree.numbers())
    assert all((np.hstack([low, high])[at] == known[n]).all() for at, n in enumerate(sorted(known)))


def test_adding_one_by_one_makes_few_tiers() -> None:
    tree = BoxTree(1, near=slice(0, 1))
    for number in range(3_000):
        tree.add(np.array([number]), np.array([[float(number)]]), np.array([[number + 1.0]]))
    assert len(tree) == 3_000
    assert len(tree.arrays.tiers) <= 13
