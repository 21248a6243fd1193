"""The subscriptions of table joins as files, one for each group of joins that come alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from headgate.join.select.compile_boxes import SelectJoin, box_group
from headgate.join.select.stored_boxes import write_boxes
from headgate.language.statements import RegisterTable
from headgate.pipeline.join_groups import JoinGroup, group_of_join, has_rest


def write_joins(
    folder: Path, joins: Mapping[int, Sequence[SelectJoin]], tables: Mapping[str, RegisterTable]
) -> tuple[tuple[JoinGroup, str], ...]:
    """The groups of the joins of feeds, given by number, each with the name of its file."""
    groups: dict[tuple[object, ...], list[tuple[int, SelectJoin]]] = {}
    for feed, own in joins.items():
        for join in own:
            if not join.is_empty:
                groups.setdefault(join.signature, []).append((feed, join))
    written: list[tuple[JoinGroup, str]] = []
    for some in groups.values():
        boxes = box_group(range(len(some)), [join for _, join in some])
        feeds = np.array([feed for feed, _ in some], np.int32)
        tested = np.array([has_rest(join) for _, join in some], np.int32)
        path = write_boxes(folder, boxes, feeds, tested)
        written.append((group_of_join(some[0][1], tables), path.name))
    return tuple(written)
