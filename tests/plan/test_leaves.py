"""The leaves on each source pass all items that the feeds output."""

from __future__ import annotations

from hypothesis import given
from tests.plan.execute import execute
from tests.plan.papers import SECTION_3, defined
from tests.plan.strategies import OPERATORS, definitions, streams

from headgate.language.statements import Statement
from headgate.language.unparse import unparse_filter
from headgate.model.evaluate import matches
from headgate.model.filters import TRUE
from headgate.model.items import Item
from headgate.plan.leaves import leaves_by_source
from headgate.plan.normalize import normalize, normalize_all
from headgate.plan.translate import compose, compose_all


def test_feeds_with_equal_filters_share_one_leaf() -> None:
    known = defined(
        "register stream T from json 'x' (a int);"
        "create feed A from T where a > 5; create feed B from T where a > 5;"
        "create feed C from T; create feed D from (A | C);"
    )
    by_source = leaves_by_source(normalize_all(compose_all("ABCD", known)))
    feeds_by_filter = {unparse_filter(each): users.feeds for each, users in by_source["T"].items()}
    assert feeds_by_filter == {"a > 5": ["A", "B"], "true": ["C", "D"]}


def test_several_branches_on_one_source_are_one_filter() -> None:
    known = defined(
        "register stream T from json 'x' (a int);"
        "create feed A from T where a > 5; create feed B from T where a < 2;"
        "create feed C from (A | B);"
    )
    by_source = leaves_by_source({"C": normalize(compose("C", known))})
    assert [unparse_filter(each) for each in by_source["T"]] == ["a > 5 or a < 2"]


def test_operator_calls_are_tested_after_the_program() -> None:
    known = defined(
        "register stream T from json 'x' (a int); register operator near(x int) cost 1 from 'm:f';"
        "create feed A from T where a > 5 and near(3) and not (near(4) and a < 9);"
    )
    by_source = leaves_by_source({"A": normalize(compose("A", known))})
    assert [unparse_filter(each) for each in by_source["T"]] == ["a > 5"]
    (users,) = by_source["T"].values()
    assert (users.feeds, users.join_inputs, users.names) == ([], [], ["A"])
    ((feed, tested),) = users.tested
    whole = "near(3) and (not near(4) or not a < 9) and a > 5"
    assert (feed, unparse_filter(tested)) == ("A", whole)


def test_filters_below_windows_are_leaves() -> None:
    known = defined(SECTION_3)
    by_source = leaves_by_source({"M": normalize(compose("MusePhotoStream", known))})
    assert [unparse_filter(each) for each in by_source["MusicPhotos"]] == ["category = 'rock'"]
    assert list(by_source["FriendsPhotos"]) == [TRUE]
    assert not any(users.feeds for leaves in by_source.values() for users in leaves.values())


@given(definitions(), streams())
def test_items_of_a_plain_branch_are_in_the_feed(
    definitions: dict[str, Statement], items: dict[str, list[Item]]
) -> None:
    plan = normalize(compose("last", definitions))
    output = {(item.source, item.id) for item in execute(plan, items, OPERATORS)}
    for source, leaves in leaves_by_source({"last": plan}).items():
        own = [each for each, users in leaves.items() if users.feeds]
        assert len(own) <= 1
        for item in items.get(source, ()):
            if any(matches(each, item) for each in own):
                assert (source, item.id) in output


@given(definitions(), streams())
def test_leaves_pass_every_item_that_the_plan_outputs(
    definitions: dict[str, Statement], items: dict[str, list[Item]]
) -> None:
    plan = normalize(compose("last", definitions))
    by_source = leaves_by_source({"last": plan})
    kept = {
        source: [
            item for item in some if any(matches(each, item) for each in by_source.get(source, ()))
        ]
        for source, some in items.items()
    }
    assert execute(plan, kept, OPERATORS) == execute(plan, items, OPERATORS)


@given(definitions(), streams())
def test_items_that_operators_accept_are_in_the_feed(
    definitions: dict[str, Statement], items: dict[str, list[Item]]
) -> None:
    """A feed without joins has exactly what its leaves and its operators say."""
    plan = normalize(compose("last", definitions))
    leaves = leaves_by_source({"last": plan})
    if any(users.join_inputs for own in leaves.values() for users in own.values()):
        return
    output = {(item.source, item.id) for item in execute(plan, items, OPERATORS)}
    found = {
        (item.source, item.id)
        for source, own in leaves.items()
        for item in items.get(source, ())
        for cheap, users in own.items()
        if matches(cheap, item)
        and (
            users.feeds
            or any(matches(tested, item, operators=OPERATORS) for _, tested in users.tested)
        )
    }
    assert found == output
