"""Offsets of Kafka queries: whatever comes and goes, every message is in one range."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.acquire.source_list import ListedSource
from headgate.pipeline.sources.kafka_topics import Offsets, next_offsets, offset_ranges

A = ListedSource("A", "kafka://b:1/a", "stream", "kafka")


def step(
    start: Offsets, sources: list[ListedSource], known: dict, rows_max=None, latest=False
) -> Offsets:
    return next_offsets(start, sources, known, now_us=7, rows_max=rows_max, from_latest=latest)


def read(start: Offsets, end: Offsets) -> list[tuple[str, int, int, int]]:
    return [
        (each.source, each.partition, each.start, each.end)
        for each in offset_ranges(start, end, {})
    ]


def test_a_source_is_introduced_before_it_is_read():
    first = step({}, [A], {"A": {0: (5, 9)}})
    assert read({}, first) == []
    second = step(first, [A], {"A": {0: (5, 12)}})
    assert read(first, second) == [("A", 0, 5, 12)]
    assert step(second, [A], {"A": {0: (5, 12)}}) is second
    assert step(second, [A], {}) is second  # the broker does not answer


def test_the_latest_is_where_a_source_begins_but_not_a_partition():
    first = step({}, [A], {"A": {0: (5, 9)}}, latest=True)
    second = step(first, [A], {"A": {0: (5, 9), 1: (0, 3)}}, latest=True)
    third = step(second, [A], {"A": {0: (5, 9), 1: (0, 3)}}, latest=True)
    assert read(first, second) == []
    assert read(second, third) == [("A", 1, 0, 3)]


def test_nothing_is_known_of_a_source_yet():
    assert step({}, [A], {}) == {}


def test_another_topic_of_the_same_name_begins_anew():
    first = step({}, [A], {"A": {0: (0, 9)}})
    moved = ListedSource("A", "kafka://b:1/other", "stream", "kafka")
    second = step(first, [moved], {"A": {0: (2, 4)}})
    assert read(first, second) == []
    assert read(second, step(second, [moved], {"A": {0: (2, 4)}})) == [("A", 0, 2, 4)]


def test_a_topic_that_was_made_anew_begins_again():
    first = step({}, [A], {"A": {0: (0, 9)}})
    second = step(first, [A], {"A": {0: (0, 9)}})
    third = step(second, [A], {"A": {0: (0, 2)}})
    assert read(second, third) == []
    assert read(third, step(third, [A], {"A": {0: (0, 2)}})) == [("A", 0, 0, 2)]


def test_a_dropped_source_is_forgotten():
    first = step({}, [A], {"A": {0: (0, 9)}})
    assert set(step(first, [], {})) == {"@"}


@given(
    growth=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=10),
    rows_max=st.integers(1, 40),
)
def test_every_message_is_read_once_in_order_and_not_too_many_at_once(
    growth: list[tuple[int, int]], rows_max: int
):
    highs = [0, 0]
    start: Offsets = {}
    at = [0, 0]
    for more in [*growth, *[(0, 0)] * 1_100]:
        highs = [high + each for high, each in zip(highs, more, strict=True)]
        end = step(start, [A], {"A": {0: (0, highs[0]), 1: (0, highs[1])}}, rows_max)
        if end is start and more == (0, 0):
            break
        total = 0
        for _, partition, begin, until in read(start, end):
            assert begin == at[partition]
            assert until <= highs[partition]
            total += until - begin
            at[partition] = until
        assert total <= rows_max + 1  # rounded up, so that each partition goes on
        start = end
    assert at == highs
