"""Which joins of tables are served, in which groups, and why others are not."""

from __future__ import annotations

import pytest
from tests.tables.table_world import TABLES, definitions_of, plans_of

from headgate.language.statements import RegisterTable
from headgate.model.filters import TRUE
from headgate.plan import algebra
from headgate.tables.group_joins import GroupAssigner
from headgate.tables.join_groups import JoinGroup, has_rest, split_plan

MORE = (
    TABLES
    + """
register table Prices (Symbol text key, Price float) from json 'prices/*.json' keep 3 days;
register stream News from json 'news/*.json' (Symbol text, PER float, Name text);
register operator odd(n int) from 'a.b:odd';
create feed Rated from Stocks as $s join Reviews as $r on Symbol where $s[PER > 45];
"""
    + "".join(f"register table T{n} (Symbol text key) from json 't/*.json';" for n in range(8))
)


def split(text: str, name: str = "F") -> object:
    return split_plan(plans_of(definitions_of(MORE + text))[name])


def test_a_filter_over_a_join_is_part_of_it() -> None:
    actual = split_plan(
        plans_of(definitions_of(MORE + "create feed F from Rated where PER < 90;"))["F"]
    )
    assert actual.rest is None
    (join,) = actual.joins
    assert join.sides[0].ranges["PER"][1] < 90
    assert not has_rest(join)


def test_other_conditions_are_residual_filters() -> None:
    text = (
        "create feed F from Stocks as $s join Reviews as $r on Symbol where $s[Name contains 'x'];"
    )
    (join,) = split_plan(plans_of(definitions_of(MORE + text))["F"]).joins
    assert has_rest(join)
    assert join.rest == TRUE


def test_a_union_is_split() -> None:
    actual = split_plan(plans_of(definitions_of(MORE + "create feed F from (News | Rated);"))["F"])
    assert len(actual.joins) == 1
    assert actual.rest == algebra.Source("News")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("from Stocks " + " ".join(f"join T{n} on Symbol" for n in range(8)), "it joins 9 tables"),
        ("from Stocks as $s join Reviews on Symbol where $s[odd(3)]", "it calls an operator"),
        (
            "from News as $n join last 3 days on Rated with $n[Symbol = window.Symbol]",
            "below another operation",
        ),
    ],
)
def test_unsupported_joins_are_refused_with_a_reason(text: str, reason: str) -> None:
    actual = split_plan(plans_of(definitions_of(f"{MORE} create feed F {text};"))["F"])
    assert reason in actual.refused
    assert not actual.joins


def test_the_name_of_a_group_depends_on_everything_its_rows_depend_on() -> None:
    definitions = definitions_of(MORE)
    (join,) = split_plan(plans_of(definitions)["Rated"]).joins
    tables = {n: each for n, each in definitions.items() if isinstance(each, RegisterTable)}
    (group,) = (part.group for part in GroupAssigner(tables).of(join))
    assert JoinGroup.from_json(group.to_json()) == group
    assert JoinGroup.from_json(group.to_json()).name == group.name
    assert group.schema.names == ("Symbol", "PER", "Name", "id", "Rating")
    other = definitions_of(MORE.replace("PER float, Name text, op", "Name text, PER float, op"))
    tables = {n: each for n, each in other.items() if isinstance(each, RegisterTable)}
    assert [part.group.name for part in GroupAssigner(tables).of(join)] != [group.name]
