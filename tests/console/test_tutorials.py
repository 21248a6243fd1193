"""The steps of the tutorials, as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.console.tutorial_steps import read_steps

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"


def test_the_steps_of_a_reader_can_be_read() -> None:
    steps = read_steps((TUTORIALS / "reader.md").read_text(encoding="utf-8"))
    assert [each.arguments for each in steps[:2]] == [("/river/NewAlbums",), ("All",)]
    assert len(steps) > 15


def test_what_is_no_step_is_refused() -> None:
    with pytest.raises(AssertionError, match="line 3: this is no step: Look around"):
        read_steps("# A\n\n1. Look around.\n")
