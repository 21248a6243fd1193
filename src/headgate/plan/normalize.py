"""Plans → the four-level normal form of [RoSeS §4.3], by rewriting.

    level 4   ∪                  one union
    level 3   ⋈ ω μ ⋈ₙ           joins, windows, matches
    level 2   σ                  one filter in CNF over each source
    level 1   s                  sources

Invariant: the normal plan outputs the same items with the same annotations, and normalising again
changes nothing. `is_normal` defines the normal form exactly and is asserted for every result.

The rules (rules.py) are tried in the order of RULES at each node, inputs first, until none fires.
Each distinct subplan is normalised once, and so is each plan that a rule makes. A rewrite that
returns to a plan from which it started is a bug in the rules; the assertion names the rules of the
loop.

A window over a union stays as it is: ω(∪(σ(s), …)). See `distribute_join_over_union`.

Cost: linear in the size of the result. A source occurs once for each path that leads to it: as the
paper says, "normalization might increase the cost". Factorisation lowers it again. A plan beyond
the limits (BRANCHES_MAX, JOIN_DEPTH_MAX) is refused with PlanError before any rewriting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.model.errors import PlanError
from headgate.model.filters import FALSE, TRUE
from headgate.model.filters import Filter as Predicate
from headgate.plan.algebra import (
    EMPTY,
    FeedRef,
    Filter,
    Join,
    Match,
    NaturalJoin,
    Plan,
    Source,
    Transform,
    Union,
    Window,
    bottom_up,
    inputs_of,
    with_inputs,
)
from headgate.plan.cnf import is_cnf
from headgate.plan.plan_text import plan_text
from headgate.plan.rules import RULES, push_filter_through_table_join, split_join_predicate

JOIN_DEPTH_MAX = 100
"""Joins, table joins and matches over each other, after composition."""

BRANCHES_MAX = 10_000
"""Inputs of one union in normal form; each feed over a feed can double their number."""

STEPS_MAX = 400
"""Nested rewrites; far more than JOIN_DEPTH_MAX needs, so more than this is a bug in the rules."""


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
    in_progress: dict[Plan, str] = field(default_factory=dict)
    """The plans that are being rewritten, each with the rule that was last applied to it."""

    def normalize(self, plan: Plan) -> Plan:
        self.in_progress.clear()
        nodes = bottom_up([plan])
        _check_limits(nodes)
        for node in nodes:
            self._normal(node)
        assert is_normal(self.memo[plan]), f"not in normal form:\n{plan_text(self.memo[plan])}"
        return self.memo[plan]

    def _normal(self, plan: Plan) -> Plan:
        if plan in self.memo:
            return self.memo[plan]
        rules = ", ".join(self.in_progress.values())
        assert plan not in self.in_progress, f"the rules loop: {rules}"
        assert len(self.in_progress) <= STEPS_MAX, f"the rules do not end: {rules}"
        self.in_progress[plan] = "inputs"
        changed = with_inputs(plan, tuple(self._normal(each) for each in inputs_of(plan)))
        normal = self._rewrite(plan) if changed == plan else self._normal(changed)
        del self.in_progress[plan]
        self.memo[plan] = self.memo[normal] = normal
        return normal

    def _rewrite(self, plan: Plan) -> Plan:
        """The normal form of a plan whose inputs are normal."""
        for rule in RULES:
            changed = rule(plan)
            if changed is not None:
                self.in_progress[plan] = rule.__name__
                return self._normal(changed)
        return plan


# --- limits --------------------------------------------------------------------------------------


def _check_limits(nodes: list[Plan]) -> None:
    """Raise PlanError if the plan with these nodes is too large to be normalised."""
    if _join_depth(nodes) > JOIN_DEPTH_MAX:
        raise PlanError(
            f"the plan has more than {JOIN_DEPTH_MAX} joins over each other; "
            "materialise a feed below it with 'register feed … apply … as …'"
        )
    if _branches(nodes) > BRANCHES_MAX:
        raise PlanError(
            f"the plan has more than {BRANCHES_MAX:,} branches; filter fewer alternatives, or "
            "materialise a feed below it with 'register feed … apply … as …'"
        )


def _join_depth(nodes: list[Plan]) -> int:
    """How many joins lie over each other at most, given all nodes bottom-up."""
    depth: dict[Plan, int] = {}
    for node in nodes:
        below = max((depth[each] for each in inputs_of(node)), default=0)
        depth[node] = below + isinstance(node, Join | NaturalJoin | Match)
    return depth[nodes[-1]]


def _branches(nodes: list[Plan]) -> int:
    """How many inputs a union can get at most, given all nodes bottom-up.

    It is computed before any rewriting, so that too many branches are never built. Equal branches
    that come from different inputs are counted twice.
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
            case Source() | FeedRef() | NaturalJoin():
                branches[node] = 1
    return max(branches.values())


# --- the normal form -----------------------------------------------------------------------------


def is_normal(plan: Plan) -> bool:
    """Whether a plan is in normal form.

    plan    = τ(top) | top
    top     = ∪(branch, …) | branch          none or several branches, all different
    branch  = leaf
            | μ[pattern](branch)             but never directly over a join
            | ⋈ id[P](branch, ω(top))        P in CNF, and each scope of it looks at the window
            | ⋈ₙ[on](leaf, …)                the language joins tables, not feeds over them
            | σ[F](⋈ₙ[on](leaf, …))          F in CNF; no single side owns a conjunct of it
    leaf    = s | σ[F](s)                    F in CNF, neither true nor false

    The paper's levels are leaf (1 and 2), branch (3) and top (4). The primary of a join may be a
    join. Inside a window stands a top of its own: windows do not distribute over unions.
    """
    checked: dict[Plan, bool] = {}
    return _is_top(plan.input if isinstance(plan, Transform) else plan, checked)


def _is_top(plan: Plan, checked: dict[Plan, bool]) -> bool:
    if not isinstance(plan, Union):
        return _is_branch(plan, checked)
    distinct = len(set(plan.inputs)) == len(plan.inputs) != 1
    return distinct and all(_is_branch(each, checked) for each in plan.inputs)


def _is_branch(plan: Plan, checked: dict[Plan, bool]) -> bool:
    if plan not in checked:
        checked[plan] = _is_new_branch(plan, checked)
    return checked[plan]


def _is_new_branch(plan: Plan, checked: dict[Plan, bool]) -> bool:
    match plan:
        case Source():
            return True
        case Filter(filter_, Source()):
            return _is_normal_filter(filter_)
        case Filter(filter_, NaturalJoin() as join):
            pushed = push_filter_through_table_join(plan)
            return _is_normal_filter(filter_) and pushed is None and _is_branch(join, checked)
        case Match(_, _, input_):
            return not isinstance(input_, Join) and _is_branch(input_, checked)
        case Join(_, predicate, primary, window):
            shape = _is_branch(primary, checked) and _is_top(window.input, checked)
            minimal = window.input != EMPTY and split_join_predicate(plan) is None
            return shape and minimal and is_cnf(predicate) and predicate != FALSE
        case NaturalJoin():
            return all(_is_branch(each, checked) for each in plan.inputs)
    return False


def _is_normal_filter(filter_: Predicate) -> bool:
    return filter_ not in (TRUE, FALSE) and is_cnf(filter_)
