"""What differs is found: tuples, and texts."""

from __future__ import annotations

from dataclasses import replace

from headgate.model.tree_pattern import Mark, PatternNode
from headgate.views.compare_held import differing_views
from headgate.views.compile_levels import compile_levels
from headgate.views.document import Document
from headgate.views.run_levels import HeldTuples, LevelRunner

VAL = frozenset([Mark.VAL])
A, B = PatternNode("a", marks=VAL), PatternNode("b", marks=VAL)
BOTH = PatternNode("a", marks=VAL, children=(B,))


def held(reads: list[tuple[int, ...]]) -> HeldTuples:
    document = Document.read("<a>x<b>y</b><b>z</b><a/></a>")
    assert document is not None
    return LevelRunner(compile_levels([A, B, BOTH], reads)).run(document)


def test_the_same_however_it_was_served() -> None:
    assert differing_views(held([(), (), (0, 1)]), held([(), (), ()])) == []


def test_other_tuples_and_other_texts_are_told() -> None:
    right, judge = held([(), (), (0, 1)]), held([(), (), ()])
    fewer = right.rows.copy()
    fewer[right.program.views.table[2]] = 1
    assert differing_views(replace(right, rows=fewer), judge) == [2]
    fewer[right.program.views.table[2]] = -1
    assert differing_views(replace(right, rows=fewer), judge) == []
    cells = right.cells.copy()
    cells[right.start[right.program.views.table[0]]] += 1
    assert differing_views(replace(right, cells=cells), judge) == [0]
    texts = {**right.texts, Mark.VAL: {**right.texts[Mark.VAL], 1: "other"}}
    assert differing_views(replace(right, texts=texts), judge) == [1, 2]
