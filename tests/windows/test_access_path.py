"""Which conjunct finds the candidates."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.plan.cases import join_condition
from tests.windows.strategies import predicates

from headgate.language.unparse import unparse_filter
from headgate.model.filters import Filter, conjuncts
from headgate.plan.cnf import to_cnf
from headgate.windows.access_path import choose_access

SMALLER, ALIKE = "a < window.b", "e similar window.f"
EITHER = "a = window.b or c < window.d"
NEGATED = "a = window.b or not c = window.d"


@pytest.mark.parametrize(
    ("predicate", "path", "residual"),
    [
        ("a = window.b", "equal b", "true"),
        (f"{SMALLER} and c = window.d and {ALIKE}", "equal d", f"{SMALLER} and {ALIKE}"),
        ("a similar window.b and c similar(0.9) window.d", "similar d", "a similar window.b"),
        (f"{SMALLER} and {ALIKE}", "similar f", SMALLER),
        ("a = window.b or c similar window.d", "equal b or similar d", "true"),
        (f"({EITHER}) and {ALIKE}", "similar f", EITHER),
        ("a = window.b or x > 3", "equal b or all of the window, on condition", "true"),
        ("a != window.b", "all of the window", "a != window.b"),
        ("not a = window.b", "all of the window", "not a = window.b"),
        (NEGATED, "all of the window", NEGATED),
        ("a.year = window.b", "all of the window", "a.year = window.b"),
    ],
)
def test_the_chosen_access_path(predicate: str, path: str, residual: str) -> None:
    access = choose_access(join_condition(predicate))
    assert (str(access), unparse_filter(access.residual)) == (path, residual)


@given(predicates)
def test_no_conjunct_is_lost(predicate: Filter) -> None:
    normal = to_cnf(predicate)
    access = choose_access(normal)
    left = conjuncts(access.residual)
    assert set(left) <= set(conjuncts(normal))
    assert len(left) >= len(conjuncts(normal)) - 1
