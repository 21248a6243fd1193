"""Normal plans: the same items as the naive plan, in the four levels, and no further change."""

import pytest
from hypothesis import given
from tests.plan.strategies import OPERATORS, contents, definitions, plans, streams

from headgate.language.statements import Statement
from headgate.model.items import Item
from headgate.plan.algebra import Plan, bottom_up
from headgate.plan.compose import compose
from headgate.plan.execute import execute
from headgate.plan.normal_form import is_normal
from headgate.plan.normalize import RULES, Rule, normalize

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


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@given(plan=plans(), items=streams())
def test_each_rule_alone_keeps_its_law(rule: Rule, plan: Plan, items: Streams):
    for node in bottom_up([plan]):
        changed = rule(node)
        if changed is not None:
            assert changed != node, "a rule that changes nothing must not fire"
            outputs_alike(node, changed, items)
