"""Joint constraints: is there one substitution of variables for all answers of a clause (§2.2)?

[Operators §2.2] joins the bindings of all predicates and then tests the value constraints. Here
that is done after each answer, with what is bound by then: a constraint that no substitution
satisfies refutes its clause before the remaining predicates are evaluated.

    boats(?b), people(?n), ?b > 2 * ?n         boats = {1, 2}    nothing to check yet
                                               people = {7}      no substitution: refuted

The check evaluates a filter with model/evaluate.py, the oracle, with operators that return the
known answers; so it agrees with the oracle by construction. A negation is checked only when all
answers are known, because it depends on what is bound outside of it.

Cost: nested loops over solutions, of which the paper assumes few. Clauses with equal joint
constraints are checked once for an item. Constraints of one variable against a number never come
here; they are value tests (predicates.py), because tens of thousands of subscriptions differ only
in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from headgate.match.bit_rows import Ints
from headgate.model.atoms import Argument, Call, Constraint
from headgate.model.evaluate import Answer, solutions
from headgate.model.filters import And, Filter, atoms_of, conjuncts, variables_of
from headgate.model.items import Item
from headgate.model.values import Value
from headgate.operators.answers import Bools
from headgate.operators.orders.clause_table import ClauseTable
from headgate.operators.orders.item_evaluations import ItemEvaluations
from headgate.operators.orders.item_kernels import UNKNOWN
from headgate.operators.orders.predicates import unify

Solutions = list[tuple[Value, ...]]
NO_ITEM = Item("", "", datetime(1970, 1, 1, tzinfo=UTC), {})
"""The oracle needs an item; operators that return known answers do not look at it."""


@dataclass(frozen=True, slots=True)
class BindingPredicates:
    """The predicates whose values are needed."""

    tested: frozenset[int]
    """By value tests."""
    joined: frozenset[int]
    """By joint constraints."""
    mask: Bools
    """[predicate]: whether it is one of either."""
    numbers: dict[Call, int]
    """Those of joint constraints, by their call."""

    def positions_in(self, predicates: Ints) -> list[int]:
        """The positions of binding predicates in this array."""
        if not self.tested and not self.joined:
            return []
        return np.flatnonzero(self.mask[predicates]).tolist()


def binding_predicates(table: ClauseTable) -> BindingPredicates:
    in_joint = np.repeat(table.joint >= 0, table.lengths)
    tested = frozenset(table.predicates[np.diff(table.test_start) > 0].tolist())
    joined = frozenset(table.predicates[in_joint].tolist())
    joined = frozenset(number for number in joined if variables_of(table.calls[number]))
    mask = np.zeros(len(table.calls), np.bool_)
    mask[list(tested | joined)] = True
    numbers = {table.calls[number]: number for number in joined}
    return BindingPredicates(tested, joined, mask, numbers)


class JointConstraints:
    """The solutions that binding predicates returned for some items, and the check over them."""

    def __init__(self, evaluations: ItemEvaluations, numbers: Mapping[Call, int]) -> None:
        self._evaluations, self._numbers = evaluations, numbers
        self._solutions: dict[int, Solutions] = {}

    def remember(self, node: int, found_solutions: Solutions) -> None:
        self._solutions[node] = found_solutions

    def are_satisfiable(self, slots: Ints) -> Bools:
        """For each slot whether a substitution satisfies its joint constraint as far as known."""
        table = self._evaluations.table
        items = self._evaluations.items_of(slots).tolist()
        joints = table.joint[self._evaluations.state.clause_of[slots]].tolist()
        keys = list(zip(items, joints, strict=True))
        checked: dict[tuple[int, int], bool] = {}
        for slot, key in zip(slots.tolist(), keys, strict=True):
            if key not in checked:
                checked[key] = self._is_satisfiable(slot, table.joints[key[1]])
        return np.array([checked[key] for key in keys], np.bool_)

    def _is_satisfiable(self, slot: int, joint: Filter) -> bool:
        known_solutions = self._known_solutions(slot)
        calls = [atom for atom in atoms_of(joint) if isinstance(atom, Call)]
        answers: dict[Call, Solutions] = {}
        for call in calls:
            number = self._numbers[unify(call)]
            if number in known_solutions:
                answers[call] = known_solutions[number]
        parts = _checkable_parts(joint, answers, complete=len(answers) == len(set(calls)))
        operators = {call.operator: _answer_from(call.operator, answers) for call in answers}
        substitutions = solutions(And(parts), NO_ITEM, {}, operators=operators, window_item=None)
        return next(substitutions, None) is not None

    def _known_solutions(self, slot: int) -> dict[int, Solutions]:
        """Solutions by predicate; a predicate that is false has none."""
        return {
            predicate: self._solutions.get(node, [])
            for predicate, (node, answer) in self._evaluations.answers_of(slot).items()
            if answer != UNKNOWN
        }


def _checkable_parts(
    joint: Filter, known: Mapping[Call, Solutions], *, complete: bool
) -> tuple[Filter, ...]:
    """The known calls, and the constraints whose variables they bind; all parts if complete."""
    if complete:
        return conjuncts(joint)
    calls = [part for part in conjuncts(joint) if isinstance(part, Call) and part in known]
    bound = frozenset().union(*(variables_of(call) for call in calls))
    tests = [
        part
        for part in conjuncts(joint)
        if isinstance(part, Constraint) and variables_of(part) <= bound
    ]
    return (*calls, *tests)


def _answer_from(name: str, answers: Mapping[Call, Solutions]) -> Callable[..., Answer]:
    def operator(_: Item, *arguments: Argument) -> Answer:
        return answers[Call(name, arguments)]

    return operator
