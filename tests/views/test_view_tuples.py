"""The size of the tuples of a view."""

from __future__ import annotations

from headgate.model.tree_pattern import Axis, Mark, PatternNode
from headgate.views.document import Document
from headgate.views.run_levels import PatternSet


def test_a_text_counts_once_however_many_tuples_have_it() -> None:
    document = Document.read("<a>xyz<b/><b/></a>")
    assert document is not None
    view = PatternNode("a", marks=frozenset([Mark.VAL]), children=(PatternNode("b", Axis.CHILD),))
    tuples = PatternSet([view]).evaluate(document)[0]
    assert tuples.rows() == {((0, 2, 0), (n, n, 1), "xyz") for n in (1, 2)}
    assert tuples.size_bytes() == 2 * 2 * 12 + 3
