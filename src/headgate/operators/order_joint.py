"""The joint part of clauses: is there one substitution for all that is known so far (§2.2)?

[Operators] joins the bindings of all predicates and then tests the value constraints.
Here that is done after each answer, with what is bound by then: a constraint that no substitution
satisfies refuses its clause before the rest of it is asked.

    boats(?b), people(?n), ?b > 2 * ?n         boats = {1, 2}    nothing to judge yet
                                               people = {7}      no: refused

What is asked of the judge, model/evaluate.py, is a filter whose operators recall their answers; so
this says the same as the judge by construction. A negation is put to it only when all is known, as
it sees what is bound outside of it.

Cost: nested loops over solutions, of which the paper assumes few. Clauses with an equal joint part
are judged once for an item. Constraints of one variable against a number never come here
(order_value_tests.py), as they are what tens of thousands of subscriptions differ in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from headgate.match.kernels import Ints
from headgate.model.atoms import Argument, Call, Constraint
from headgate.model.evaluate import Answer, solutions
from headgate.model.filters import And, Filter, atoms_of, conjuncts, variables_of
from headgate.model.items import Item
from headgate.model.values import Value
from headgate.operators.order_answers import Bools
from headgate.operators.order_lane_kernels import UNKNOWN
from headgate.operators.order_lanes import Lanes
from headgate.operators.order_predicates import unify
from headgate.operators.order_table import ClauseTable

Solutions = list[tuple[Value, ...]]
NOBODY = Item("", "", datetime(1970, 1, 1, tzinfo=UTC), {})
"""The judge wants an item; operators that recall their answers do not look at it."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The predicates whose values matter: to tests, to joint parts; these also by their call."""

    tested: frozenset[int]
    joined: frozenset[int]
    mask: Bools
    """Of each predicate whether it is one of these."""
    numbers: dict[Call, int]

    def among(self, predicates: Ints) -> list[int]:
        """Where in this list they are."""
        if not self.tested and not self.joined:
            return []
        return np.flatnonzero(self.mask[predicates]).tolist()


def binding_of(table: ClauseTable) -> Binding:
    in_joint = np.repeat(table.joint >= 0, table.lengths)
    tested = frozenset(table.predicates[np.diff(table.test_start) > 0].tolist())
    joined = frozenset(table.predicates[in_joint].tolist())
    joined = frozenset(each for each in joined if variables_of(table.calls[each]))
    mask = np.zeros(len(table.calls), np.bool_)
    mask[list(tested | joined)] = True
    return Binding(tested, joined, mask, {table.calls[each]: each for each in joined})


class JointParts:
    """What the binding predicates of some lanes have answered, and the judgement over it."""

    def __init__(self, lanes: Lanes, numbers: Mapping[Call, int]) -> None:
        self._lanes, self._numbers = lanes, numbers
        self._solutions: dict[int, Solutions] = {}

    def remember(self, node: int, found: Solutions) -> None:
        self._solutions[node] = found

    def judge(self, places: Ints) -> Bools:
        """For each clause whether something satisfies what is known of its joint part."""
        lane_of = self._lanes.lanes_of(places).tolist()
        joints = self._lanes.table.joint[self._lanes.clause_of[places]].tolist()
        judged: dict[tuple[int, int], bool] = {}
        for at, key in zip(places.tolist(), zip(lane_of, joints, strict=True), strict=True):
            if key not in judged:
                judged[key] = self._is_possible(at, self._lanes.table.joints[key[1]])
        return np.array([judged[key] for key in zip(lane_of, joints, strict=True)], np.bool_)

    def _is_possible(self, at: int, joint: Filter) -> bool:
        known = self._known(at)
        calls = [atom for atom in atoms_of(joint) if isinstance(atom, Call)]
        answers: dict[Call, Solutions] = {}
        for call in calls:
            number = self._numbers[unify(call)]
            if number in known:
                answers[call] = known[number]
        parts = _ready_parts(joint, answers, whole=len(answers) == len(set(calls)))
        operators = {call.operator: _recall(call.operator, answers) for call in answers}
        found = solutions(And(parts), NOBODY, {}, operators=operators, window_item=None)
        return next(found, None) is not None

    def _known(self, at: int) -> dict[int, Solutions]:
        """Solutions by the number of the predicate; a predicate that is false has none."""
        return {
            predicate: self._solutions.get(node, [])
            for predicate, (node, answer) in self._lanes.answers_of(at).items()
            if answer != UNKNOWN
        }


def _ready_parts(
    joint: Filter, known: Mapping[Call, Solutions], *, whole: bool
) -> tuple[Filter, ...]:
    if whole:
        return conjuncts(joint)
    calls = [part for part in conjuncts(joint) if isinstance(part, Call) and part in known]
    bound = frozenset().union(*(variables_of(call) for call in calls))
    tests = [
        part
        for part in conjuncts(joint)
        if isinstance(part, Constraint) and variables_of(part) <= bound
    ]
    return (*calls, *tests)


def _recall(name: str, answers: Mapping[Call, Solutions]) -> Callable[..., Answer]:
    def operator(_: Item, *arguments: Argument) -> Answer:
        return answers[Call(name, arguments)]

    return operator
