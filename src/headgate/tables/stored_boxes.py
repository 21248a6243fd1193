"""The subscriptions of one group in a file: the trees as kernels use them, mapped by every worker.

    boxes ──► BoxTree (2), anchors (2) ──► file ──► trees over the mapped bytes

Building the trees of a million subscriptions takes seconds and opening the file milliseconds, so
they are built once, when statements are planned. A subscription is a small number within its file;
`feeds` maps it to its feed, as a feed that is a union of joins has several subscriptions.

A new feed makes a new small file next to the large one (layers, pipeline/snapshot.py), and
`gathered_boxes` combines the files. One file alone is used as it is. Several files with the same
attributes become tiers of one tree, copied in memory. Otherwise the trees are rebuilt, since each
subscription needs a range for attributes that only others restrict.

A file is not trusted. Its hashes are checked on opening, and here every number that a kernel uses
as an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headgate.match.bit_rows import Ints
from headgate.match.bounds import check_indices, check_length, refuse_unless
from headgate.match.dataclass_codec import open_stored, write_stored
from headgate.tables.box_tree import GONE, BoxTree, frozen_view
from headgate.tables.box_tree_kernels import Floats, Longs, Tree, node_count
from headgate.tables.boxes import MISSING, Boxes, BoxGroup
from headgate.tables.messages import JoinSide
from headgate.tables.stabbing_sets import stab

KIND, VERSION = "select-join index", 1
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class StoredTree:
    """The arrays of a tree, flattened for the file."""

    points: Floats
    subscription: Longs
    box_least: Floats
    box_most: Floats
    tiers: Longs

    @classmethod
    def of(cls, tree: Tree) -> StoredTree:
        count = int(tree.tiers[:, 1].sum())
        nodes = sum(node_count(size) for size in tree.tiers[:, 1].tolist())
        return cls(
            tree.points[:count].ravel(),
            tree.subscription[:count],
            tree.box_least[:nodes].ravel(),
            tree.box_most[:nodes].ravel(),
            tree.tiers.ravel(),
        )

    def opened(self, dimensions: int) -> Tree:
        width = 2 * dimensions
        return Tree(
            self.points.reshape(-1, width),
            self.subscription,
            self.box_least.reshape(-1, width),
            self.box_most.reshape(-1, width),
            self.tiers.reshape(-1, 3),
        )

    def check(self, dimensions: int, count: int) -> None:
        width = 2 * dimensions
        check_length("points", self.points, width * count)
        check_indices("subscription", self.subscription, count, length=count)
        refuse_unless(self.tiers.size % 3 == 0, "tiers", "a tier is three numbers")
        point = node = 0
        for start, size, first in self.tiers.reshape(-1, 3).tolist():
            refuse_unless(
                (start, first) == (point, node) and size > 0, "tiers", "tiers are not contiguous"
            )
            refuse_unless(
                size <= count - point,
                "tiers",
                "a tier has more points than there are subscriptions",
            )
            point, node = point + size, node + node_count(size)
        refuse_unless(point == count, "tiers", f"tiers have {point} points: expected {count}")
        check_length("box_least", self.box_least, width * node)
        check_length("box_most", self.box_most, width * node)


@dataclass(frozen=True, slots=True, eq=False)
class StoredBoxes:
    """The content of a file."""

    left_attributes: Names
    right_attributes: Names
    feeds: Ints
    tested: Ints
    left: StoredTree
    right: StoredTree
    left_anchors: Floats
    right_anchors: Floats

    @property
    def attributes(self) -> tuple[Names, Names]:
        return self.left_attributes, self.right_attributes

    @property
    def dimensions(self) -> tuple[int, int]:
        return dimensions_of(self.attributes)

    def check(self) -> None:
        left, right = self.dimensions
        check_indices("feeds", self.feeds, 2**31 - 1)
        check_indices("tested", self.tested, 2, length=self.feeds.size)
        for tree in (self.left, self.right):
            tree.check(left + right, self.feeds.size)
        refuse_unless(
            self.left_anchors.size % left == 0, "left_anchors", "anchors have another width"
        )
        refuse_unless(
            self.right_anchors.size % right == 0, "right_anchors", "anchors have another width"
        )


@dataclass(frozen=True, slots=True, eq=False)
class OpenBoxes:
    """The subscriptions of a group, opened from files."""

    attributes: tuple[Names, Names]
    feeds: Ints
    """[subscription]: the number of its feed."""
    tested: Ints
    """[subscription]: 1 if its join has residual filters, which are evaluated on results."""
    trees: tuple[Tree, ...]
    anchors: tuple[Floats, ...]

    @property
    def dimensions(self) -> tuple[int, int]:
        return dimensions_of(self.attributes)

    @property
    def count(self) -> int:
        """The number of subscriptions, without those of dropped feeds."""
        return int(np.count_nonzero(self.trees[0].subscription != GONE))

    def only(self, feeds: Ints) -> OpenBoxes:
        """The subscriptions of these feeds (ascending) only."""
        tree = self.trees[0]
        kept = tree.subscription != GONE
        kept[kept] = np.isin(self.feeds[tree.subscription[kept]], feeds)
        half = tree.points.shape[1] // 2
        points, numbers = tree.points[kept], tree.subscription[kept]
        columns = self.attributes, self.feeds, self.tested
        return _build_index(columns, numbers, points[:, :half], points[:, half:])


def dimensions_of(attributes: tuple[Names, Names]) -> tuple[int, int]:
    """The number of attributes of each side; a side without restricted attributes has one without a
    name."""
    left, right = attributes
    return max(1, len(left)), max(1, len(right))


def write_boxes(folder: Path, group: BoxGroup, feeds: Ints, tested: Ints) -> Path:
    """Write subscriptions, numbered from 0 on, to a file; return its path."""
    boxes = group.boxes
    index = _build_index((group.attributes, feeds, tested), boxes.numbers, boxes.low, boxes.high)
    left, right = index.trees
    stored = StoredBoxes(
        *group.attributes,
        feeds,
        tested,
        StoredTree.of(left),
        StoredTree.of(right),
        *(each.ravel() for each in index.anchors),
    )
    return write_stored(folder, stored, kind=KIND, version=VERSION)


def open_boxes(path: Path) -> OpenBoxes:
    stored = open_stored(path, StoredBoxes, kind=KIND, version=VERSION)
    left, right = stored.dimensions
    trees = tuple(each.opened(left + right) for each in (stored.left, stored.right))
    anchors = stored.left_anchors.reshape(-1, left), stored.right_anchors.reshape(-1, right)
    return OpenBoxes(stored.attributes, stored.feeds, stored.tested, trees, anchors)


def gathered_boxes(files: Sequence[OpenBoxes], dropped: Ints) -> OpenBoxes:
    """All subscriptions of these files, without those of dropped feeds."""
    if len(files) == 1 and not np.isin(files[0].feeds, dropped).any():
        return files[0]
    feeds, tested = (
        np.concatenate([getattr(each, name) for each in files]) for name in ("feeds", "tested")
    )
    if all(each.attributes == files[0].attributes for each in files):
        trees = tuple(
            _stack_trees([each.trees[table] for each in files], feeds, dropped)
            for table in JoinSide
        )
        anchors = [np.concatenate([each.anchors[table] for each in files]) for table in JoinSide]
        ordered = tuple(map(_sorted_anchors, anchors))
        return OpenBoxes(files[0].attributes, feeds, tested, trees, ordered)
    attributes = (
        tuple(sorted({name for each in files for name in each.attributes[0]})),
        tuple(sorted({name for each in files for name in each.attributes[1]})),
    )
    boxes = [_bounds_over(each, attributes) for each in files]
    low, high = (np.concatenate([each[at] for each in boxes]) for at in range(2))
    kept = np.flatnonzero(~np.isin(feeds, dropped))
    return _build_index((attributes, feeds, tested), kept, low[kept], high[kept])


def _stack_trees(trees: Sequence[Tree], feeds: Ints, dropped: Ints) -> Tree:
    """One tree with the tiers of all trees, and holes for dropped feeds."""
    counts = np.cumsum([0, *(len(each.subscription) for each in trees)])
    nodes = np.cumsum([0, *(len(each.box_least) for each in trees)])
    points = np.concatenate([each.points for each in trees])
    subscription = np.concatenate(
        [each.subscription + at for each, at in zip(trees, counts, strict=False)]
    )
    holes = np.isin(feeds[subscription], dropped)
    points[holes], subscription[holes] = np.nan, GONE
    tiers = [
        tree.tiers + np.array([point, 0, node])
        for tree, point, node in zip(trees, counts, nodes, strict=False)
    ]
    return Tree(
        frozen_view(points),
        frozen_view(subscription),
        frozen_view(np.concatenate([each.box_least for each in trees])),
        frozen_view(np.concatenate([each.box_most for each in trees])),
        frozen_view(np.concatenate(tiers)),
    )


def _sorted_anchors(anchors: Floats) -> Floats:
    """Anchors in the order of their first dimension."""
    return frozen_view(np.ascontiguousarray(anchors[np.argsort(anchors[:, 0], kind="stable")]))


def _bounds_over(boxes: OpenBoxes, attributes: tuple[Names, Names]) -> tuple[Floats, Floats]:
    """The bounds of all subscriptions by number, over more attributes."""
    tree, count = boxes.trees[0], boxes.feeds.size
    half = tree.points.shape[1] // 2
    points = np.empty((count, 2 * half))
    points[tree.subscription] = tree.points
    present = [(side, name) for side in JoinSide for name in boxes.attributes[side] or ("",)]
    columns = [(side, name) for side in JoinSide for name in attributes[side] or ("",)]
    low = np.full((count, len(columns)), MISSING)
    high = np.full((count, len(columns)), np.inf)
    for position, column in enumerate(columns):
        if column in present:
            source = present.index(column)
            low[:, position], high[:, position] = points[:, source], points[:, half + source]
    return low, high


def _build_index(
    columns: tuple[tuple[Names, Names], Ints, Ints], numbers: Longs, low: Floats, high: Floats
) -> OpenBoxes:
    """Build both trees and all anchors; `columns` are attributes, feeds and tested."""
    attributes, feeds, tested = columns
    left, right = dimensions_of(attributes)
    parts = slice(0, left), slice(left, left + right)
    checked = Boxes(numbers, low, high)
    trees = []
    for table in JoinSide:
        tree = BoxTree(left + right, near=parts[table.other])
        tree.add(checked.numbers, checked.low, checked.high)
        trees.append(tree.arrays)
    anchors = tuple(stab(checked.low[:, own], checked.high[:, own])[1] for own in parts)
    return OpenBoxes(
        attributes,
        feeds,
        tested,
        tuple(trees),
        tuple(map(_sorted_anchors, anchors)),
    )
