"""The subscriptions of table joins as files, one for each group of joins that come alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from headgate.tables.compile_boxes import SelectJoin, box_group
from headgate.tables.join_groups import JoinGroup, has_rest
from headgate.tables.join_parts import JoinPart, JoinParts
from headgate.tables.payload_apart import Registered
from headgate.tables.stored_boxes import write_boxes


def write_joins(
    folder: Path, joins: Mapping[int, Sequence[SelectJoin]], registered: Registered
) -> tuple[tuple[JoinGroup, str], ...]:
    """The groups of the joins of feeds, given by number, each with the name of its file."""
    parts = JoinParts(registered)
    groups: dict[str, list[tuple[int, bool, JoinPart]]] = {}
    for feed, own in joins.items():
        for join in own:
            is_tested = has_rest(join)
            for part in parts.of(join):
                groups.setdefault(part.group.name, []).append((feed, is_tested, part))
    written: list[tuple[JoinGroup, str]] = []
    for some in groups.values():
        boxes = box_group(range(len(some)), [part.boxed for _, _, part in some])
        feeds = np.array([feed for feed, _, _ in some], np.int32)
        tested = np.array([is_tested for _, is_tested, _ in some], np.int32)
        path = write_boxes(folder, boxes, feeds, tested)
        written.append((some[0][2].group, path.name))
    return tuple(written)
