"""The table of evaluation orders."""

from __future__ import annotations

import pytest

from headgate.model.errors import HeadgateError
from headgate.operators.orders.methods import DEFAULT_ORDER, EVALUATION_ORDERS, make_order


def test_an_order_has_the_name_that_it_is_made_with() -> None:
    assert list(EVALUATION_ORDERS) == ["naive", "sequential", "sub-order", "adaptive"]
    assert [make_order(name).name for name in EVALUATION_ORDERS] == list(EVALUATION_ORDERS)
    assert make_order().name == DEFAULT_ORDER == "adaptive"


def test_each_evaluator_has_an_order_of_its_own() -> None:
    assert make_order("sub-order") is not make_order("sub-order")


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(HeadgateError, match="no evaluation order 'suborder': did you mean 'sub-o"):
        make_order("suborder")
    with pytest.raises(HeadgateError, match="choose naive, sequential, sub-order or adaptive"):
        make_order("fastest")
