"""What is said about two plans holds for all items: against every item of a small world."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.execute import execute
from tests.plan.strategies import START

from headgate.language.parse import FilterParser, parse_script
from headgate.language.statements import CreateFeed
from headgate.model.filters import Filter
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.plan import algebra
from headgate.plan.algebra import Plan
from headgate.plan.normalize import normalize
from headgate.plan.relate import PlanBranches, PlanRelation, relate, remaining_filter
from headgate.plan.translate import compose

SCHEMA = Schema((Attribute("n", Type.INT), Attribute("t", Type.TEXT)))
PARSER = FilterParser(SCHEMA)
TEXTS = ["", "a", "b", "a b", "b c"]
ITEMS = {
    source: [
        Item(f"{n}-{t}", source, START, {k: v for k, v in (("n", n), ("t", t)) if v is not None})
        for n, t in product([None, 0, 1, 2, 3, 4], [None, *TEXTS])
    ]
    for source in ("S", "T")
}
atoms = st.one_of(
    st.builds("n {} {}".format, st.sampled_from(["<", "<=", "=", ">", "!="]), st.integers(0, 4)),
    st.builds("t contains '{}'".format, st.sampled_from(["a", "b", "c", "a b"])),
    st.sampled_from(["n is present", "n between 1 and 3", "t = 'a b'", "n in (1, 2)"]),
)
texts = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=4,
)
filters = texts.map(PARSER.parse)
branches = st.one_of(
    st.sampled_from(["S", "T"]).map(algebra.Source),
    st.builds(algebra.Filter, filters, st.sampled_from(["S", "T"]).map(algebra.Source)),
)
plans = st.lists(branches, min_size=1, max_size=3).map(
    lambda found: normalize(algebra.Union(tuple(found)))
)


def ids(plan: Plan) -> frozenset[tuple[str, str]]:
    return frozenset((each.source, each.id) for each in execute(plan, ITEMS))


@given(plans, plans)
def test_what_is_said_is_so(left: Plan, right: Plan) -> None:
    said = relate(PlanBranches.of(left), PlanBranches.of(right))
    back = relate(PlanBranches.of(right), PlanBranches.of(left))
    opposite = {
        PlanRelation.WIDER: PlanRelation.NARROWER,
        PlanRelation.NARROWER: PlanRelation.WIDER,
    }
    assert back == (None if said is None else opposite.get(said, said))
    if said in (PlanRelation.EQUAL, PlanRelation.WIDER):
        assert ids(left) >= ids(right)
    if said in (PlanRelation.EQUAL, PlanRelation.NARROWER):
        assert ids(left) <= ids(right)


@given(plans)
def test_a_plan_is_equal_to_itself(plan: Plan) -> None:
    assert relate(PlanBranches.of(plan), PlanBranches.of(plan)) is PlanRelation.EQUAL


@given(filters, filters)
def test_the_rest_of_a_filter_selects_it_from_a_wider_one(narrow: Filter, wide: Filter) -> None:
    def selected(*parts: Filter) -> frozenset[tuple[str, str]]:
        plan: Plan = algebra.Source("S")
        for part in parts:
            plan = algebra.Filter(part, plan)
        return ids(plan)

    if selected(narrow) <= selected(wide):
        assert selected(remaining_filter(narrow, wide), wide) == selected(narrow)


SCRIPT = """
register stream S from post (n int, t text);
create feed Wide from S where t contains 'a';
create feed Narrow from S where t contains 'a' and n > 2;
create feed Same from Wide where n >= 3 or n > 2;
create feed Joined from S as $s join last 2 items on S with $s[n = window.n];
create feed Over from Joined;
create feed Both from (Joined | Narrow);
"""


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("Wide", "Narrow", PlanRelation.WIDER),
        ("Narrow", "Same", PlanRelation.EQUAL),
        ("Joined", "Over", PlanRelation.EQUAL),
        ("Both", "Narrow", PlanRelation.WIDER),
        ("Both", "Joined", PlanRelation.WIDER),
        ("Joined", "Narrow", None),
        ("Both", "Wide", None),
    ],
)
def test_feeds(left: str, right: str, expected: PlanRelation | None) -> None:
    statements = {str(each.name): each for each in parse_script(SCRIPT)}  # type: ignore[union-attr]
    assert isinstance(statements["Wide"], CreateFeed)
    plans = [PlanBranches.of(normalize(compose(name, statements))) for name in (left, right)]
    assert relate(*plans) is expected
