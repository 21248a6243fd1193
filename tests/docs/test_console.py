"""The rules for `…`, tested on their own: a matcher that is too kind would pass wrong docs."""

import pytest
from tests.docs.console import read_commands, update


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ([], []),
        (["same"], ["same"]),
        (["took … s"], ["took 0.3 s"]),
        (["…"], []),
        (["…"], ["a", "b"]),
        (["a", "…", "d"], ["a", "b", "c", "d"]),
        (["a", "…", "d"], ["a", "d"]),
        (["…", "b", "…"], ["a", "b", "b", "c"]),
        (["a.c"], ["a.c"]),
        (["a", ""], ["a"]),
    ],
)
def test_output_that_matches_leaves_the_example_alone(expected: list[str], actual: list[str]):
    assert [line for line in update(expected, actual) if line] == [x for x in expected if x]


@pytest.mark.parametrize(
    ("expected", "actual", "updated"),
    [
        ([], ["a"], ["a"]),
        (["a"], [], []),
        (["a.c"], ["abc"], ["abc"]),
        (["took … s"], ["took 3 min"], ["took 3 min"]),
        (["took … s", "old"], ["took 1 s", "new"], ["took … s", "new"]),
        (["old", "…", "end"], ["new", "b", "c", "end"], ["new", "…", "end"]),
        (["a", "…", "old"], ["a", "b", "c", "new"], ["a", "…", "new"]),
        (["id …", "x"], ["more", "id 7", "x"], ["more", "id …", "x"]),
    ],
)
def test_output_that_differs_is_updated_where_it_differs(
    expected: list[str], actual: list[str], updated: list[str]
):
    assert list(update(expected, actual)) == updated


def test_a_command_may_go_on_over_several_lines():
    first, second = read_commands(["$ echo a \\", "    b", "a b", "$ true"])
    assert first.shell == "echo a \\\n    b"
    assert first.expected == ("a b",)
    assert (second.shell, second.expected) == ("true", ())


def test_output_before_any_command_is_refused():
    with pytest.raises(AssertionError, match="begins with a command"):
        read_commands(["output"])
