"""Generated filters with operators, and fake operators that give the evaluator and the oracle the
same answers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
from hypothesis import strategies as st

from headgate.match.bit_rows import Ints, Longs
from headgate.model.atoms import Arithmetic, Call, Comparison, Constraint, Relation, Variable
from headgate.model.errors import InvalidValue
from headgate.model.evaluate import Answer, matches
from headgate.model.filters import And, Filter, Not, Or, check_safety
from headgate.model.items import Item
from headgate.model.values import Value
from headgate.operators.answers import Bools, RoundAnswers
from headgate.operators.orders.clause_table import ClauseTable, OperatorSubscriptions
from headgate.operators.orders.clauses import clauses_of
from headgate.operators.orders.estimates import PredicateEstimates
from headgate.operators.orders.evaluator import (
    CandidateClauses,
    EvaluateRound,
    EvaluationOrder,
    Evaluator,
    OperatorMatches,
)
from headgate.operators.orders.predicates import variable_names

NOW = datetime(2026, 11, 16, tzinfo=UTC)
FOUND: list[Value] = [0, 1, 2, 2.5, -1, 2**53 + 1, -(2**70), math.inf, "Rock", "rock", True]

names = st.sampled_from(["x", "y"]).map(Variable)
plain_calls = st.builds(
    Call, st.sampled_from("pq"), st.sampled_from([(), (1,), (2,), (True,), ("a",)])
)
binding_calls = st.one_of(
    st.builds(lambda name: Call("b", (name,)), names),
    st.builds(lambda name: Call("c", (1, name)), names),
    st.builds(lambda one, two: Call("d", (one, two)), names, names),
)
numbers: st.SearchStrategy[Value] = st.sampled_from([0, 1, 2, 2.5, 2**53 + 1, "ROCK", True])
constraints = st.one_of(
    st.builds(Constraint, names, st.sampled_from(Relation), numbers),
    st.builds(Constraint, numbers, st.sampled_from(Relation), names),
    st.builds(
        lambda one, relation, two: Constraint(one, relation, Arithmetic("*", 2, two)),
        names,
        st.sampled_from(Relation),
        names,
    ),
)
cheap = st.builds(Comparison, st.just("n"), st.sampled_from(Relation), st.sampled_from([0, 1, 2]))
conjunctions: st.SearchStrategy[Filter] = st.lists(
    plain_calls | plain_calls | plain_calls.map(Not) | cheap, min_size=1, max_size=4
).map(lambda parts: And(tuple(parts)))


def nested(atoms: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    parts = st.recursive(
        atoms,
        lambda part: st.one_of(
            st.lists(part, min_size=1, max_size=4).map(lambda some: And(tuple(some))),
            st.lists(part, min_size=1, max_size=3).map(lambda some: Or(tuple(some))),
            part.map(Not),
        ),
        max_leaves=6,
    )
    return parts.filter(is_clear)


def is_clear(filter_: Filter) -> bool:
    try:
        check_safety(filter_)
        clauses_of(filter_)
    except InvalidValue:
        return False
    return True


filters: st.SearchStrategy[Filter] = st.one_of(
    conjunctions,
    nested(plain_calls | cheap),
    st.lists(plain_calls | binding_calls | binding_calls | constraints, min_size=1, max_size=5)
    .map(lambda parts: And(tuple(parts)))
    .filter(is_clear),
    nested(plain_calls | binding_calls | binding_calls | constraints | cheap),
)


def items_of(count: int) -> list[Item]:
    return [Item(str(n), "S", NOW, {"n": n % 4} if n % 5 else {}) for n in range(count)]


class World:
    """Operators whose answers are random, but always the same for the same call and item."""

    def __init__(self, seed: int, *, share: float = 0.5, failing: float = 0.0) -> None:
        self._seed, self._share, self._failing = seed, share, failing
        self.evaluated: set[tuple[Call, int]] = set()

    def solutions(self, call: Call, item: int) -> list[tuple[Value, ...]]:
        """The solutions of a call; for a call without variables one empty tuple if it is true."""
        constants = tuple(a for a in call.arguments if not isinstance(a, Variable))
        chance = random.Random(f"{self._seed} {call.operator} {constants!r} {item}")
        if chance.random() >= self._share:
            return []
        width = len(variable_names(call))
        count = chance.randint(1, 3) if width else 1
        return [tuple(chance.choice(FOUND) for _ in range(width)) for _ in range(count)]

    def fails(self, call: Call, item: int) -> bool:
        return random.Random(f"f {self._seed} {call!r} {item}").random() < self._failing

    def operators(self) -> Mapping[str, Callable[..., Answer]]:
        return {name: self._operator(name) for name in "pqbcd"}

    def _operator(self, name: str) -> Callable[..., Answer]:
        def operator(item: Item, *arguments: Value | Variable) -> Answer:
            call = Call(name, arguments)
            found = self.solutions(call, int(item.id))
            return found if variable_names(call) else bool(found)

        return operator

    def evaluate_round(self, table: ClauseTable) -> EvaluateRound:
        def evaluate_call(predicate: int, rows: Ints) -> FakeAnswers:
            call = table.calls[predicate]
            for row in rows.tolist():
                assert (call, row) not in self.evaluated, "evaluated twice"
                self.evaluated.add((call, row))
            found = [self.solutions(call, row) for row in rows.tolist()]
            answered = np.array([not self.fails(call, row) for row in rows.tolist()], np.bool_)
            true = np.array([bool(some) for some in found], np.bool_)
            if not variable_names(call):
                return FakeAnswers(answered, true)
            starts = np.cumsum([0, *map(len, found)]).astype(np.int64)
            flat = [solution for some in found for solution in some]
            columns: list[Values] = [Values(column) for column in zip(*flat, strict=True)]
            return FakeAnswers(answered, true, starts, columns or [Values()] * len(call.arguments))

        return one_by_one(evaluate_call)


@dataclass
class FakeAnswers:
    """The answers of one call, for several rows."""

    answered: Bools
    true: Bools
    starts: Longs = field(default_factory=lambda: np.zeros(0, np.int64))
    values: Sequence[Values] = ()


def one_by_one(evaluate_call: Callable[[int, Ints], FakeAnswers]) -> EvaluateRound:
    """A round that evaluates its calls one by one."""

    def evaluate_all(predicates: Ints, starts: Longs, rows: Ints) -> RoundAnswers:
        parts = np.split(rows, starts[1:-1])
        answers = [
            evaluate_call(number, own)
            for number, own in zip(predicates.tolist(), parts, strict=True)
        ]
        return RoundAnswers(
            np.concatenate([each.answered for each in answers]),
            np.concatenate([each.true for each in answers]),
            np.full(len(answers), 1e-6),
            {call: each for call, each in enumerate(answers) if each.values},
        )

    return evaluate_all


class Values(list[Value | None]):
    def to_pylist(self) -> list[Value | None]:
        return list(self)


def subscribed(filters_: Sequence[Filter]) -> OperatorSubscriptions:
    subscriptions = OperatorSubscriptions()
    for name, filter_ in enumerate(filters_):
        subscriptions.add(name, filter_)
    return subscriptions


def candidates_of(table: ClauseTable, items: Sequence[Item]) -> CandidateClauses:
    """The clauses whose guards each item satisfies, as the program would find them."""
    found = [[n for n, guard in enumerate(table.guards) if matches(guard, item)] for item in items]
    start = np.cumsum([0, *map(len, found)]).astype(np.int64)
    return CandidateClauses(start, np.array([n for some in found for n in some], np.int32))


def evaluate(
    table: ClauseTable, order: EvaluationOrder, world: World, items: Sequence[Item]
) -> tuple[set[tuple[int, int]], OperatorMatches]:
    world.evaluated.clear()
    evaluator = Evaluator(table, order, PredicateEstimates(table.calls))
    found = evaluator.evaluate(candidates_of(table, items), world.evaluate_round(table))
    pairs = list(zip(found.items.tolist(), found.subscriptions.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert found.evaluated == len(world.evaluated)
    return set(pairs), found


def oracle_matches(
    filters_: Mapping[int, Filter], world: World, items: Sequence[Item]
) -> set[tuple[int, int]]:
    operators = world.operators()
    return {
        (int(item.id), name)
        for item in items
        for name, filter_ in filters_.items()
        if matches(filter_, item, operators=operators)
    }
