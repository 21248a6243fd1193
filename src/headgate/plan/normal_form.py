"""Is a plan in the four-level normal form of [RoSeS §4.3]?

    plan    = τ(top) | top
    top     = ∪(branch, …) | branch            none or several branches, all different
    branch  = leaf
            | μ[pattern](branch)               but never directly over a join
            | ⋈ id[P](branch, ω(top))          P in CNF, and each scope of it looks at the window
            | ⋈ₙ[on](leaf, …)                  the language joins tables, not feeds over them
            | σ[F](⋈ₙ[on](leaf, …))            F in CNF, with what belongs to no single side
    leaf    = s | σ[F](s)                      F in CNF, neither true nor false

The paper's four levels are leaf (1 and 2), branch (3) and top (4). A primary may itself be a join,
as joins stack. Inside a window stands a top of its own: windows do not distribute over unions.
"""

from __future__ import annotations

from headgate.model.filters import FALSE, TRUE
from headgate.model.filters import Filter as Predicate
from headgate.plan.algebra import (
    EMPTY,
    Filter,
    Join,
    Match,
    Plan,
    Source,
    TableJoin,
    Transform,
    Union,
)
from headgate.plan.cnf import is_cnf
from headgate.plan.rules.push_filter_through_table_join import push_filter_through_table_join
from headgate.plan.rules.split_join_predicate import split_join_predicate


def is_normal(plan: Plan) -> bool:
    known: dict[Plan, bool] = {}
    return _is_top(plan.input if isinstance(plan, Transform) else plan, known)


def _is_top(plan: Plan, known: dict[Plan, bool]) -> bool:
    if not isinstance(plan, Union):
        return _is_branch(plan, known)
    distinct = len(set(plan.inputs)) == len(plan.inputs) != 1
    return distinct and all(_is_branch(each, known) for each in plan.inputs)


def _is_branch(plan: Plan, known: dict[Plan, bool]) -> bool:
    if plan not in known:
        known[plan] = _is_new_branch(plan, known)
    return known[plan]


def _is_new_branch(plan: Plan, known: dict[Plan, bool]) -> bool:
    match plan:
        case Source():
            return True
        case Filter(filter_, Source()):
            return _is_normal_filter(filter_)
        case Filter(filter_, TableJoin() as join):
            pushed = push_filter_through_table_join(plan)
            return _is_normal_filter(filter_) and pushed is None and _is_branch(join, known)
        case Match(_, _, input_):
            return not isinstance(input_, Join) and _is_branch(input_, known)
        case Join(_, predicate, primary, window):
            shape = _is_branch(primary, known) and _is_top(window.input, known)
            minimal = window.input != EMPTY and split_join_predicate(plan) is None
            return shape and minimal and is_cnf(predicate) and predicate != FALSE
        case TableJoin():
            return all(_is_branch(each, known) for each in plan.inputs)
    return False


def _is_normal_filter(filter_: Predicate) -> bool:
    return filter_ not in (TRUE, FALSE) and is_cnf(filter_)
