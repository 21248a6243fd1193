"""Normal plans: the same items as the naive plan, in the four levels, and no further change."""

import pytest
from hypothesis import given, settings
from tests.plan.cases import condition, join, last, rated, s, t, u, union, where
from tests.plan.execute import execute
from tests.plan.strategies import (
    OPERATORS,
    START,
    contents,
    definitions,
    filtered_table_joins,
    plans,
    registered,
    streams,
    tables,
)

from headgate.language.statements import (
    Condition,
    CreateFeed,
    Group,
    Statement,
    StreamRef,
    WindowJoin,
)
from headgate.model.duration import ItemCount
from headgate.model.errors import PlanError
from headgate.model.filters import FALSE
from headgate.model.items import Item
from headgate.plan import normalize as normalize_module
from headgate.plan.algebra import EMPTY, FeedRef, Filter, Plan, Source, Union, bottom_up
from headgate.plan.normalize import is_normal, normalize, normalize_all
from headgate.plan.plan_text import plan_text
from headgate.plan.rules import RULES, Rule
from headgate.plan.translate import compose

Streams = dict[str, list[Item]]


def outputs_alike(left: Plan, right: Plan, items: Streams) -> None:
    found, expected = execute(right, items, OPERATORS), execute(left, items, OPERATORS)
    assert contents(found) == contents(expected)


@given(definitions(), streams())
def test_a_normal_feed_outputs_what_was_written(definitions: dict[str, Statement], items: Streams):
    written = compose("last", definitions)
    normal = normalize(written)
    outputs_alike(written, normal, items)
    assert is_normal(normal)
    assert normalize(normal) == normal


@given(plans(), streams())
def test_any_plan_has_a_normal_form(plan: Plan, items: Streams):
    normal = normalize(plan)
    outputs_alike(plan, normal, items)
    assert is_normal(normal)
    assert normalize(normal) == normal


@given(filtered_table_joins(), tables())
def test_filters_over_table_joins(plan: Plan, items: Streams):
    outputs_alike(plan, normalize(plan), items)


def test_keys_that_are_equal_but_spelt_differently_still_join():
    items = {
        "Stocks": [Item("1", "Stocks", START, {"Symbol": "ACME"})],
        "Reviews": [Item("1", "Reviews", START, {"Symbol": " acme"})],
    }
    plan = where("Symbol matches '^ACME$' and Symbol = 'Acme'", rated())
    (found,) = execute(normalize(plan), items)
    assert found.attributes == {"Symbol": "ACME"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@settings(max_examples=settings.default.max_examples // 3)  # there are many rules
@given(plan=plans(), items=streams())
def test_each_rule_alone_gives_an_equivalent_plan(rule: Rule, plan: Plan, items: Streams):
    for node in bottom_up([plan]):
        changed = rule(node)
        if changed is not None:
            assert changed != node, "a rule that changes nothing must not fire"
            outputs_alike(node, changed, items)


def test_false_branches_disappear():
    assert normalize(Union((Filter(FALSE, Source("s")), Source("t")))) == Source("t")
    assert normalize(Filter(FALSE, Source("s"))) == EMPTY


def feed(name: str, *members: StreamRef, conditions: dict[str, str]) -> CreateFeed:
    where = tuple(Condition(variable, condition(text)) for variable, text in conditions.items())
    return CreateFeed(name, Group(members), None, (), where)


def doubling(levels: int) -> dict[str, Statement]:
    """Each feed is two different selections of the one before it."""
    found = {**registered(), "f0": CreateFeed("f0", StreamRef("s1"))}
    for level in range(1, levels + 1):
        below = f"f{level - 1}"
        found[f"f{level}"] = feed(
            f"f{level}",
            StreamRef(below, "l"),
            StreamRef(below, "r"),
            conditions={"l": f"a = {level}", "r": f"b = {level}"},
        )
    return found


def test_feeds_that_double_are_refused_before_they_explode():
    plan = compose("f64", doubling(64))
    with pytest.raises(PlanError, match=r"feed 'f64' cannot be planned: .* 10,000 branches"):
        normalize_all({"f64": plan})


def test_feeds_that_double_are_planned_within_the_limit():
    normal = normalize(compose("f10", doubling(10)))
    assert isinstance(normal, Union)
    assert len(normal.inputs) == 1024


def test_a_feed_used_twice_without_conditions_counts_once():
    found = {**registered(), "f0": CreateFeed("f0", StreamRef("s1"))}
    for level in range(1, 65):
        below = StreamRef(f"f{level - 1}")
        found[f"f{level}"] = CreateFeed(f"f{level}", Group((below, below)))
    assert normalize(compose("f64", found)) == Source("s1")


def test_joins_over_joins_are_limited():
    window = WindowJoin(ItemCount(1), StreamRef("s2"), "v", condition("a = 1"))
    many = CreateFeed("many", StreamRef("s1", "v"), None, (window,) * 1000)
    with pytest.raises(PlanError, match="more than 100 joins over each other"):
        normalize(compose("many", {**registered(), "many": many}))
    some = CreateFeed("some", StreamRef("s1", "v"), None, (window,) * 100)
    assert is_normal(normalize(compose("some", {**registered(), "some": some})))


def test_rules_that_loop_are_named(monkeypatch: pytest.MonkeyPatch):
    def there(plan: Plan) -> Plan | None:
        return Source("t") if plan == Source("s") else None

    def back(plan: Plan) -> Plan | None:
        return Source("s") if plan == Source("t") else None

    monkeypatch.setattr(normalize_module, "RULES", (there, back))
    with pytest.raises(AssertionError, match="the rules loop: there, back"):
        normalize(Source("s"))


def test_rules_that_do_not_end_are_named(monkeypatch: pytest.MonkeyPatch):
    def grow(plan: Plan) -> Plan | None:
        return Source(plan.name + "s") if isinstance(plan, Source) else None

    monkeypatch.setattr(normalize_module, "RULES", (grow,))
    with pytest.raises(AssertionError, match="the rules do not end: grow"):
        normalize(Source("s"))


@pytest.mark.parametrize(
    "plan",
    [
        where("a = 1", union(s, t)),
        where("a = 1", where("b = 1", s)),
        where("b = 1 and a = 1", s),
        union(union(s, t), u),
        union(s),
        union(s, s),
        join(union(s, t), "title = window.title", last(1, u)),
        join(s, "title = window.title and a = 1", last(1, u)),
        join(s, "title = window.title", last(1, where("a = 1", union(s, t)))),
        where("PER = 1", rated()),
        FeedRef("f"),
        Filter(FALSE, s),
    ],
    ids=plan_text,
)
def test_plans_that_are_not_normal(plan: Plan):
    assert not is_normal(plan)
