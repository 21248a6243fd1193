"""Subscriptions in files: several files combined answer as one."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.histories import Bounds, boxes, changes

from headgate.match.array_file import write_arrays
from headgate.match.dataclass_codec import open_stored, to_arrays
from headgate.model.errors import SnapshotError
from headgate.tables.boxes import Boxes, BoxGroup
from headgate.tables.changes import JoinChange
from headgate.tables.schemes import JoinScheme
from headgate.tables.server import SelectJoinServer
from headgate.tables.stored_boxes import (
    OpenBoxes,
    StoredBoxes,
    gathered_boxes,
    open_boxes,
    write_boxes,
)
from headgate.tables.subscription_index import SubscriptionIndex

CLU_PLUS = JoinScheme.REF_SJ_CLU_PLUS
FILES = st.lists(st.lists(boxes(2), min_size=1, max_size=6), min_size=1, max_size=3)


def written(folder: Path, bounds: list[Bounds], first_feed: int) -> Path:
    count = len(bounds)
    some = Boxes(
        np.arange(count), np.array([low for low, _ in bounds]), np.array([h for _, h in bounds])
    )
    feeds = np.arange(first_feed, first_feed + count, dtype=np.int32)
    group = BoxGroup((("a",), ("c",)), some)
    return write_boxes(folder, group, feeds, np.zeros(count, np.int32))


def told(opened: OpenBoxes, some: list[JoinChange]) -> list[str]:
    server = SelectJoinServer(opened.dimensions)
    server.use(SubscriptionIndex.of(opened.dimensions, opened.trees, opened.anchors, CLU_PLUS))
    return [repr(message) for message in server.apply(some)]


@given(
    files=FILES,
    dropped=st.sets(st.integers(0, 15)),
    some=st.lists(changes((1, 1)), max_size=15),
)
def test_combined_files_answer_as_one(
    files: list[list[Bounds]], dropped: set[int], some: list[JoinChange]
) -> None:
    gone = np.array(sorted(dropped), np.int32)
    with tempfile.TemporaryDirectory() as folder:
        opened, first = [], 0
        for own in files:
            opened.append(open_boxes(written(Path(folder), own, first)))
            first += len(own)
        actual = gathered_boxes(opened, gone)
        every = [each for own in files for each in own]
        living = [at for at in range(len(every)) if at not in dropped]
        assert actual.count == len(living)
        server = SelectJoinServer()
        if living:
            low, high = (np.array([every[at][side] for at in living]) for side in range(2))
            server.subscribe(Boxes(np.array(living), low, high))
        assert told(actual, some) == [repr(message) for message in server.apply(some)]
        only = actual.only(np.array([0, 2], np.int32))
        assert only.count == len({0, 2} & set(living))


def test_attributes_of_other_files_get_unbounded_ranges(tmp_path: Path) -> None:
    one = open_boxes(written(tmp_path, [((1.0, 2.0), (3.0, 4.0))], 0))
    boxes_ = Boxes(np.array([0]), np.array([[5.0, 6.0]]), np.array([[7.0, 8.0]]))
    feeds = np.array([1], np.int32)
    path = write_boxes(tmp_path, BoxGroup((("b",), ("c",)), boxes_), feeds, feeds)
    actual = gathered_boxes([one, open_boxes(path)], np.zeros(0, np.int32))
    assert actual.attributes == (("a", "b"), ("c",))
    assert actual.tested.tolist() == [0, 1]
    tree = actual.trees[0]
    points = {int(n): p.tolist() for n, p in zip(tree.subscription, tree.points, strict=False)}
    none = -np.inf, np.inf
    assert points[0] == [1.0, none[0], 2.0, 3.0, none[1], 4.0]
    assert points[1] == [none[0], 5.0, 6.0, none[1], 7.0, 8.0]


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("left.tiers", 1, 100),
        ("left.tiers", 0, 1),
        ("right.tiers", 2, 7),
        ("left.subscription", 0, 99),
        ("right.subscription", 0, -1),
        ("tested", 0, 5),
        ("feeds", 0, -3),
    ],
)
def test_a_file_with_an_index_out_of_range_is_refused(
    tmp_path: Path, name: str, place: int, value: int
) -> None:
    path = written(tmp_path, [((1.0, 2.0), (3.0, 4.0)), ((1.0, 2.0), (3.0, 9.0))], 0)
    sound = open_stored(path, StoredBoxes, kind="select-join index", version=1)
    arrays, stored = to_arrays(sound)
    damaged = arrays[name].copy()
    damaged[place] = value
    metadata = {"kind": "select-join index", "version": 1, "stored": stored}
    with pytest.raises(SnapshotError, match="no sound select-join index"):
        open_boxes(write_arrays(tmp_path, {**arrays, name: damaged}, metadata))
