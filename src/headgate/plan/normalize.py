"""Plans → the four-level normal form of [RoSeS §4.3], by rewriting.

    level 4   ∪                  one union
    level 3   ⋈ ω μ ⋈ₙ           joins, windows, matches
    level 2   σ                  one filter in CNF over each source
    level 1   s                  sources

Law: the normal plan outputs the same items with the same annotations; normalising again changes
nothing. What exactly is normal is told by normal_form.py, and asserted here.

The rules are tried in the order of RULES at each node, inputs first, until none fires. Each
distinct subplan is normalised once, and what one rule makes is a plan like any other, so the memo
serves it too. A rewrite that comes back to a plan from which it started is a bug in the rules and
is reported with the names of the rules that made the loop.

A window over a union stays that: ω(∪(σ(s), …)). See distribute_join_over_union for why.

Cost: linear in the size of the result, which is refused beyond the limits of limits.py. One source
occurs once for each way that leads to it: as the paper says, "normalization might increase the
cost", and the optimiser's factorisation lowers it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headgate.model.errors import PlanError
from headgate.plan.algebra import (
    FeedRef,
    Filter,
    Join,
    Match,
    Plan,
    Source,
    TableJoin,
    Transform,
    Union,
    Window,
    bottom_up,
    inputs_of,
    with_inputs,
)
from headgate.plan.limits import check_branches, check_join_depth
from headgate.plan.normal_form import is_normal
from headgate.plan.plan_text import plan_text
from headgate.plan.rules.distribute_join_over_union import distribute_join_over_union
from headgate.plan.rules.distribute_match_over_union import distribute_match_over_union
from headgate.plan.rules.drop_false_branches import drop_false_branches
from headgate.plan.rules.drop_true_filters import drop_true_filters
from headgate.plan.rules.filter_to_cnf import filter_to_cnf
from headgate.plan.rules.flatten_unions import flatten_unions
from headgate.plan.rules.merge_filters import merge_filters
from headgate.plan.rules.push_filter_through_join import push_filter_through_join
from headgate.plan.rules.push_filter_through_match import push_filter_through_match
from headgate.plan.rules.push_filter_through_table_join import push_filter_through_table_join
from headgate.plan.rules.push_filter_through_union import push_filter_through_union
from headgate.plan.rules.push_match_through_join import push_match_through_join
from headgate.plan.rules.split_join_predicate import split_join_predicate

Rule = Callable[[Plan], Plan | None]

RULES: tuple[Rule, ...] = (
    drop_true_filters,
    merge_filters,
    filter_to_cnf,
    drop_false_branches,
    push_filter_through_union,
    push_filter_through_join,
    push_filter_through_match,
    push_filter_through_table_join,
    push_match_through_join,
    split_join_predicate,
    distribute_match_over_union,
    distribute_join_over_union,
    flatten_unions,
)

STEPS_MAX = 400
"""Rewrites that wait for each other. Far more than JOIN_DEPTH_MAX needs: beyond, it is a bug."""


def normalize(plan: Plan) -> Plan:
    """The equivalent plan in normal form."""
    return _Normalizer().normalize(plan)


def normalize_all(plans: Mapping[str, Plan]) -> dict[str, Plan]:
    """The plans of many feeds in normal form; what they have in common is the same node."""
    normalizer = _Normalizer()
    normal: dict[str, Plan] = {}
    for name, plan in plans.items():
        try:
            normal[name] = normalizer.normalize(plan)
        except PlanError as error:
            raise PlanError(f"feed '{name}' cannot be planned: {error}") from None
    return normal


@dataclass(slots=True)
class _Normalizer:
    memo: dict[Plan, Plan] = field(default_factory=dict)
    waiting: dict[Plan, str] = field(default_factory=dict)
    """The plans that are being rewritten, each with the rule that was last applied to it."""

    def normalize(self, plan: Plan) -> Plan:
        self.waiting.clear()
        nodes = bottom_up([plan])
        check_join_depth(_join_depth(nodes))
        check_branches(_branches(nodes))
        for node in nodes:
            self._normal(node)
        assert is_normal(self.memo[plan]), f"not in normal form:\n{plan_text(self.memo[plan])}"
        return self.memo[plan]

    def _normal(self, plan: Plan) -> Plan:
        if plan in self.memo:
            return self.memo[plan]
        rules = ", ".join(self.waiting.values())
        assert plan not in self.waiting, f"the rules loop: {rules}"
        assert len(self.waiting) <= STEPS_MAX, f"the rules do not end: {rules}"
        self.waiting[plan] = "inputs"
        changed = with_inputs(plan, tuple(self._normal(each) for each in inputs_of(plan)))
        normal = self._rewrite(plan) if changed == plan else self._normal(changed)
        del self.waiting[plan]
        self.memo[plan] = self.memo[normal] = normal
        return normal

    def _rewrite(self, plan: Plan) -> Plan:
        """The normal form of a plan whose inputs are normal."""
        for rule in RULES:
            changed = rule(plan)
            if changed is not None:
                self.waiting[plan] = rule.__name__
                return self._normal(changed)
        return plan


def _join_depth(nodes: list[Plan]) -> int:
    """How many joins lie over each other at most, given all nodes bottom-up."""
    depth: dict[Plan, int] = {}
    for node in nodes:
        below = max((depth[each] for each in inputs_of(node)), default=0)
        depth[node] = below + isinstance(node, Join | TableJoin | Match)
    return depth[nodes[-1]]


def _branches(nodes: list[Plan]) -> int:
    """How many inputs a union can get at most, given all nodes bottom-up.

    It is told before any rewriting: to find out that there are too many by making them is to have
    made them. Equal branches that come from different inputs are counted twice.
    """
    branches: dict[Plan, int] = {}
    for node in nodes:
        match node:
            case Union(inputs):
                branches[node] = sum(branches[each] for each in set(inputs))
            case Filter() | Match() | Window() | Transform():
                branches[node] = branches[node.input]
            case Join():
                branches[node] = branches[node.primary]
            case Source() | FeedRef() | TableJoin():
                branches[node] = 1
    return max(branches.values())
