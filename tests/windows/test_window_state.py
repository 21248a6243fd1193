"""Windows drop the rows that no later lookup can see, and no others."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from tests.plan.strategies import START

from headgate.match.batch import microseconds
from headgate.model.atoms import Relation
from headgate.model.duration import Duration, ItemCount, Unit
from headgate.model.items import Item
from headgate.windows.access_path import EqualTo, OrderedBy, SimilarTo
from headgate.windows.arrivals import SECOND_US, Element
from headgate.windows.window_state import WindowState

START_US = microseconds(START)


def element(number: int, second: int, *, delay_s: int = 0) -> Element:
    time = START + timedelta(seconds=second)
    item = Item(f"{number}", "s", time, {"title": f"w{number} rock", "n": number})
    arrived_us = microseconds(time) + delay_s * SECOND_US
    return Element(item, microseconds(time), arrived_us, arrived_us)


def instant_us(second: int) -> int:
    return START_US + second * SECOND_US


def filled(window: WindowState) -> WindowState:
    window.prepare(EqualTo("title", "title"))
    window.prepare(SimilarTo("title", "title", 0.5))
    window.prepare(OrderedBy("n", Relation.LESS, "n"))
    return window


def sizes(window: WindowState) -> list[int]:
    """The size of each of its parts."""
    return [
        len(window.items),
        window.times.array.size,
        len(window.equal["title"]._keys),
        len(window.equal["title"]._newest),
        len(window.similar["title"]._numbers),
        len(window.similar["title"]._entries),
        window.similar["title"]._words.array.size,
        sum(len(each.ordered) + len(each.recent) for each in window.ordered["n"]._by_kind.values()),
    ]


@pytest.mark.parametrize("size", [Duration(100, Unit.SECOND), ItemCount(100)])
def test_memory_follows_the_window(size: Duration | ItemCount) -> None:
    """A stream a hundred times as long as its window, then silence."""
    window = filled(WindowState(size, kept_us=10 * SECOND_US))
    most = [0] * 8
    for second in range(10_000):
        window.insert([element(second, second)])
        window.expire(instant_us(second))
        most = [max(pair) for pair in zip(most, sizes(window), strict=True)]
    assert max(most) < 1_500
    window.expire(instant_us(1_000_000))
    left = 0 if isinstance(size, Duration) else 100
    assert left <= len(window.items) <= 2 * left
    assert max(sizes(window)) <= max(8 * left, 16)


@pytest.mark.parametrize("size", [Duration(60, Unit.SECOND), ItemCount(20)])
def test_rows_that_a_lookup_may_still_need_are_kept(size: Duration | ItemCount) -> None:
    """After each step, every window that a later lookup may see is complete."""
    chance = Random(1)
    kept_s, all_elements = 30, list[Element]()
    window = filled(WindowState(size, kept_us=kept_s * SECOND_US))
    for second in range(0, 2_000, 7):
        delays = [chance.choice([0, 3, 40]) for _ in range(chance.randint(0, 5))]
        new = [
            element(len(all_elements) + number, second - delay, delay_s=delay)
            for number, delay in enumerate(delays)
        ]
        window.insert(new)
        all_elements += new
        window.expire(instant_us(second))
        kept = set(window.items)
        until = instant_us(second + 1) - kept_s * SECOND_US
        for cut in (until, until + 15 * SECOND_US, instant_us(second + 1)):
            visible = sorted(
                (each for each in all_elements if each.time_us <= cut),
                key=lambda each: (each.time_us, each.item.source, each.item.id),
            )
            if isinstance(size, Duration):
                needed = [each for each in visible if each.time_us > cut - size.seconds * SECOND_US]
            else:
                needed = visible[-size.count :]
            assert {each.item for each in needed} <= kept


def test_an_item_that_no_lookup_can_see_is_not_inserted() -> None:
    window = filled(WindowState(Duration(60, Unit.SECOND), kept_us=0))
    window.insert([element(1, 0, delay_s=60), element(2, 0, delay_s=59)])
    assert [each.id for each in window.items] == ["2"]
