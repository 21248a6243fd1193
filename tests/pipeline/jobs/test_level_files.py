"""A level program in a file answers as the one that was written; a damaged one is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from tests.views.strategies import documents
from tests.views.test_run_levels import read, served

from headgate.model.atoms import Relation
from headgate.model.errors import SnapshotError
from headgate.model.tree_pattern import Mark, PatternNode, ValuePredicate
from headgate.pipeline.jobs.level_files import check_levels, open_levels, write_levels
from headgate.views.level_program import LevelProgram, compile_levels
from headgate.views.run_levels import LevelRunner

Served = tuple[list[PatternNode], list[tuple[int, ...]]]


@given(served(), documents)
def test_a_program_from_a_file_answers_the_same(
    tmp_path_factory: pytest.TempPathFactory, configured: Served, text: str
) -> None:
    program = compile_levels(*configured)
    again = open_levels(write_levels(tmp_path_factory.mktemp("levels"), program))
    document = read(text)
    first, second = LevelRunner(program).run(document), LevelRunner(again).run(document)
    for view in range(len(configured[0])):
        assert first.view(view).rows() == second.view(view).rows()


def small_program() -> LevelProgram:
    val = frozenset([Mark.VAL])
    a, b = PatternNode("a", marks=val), PatternNode("b", marks=val)
    above = ValuePredicate(Relation.GREATER, 2**60 + 1)
    both = PatternNode("a", marks=val, predicates=(above,), children=(b,))
    return compile_levels([a, b, both], [(), (), (0, 1)])


def test_constants_keep_their_kind(tmp_path: Path) -> None:
    known = open_levels(write_levels(tmp_path, small_program())).vocabulary
    assert known.numbers == [2**60 + 1]
    assert isinstance(known.numbers[0], int)


@pytest.mark.parametrize(
    ("part", "field"),
    [
        *(("steps", name) for name in ("label", "predicate_start", "child_start")),
        *(("joins", name) for name in ("instance_start", "instances", "columns", "residuals")),
        *(("joins", name) for name in ("edges", "column_start", "edge_start", "residual_start")),
        *(("views", name) for name in ("table", "marks", "mark_start")),
    ],
)
@pytest.mark.parametrize("wrong", [-7, 99])
def test_what_is_out_of_bounds_is_refused(part: str, field: str, wrong: int) -> None:
    program = small_program()
    check_levels(program)
    arrays = getattr(program, part)
    damaged = getattr(arrays, field).copy()
    damaged.reshape(-1)[0] = wrong
    if field == "residuals":
        damaged[0, -1] = wrong
    changed = replace(program, **{part: arrays._replace(**{field: damaged})})
    with pytest.raises(SnapshotError, match="is damaged"):
        check_levels(changed)


def test_widths_are_checked() -> None:
    program = small_program()
    with pytest.raises(SnapshotError):
        check_levels(replace(program, width=np.full_like(program.width, 9)))
