"""Every feed has the items that satisfy its conditions, in any configuration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.views.test_flat_feeds import equal, feeds, items
from tests.views.test_rewrite_cgr import members_of

from headgate.match.batch import batch_of_items
from headgate.match.dataclass_codec import open_stored, write_stored
from headgate.model.errors import SnapshotError
from headgate.model.filters import And
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.network.flat_levels import FlatLevels, compile_flat_levels, run_flat_levels
from headgate.views.flat_feeds import FlatFeed, evaluate_flat
from headgate.views.flat_graph import rewrite_flat

TYPES = {"x": Type.INT, "y": Type.INT, "title": Type.TEXT}
SCHEMA = Schema(tuple(Attribute(name, type_) for name, type_ in TYPES.items()))


def ids_of(levels: FlatLevels, some: list[Item]) -> list[set[str]]:
    """For each feed, the ids of its items."""
    rows = run_flat_levels(levels, batch_of_items(some, TYPES))
    bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")[:, : len(some)]
    return [
        {some[position].id for position in np.flatnonzero(bits[row])} for row in levels.view_row
    ]


@st.composite
def served(draw: st.DrawFn) -> tuple[list[FlatFeed], list[tuple[int, ...]]]:
    all_ = [FlatFeed("S", each.conditions, each.returns) for each in draw(st.lists(feeds))]
    result = rewrite_flat(all_)
    return all_, [
        draw(st.sampled_from([(), *members_of(result, view)])) for view in range(len(all_))
    ]


@given(served(), items)
def test_feeds_have_the_items_of_their_conditions(
    configured: tuple[list[FlatFeed], list[tuple[int, ...]]], some: list[Item]
) -> None:
    levels = compile_flat_levels(*configured, SCHEMA)
    levels.check()
    expected = [set(evaluate_flat(feed, some)) for feed in configured[0]]
    assert ids_of(levels, some) == expected
    assert ids_of(compile_flat_levels(configured[0], None, SCHEMA), some) == expected


ASIA, SALES = equal("title", "Asia"), equal("x", "Sales")


def test_equal_views_share_tables(tmp_path: Path) -> None:
    asia, sales = FlatFeed.of("S", ASIA), FlatFeed.of("S", SALES)
    both = FlatFeed.of("S", And((ASIA, SALES)))
    views = [asia, sales, both, both, asia, both]
    levels = compile_flat_levels(views, [(), (), (0,), (4,), (0,), (0, 1)], SCHEMA)
    assert levels.view_row.tolist() == [0, 1, 2, 4, 0, 3]
    assert levels.view_level.tolist() == [1, 1, 2, 3, 2, 2]
    path = write_stored(tmp_path, levels, kind="flat levels", version=1)
    reopened = open_stored(path, FlatLevels, kind="flat levels", version=1)
    assert reopened.view_row.tolist() == levels.view_row.tolist()


def test_a_damaged_configuration_is_refused() -> None:
    asia, both = FlatFeed.of("S", ASIA), FlatFeed.of("S", And((ASIA, SALES)))
    levels = compile_flat_levels([asia, both], [(), (0,)], SCHEMA)
    levels.members[0] = 1
    with pytest.raises(SnapshotError, match="'members' of a configuration is damaged"):
        levels.check()
