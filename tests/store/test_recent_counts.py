"""Counts of feeds and sources, and their last arrivals, are those of the items."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.small_log import NOON, SmallLog, news

from headgate.model.items import Item
from headgate.store.recent_counts import RecentCounts, count_recent

batches = st.lists(
    st.tuples(
        st.integers(0, 600),  # minutes since the batch before
        st.lists(
            st.tuples(st.sampled_from(["News", "Photos"]), st.sampled_from(["rock", "pop"])),
            min_size=1,
            max_size=4,
        ),
    ),
    max_size=10,
)


@given(batches, st.sets(st.integers(0, 9)), st.integers(0, 30))
@settings(max_examples=60, deadline=None)
def test_counts_are_those_of_the_items(
    given_batches: list[tuple[int, list[tuple[str, str]]]], merged_after: set[int], trimmed: int
) -> None:
    with TemporaryDirectory() as folder:
        store = SmallLog(Path(folder))
        rows: list[tuple[Item, datetime]] = []
        now = NOON
        for number, (minutes, batch) in enumerate(given_batches):
            # Two batches are never at one instant.
            now += timedelta(minutes=minutes, seconds=1)
            items = [
                news(f"{number}-{n}", title, source=source)
                for n, (source, title) in enumerate(batch)
            ]
            store.put(items, arrived=now)
            rows += [(item, now) for item in items]
            if number in merged_after:
                store.merge()
        first = min(trimmed, len(rows))
        if first:
            store.sequencer.trim(first)
        rock = store.number("Rock")
        found = count_recent(store.view(), [rock, "News", "Photos", 999, "Nobody"], now)
        kept = rows[first:]

        def expected(of: list[datetime]) -> RecentCounts:
            day, hour = (sum(at >= now - span for at in of) for span in SPANS)
            return RecentCounts(len(of), day, hour, found_us(of))

        assert found == {
            rock: expected([at for item, at in kept if item.attributes["title"] == "rock"]),
            "News": expected([at for item, at in kept if item.source == "News"]),
            "Photos": expected([at for item, at in kept if item.source == "Photos"]),
            999: RecentCounts(),
            "Nobody": RecentCounts(),
        }


SPANS = (timedelta(days=1), timedelta(hours=1))


def found_us(instants: list[datetime]) -> int:
    return max((int(at.timestamp()) * 1_000_000 for at in instants), default=-1)


def test_the_last_arrival() -> None:
    assert RecentCounts().last_arrived is None
    assert RecentCounts(last_us=found_us([NOON])).last_arrived == NOON
