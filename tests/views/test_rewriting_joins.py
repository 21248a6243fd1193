"""The order of joins in a rewriting: by the lowest link to bound nodes."""

from __future__ import annotations

from headgate.model.tree_pattern import Axis, PatternNode
from headgate.views.rewriting_joins import ABOVE, ALL, BELOW, EQUAL, WAY, join_rows
from headgate.views.rewriting_plan import rewriting_plan


def path(*labels: str) -> PatternNode:
    below: tuple[PatternNode, ...] = ()
    for label in reversed(labels):
        below = (PatternNode(label, children=below),)
    return below[0]


def ways(query: PatternNode, *views: PatternNode) -> list[int]:
    plan = rewriting_plan(query, dict(enumerate(views)))
    rows = join_rows(plan, range(len(views)))
    return [each.head[WAY] for each in rows.instances]


def test_ways_to_look_up_rows() -> None:
    query = path("a", "b", "c")
    assert ways(query, path("a", "b"), path("b", "c")) == [ALL, EQUAL]
    assert ways(query, path("a", "b"), path("c")) == [ALL, BELOW]
    assert ways(query, path("a"), path("b", "c")) == [ALL, ABOVE]
    branches = PatternNode("a", children=(PatternNode("b"), PatternNode("c")))
    assert ways(branches, path("b"), path("c"), path("a")) == [ALL, ABOVE, BELOW]


def test_a_low_structural_link_comes_before_a_high_equal_one() -> None:
    """Both have a, which is in every row; c is below one b."""
    query = path("a", "b", "c")
    plan = rewriting_plan(query, {0: path("a", "b"), 1: path("a", "c")})
    table, way, column, node = join_rows(plan, [7, 8]).instances[1].head
    assert (table, way, column, node) == (8, BELOW, 1, 1)


def test_a_copy_is_the_table_itself_and_a_weaker_view_is_not() -> None:
    near = PatternNode("a", children=(PatternNode("b", Axis.CHILD),))
    same = join_rows(rewriting_plan(near, {0: near}), [3])
    assert same.same_table() == 3
    filtered = join_rows(rewriting_plan(near, {0: path("a", "b")}), [3])
    assert filtered.same_table() is None
