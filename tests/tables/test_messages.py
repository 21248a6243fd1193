"""Sizes of messages, counted as in the paper, and the subscriptions in a region."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bench.baselines.multiway.rows import checked_values

from headgate.model.errors import InvalidValue
from headgate.tables.boxes import LEAST, MISSING, Boxes
from headgate.tables.changes import JoinChange
from headgate.tables.messages import JoinSide, MessageBatch, Region
from headgate.tables.schemes import JoinScheme
from headgate.tables.server import SelectJoinServer

LOGO = bytes(100)


def sent(scheme: JoinScheme) -> MessageBatch:
    """A second tuple of the left table: both rows of the right one join with it, and it exposes
    one of them to the second subscription."""
    server = SelectJoinServer(scheme=scheme)
    low, high = np.array([[0.0, 0.0], [5.0, 6.0]]), np.array([[9.0, 9.0], [9.0, 9.0]])
    server.subscribe(Boxes(np.arange(2), low, high))
    server.apply(
        [
            JoinChange(JoinSide.LEFT, (0,), ("x",), (1.0,), LOGO),
            JoinChange(JoinSide.RIGHT, (0,), ("x",), (2.0,), LOGO),
            JoinChange(JoinSide.RIGHT, (1,), ("x",), (8.0,), LOGO),
        ]
    )
    return server.apply([JoinChange(JoinSide.LEFT, (1,), ("x",), (7.0,), LOGO)])


@pytest.mark.parametrize(
    ("scheme", "descriptions", "sizes"),
    [
        # ⟨join, value, payload⟩ is 108 bytes, a pair 8; ⟨A, A⁻⟩ of an exposed row is 8.
        (JoinScheme.REF_SJ_CLU_PLUS, [8, 8], [116, 116]),
        (JoinScheme.REF_SJ_TUP, [16, 8], [124, 116]),
        (JoinScheme.REL_SEL, [0], [108]),
        # ⟨A, join, C, payload, payload⟩ is 212 bytes.
        (JoinScheme.REF_J, [0, 0], [212, 212]),
    ],
)
def test_sizes(scheme: JoinScheme, descriptions: list[int], sizes: list[int]) -> None:
    messages = sent(scheme)
    assert messages.description_bytes.tolist() == descriptions
    assert messages.size_bytes.tolist() == sizes
    assert [message.size_bytes for message in messages] == sizes


def test_a_deletion_has_no_payload() -> None:
    server = SelectJoinServer(scheme=JoinScheme.REL_SEL)
    server.subscribe(Boxes(np.arange(1), np.zeros((1, 2)), np.ones((1, 2))))
    server.apply([JoinChange(JoinSide.LEFT, (0,), ("x",), (1.0,), LOGO)])
    (message,) = server.apply([JoinChange(JoinSide.LEFT, (0,))])
    assert message.size_bytes == 8
    assert message.rows[0].payload == b""


@pytest.mark.parametrize(
    ("left", "right", "is_in"),
    [
        ((1.0, 9.0), (3.0, 4.0), True),
        ((5.0, 9.0), (3.0, 4.0), False),  # does not select 4
        ((0.5, 9.0), (3.0, 4.0), False),  # selects 0.5 too
        ((1.0, 9.0), (6.0, 7.0), False),  # begins behind 5
        ((1.0, 9.0), (2.0, 3.0), False),  # ends before 3.5
    ],
)
def test_which_subscriptions_a_region_holds(
    left: tuple[float, float], right: tuple[float, float], is_in: bool
) -> None:
    region = Region(JoinSide.LEFT, (4.0,), ((0.5,),), (((5.0,), (3.5,)),))
    assert region.holds(((left[0],), (right[0],)), ((left[1],), (right[1],))) is is_in


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([[1.0, math.nan]], [[2.0, 2.0]], "subscription 7 has a bound that is not a number"),
        ([[3.0, 1.0]], [[2.0, 2.0]], "subscription 7 has a range that is empty"),
        ([[1.0]], [[2.0, 2.0]], "bounds have different shapes"),
    ],
)
def test_bad_boxes_are_refused(
    low: list[list[float]], high: list[list[float]], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        Boxes(np.array([7]), np.array(low), np.array(high))


def test_subscription_numbers_are_unique() -> None:
    with pytest.raises(InvalidValue, match="must be unique"):
        Boxes(np.array([7, 7]), np.zeros((2, 2)), np.ones((2, 2)))


def test_selection_values_for_kernels() -> None:
    assert checked_values([math.nan, -math.inf, 2], 3) == (MISSING, LEAST, 2.0)
