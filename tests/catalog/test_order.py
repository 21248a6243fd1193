"""The order of a script, and its cycles."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.catalog.order import order
from headgate.catalog.outcome import statement_number
from headgate.language.parse import parse_script
from headgate.language.statements import CreateFeed, Drop, NameKind, Statement, StreamRef
from headgate.model.errors import FeedCycle

NAMES = [f"F{number}" for number in range(8)]
feeds = st.builds(
    CreateFeed, st.sampled_from(NAMES), st.builds(StreamRef, st.sampled_from([*NAMES, "S"]))
)
drops = st.builds(Drop, st.just(NameKind.FEED), st.sampled_from(NAMES))
scripts = st.lists(feeds | drops, max_size=12)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", []),
        ("create feed A from S; create feed B from A; create feed C from S;", [0, 1, 2]),
        ("create feed A from C; create feed B from S; create feed C from S;", [1, 2, 0]),
        ("subscribe to A output console; create feed A from S; show feeds;", [1, 0, 2]),
        ("create feed A from B; drop feed X; create feed B from A;", [0, 1, 2]),
        ("create feed A from S; create feed A from B; create feed B from S;", [0, 2, 1]),
    ],
)
def test_what_is_needed_comes_first_and_the_rest_stays(script: str, expected: list[int]):
    assert list(order(parse_script(script))) == expected


@given(scripts)
def test_an_order_is_a_permutation_that_respects_needs_and_drops(script: list[Statement]):
    try:
        found = list(order(script))
    except FeedCycle as cycle:
        _assert_is_cycle(cycle, script)
        return
    assert sorted(found) == list(range(len(script)))
    for index, statement in enumerate(script):
        place = found.index(index)
        if isinstance(statement, Drop):
            assert place == index
            continue
        segment = _segment(script, index)
        definers = [i for i in segment if script[i].name == statement.from_clause.name]
        assert not definers or found.index(definers[0]) < place


def _assert_is_cycle(cycle: FeedCycle, script: list[Statement]) -> None:
    names = str(cycle).removeprefix("feed cycle: ").partition(";")[0].split(" → ")
    assert names[0] == names[-1]
    uses = {(each.name, each.from_clause.name) for each in script if isinstance(each, CreateFeed)}
    assert set(pairwise(names)) <= uses
    assert script[statement_number(cycle) - 1].name == names[0]


def _segment(script: list[Statement], index: int) -> range:
    """The indices between the drops around this one."""
    first = max((i + 1 for i in range(index) if isinstance(script[i], Drop)), default=0)
    after = (i for i in range(index, len(script)) if isinstance(script[i], Drop))
    return range(first, next(after, len(script)))


def test_a_long_cycle_is_told_in_short():
    ring = [CreateFeed(f"F{n}", StreamRef(f"F{(n + 1) % 5000}")) for n in range(5000)]
    with pytest.raises(FeedCycle) as caught:
        list(order(ring))
    told = str(caught.value)
    assert told.startswith("feed cycle: F0 → F1 → ")
    assert "→ … 4,981 more … →" in told
    assert told.endswith("F4999 → F0; a feed cannot be defined through itself")
