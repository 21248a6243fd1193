"""The filter plan prints itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.factor.factor_examples import SCHEMA, TYPES, word
from tests.match.agree import item

from headgate.factor.explain import factor_text, share_text
from headgate.factor.factorize import factorize
from headgate.factor.methods import AUTO
from headgate.language.unparse import unparse_filter
from headgate.match.batch import batch_of_items
from headgate.model.atoms import Comparison, Relation
from headgate.model.filters import TRUE, And, Filter, Not, Or

SAMPLE = [item(w=f"word{n % 5} word{n % 7} word{n % 11}", i=n % 40) for n in range(400)]


def plan_text(filters: dict[str, Filter], method: str = AUTO) -> str:
    sample = batch_of_items(SAMPLE, TYPES)
    plan = factorize(list(filters.values()), SCHEMA, sample=sample, method=method)
    clauses = [unparse_filter(each) for each in plan.clauses]
    return factor_text(plan, clauses, list(filters)) + "\n"


def test_filter_plans(golden: Callable[[str, str], None]) -> None:
    big, bigger = (Comparison("i", Relation.GREATER, bound) for bound in (30, 35))
    shared: dict[str, Filter] = {
        "A": And((word(1), word(2))),
        "B": And((word(1), word(2), word(3))),
        "C": And((word(1), word(4))),
        "D": And((word(2), word(1))),
        "E": word(8),
    }
    implied: dict[str, Filter] = {
        "A": And((bigger, word(1))),
        "B": And((big, word(1))),
        "C": And((Or((word(1), word(2))), Not(word(3)), big)),
        "All": TRUE,
    }
    nothing_shared: dict[str, Filter] = {"A": And((word(1), word(2))), "B": word(3)}
    plans = [
        *(plan_text(shared, name) for name in ("naive", "prefix", "sta", "vca", "vcb")),
        plan_text(implied, "vcb"),
        plan_text(nothing_shared),
        plan_text({}),
    ]
    golden("optimize/factorized.txt", "\n".join(plans))


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100 %"), (0.123, "12 %"), (0.0123, "1.2 %"), (0.00041, "0.041 %"), (1e-9, "< 0.001 %")],
)
def test_shares(share: float, text: str) -> None:
    assert share_text(share) == text
