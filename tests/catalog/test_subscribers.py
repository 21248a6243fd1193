"""Who is subscribed, asked many at a time."""

from datetime import UTC, datetime, timedelta

from headgate.catalog.catalog import Catalog
from headgate.language import parse_script

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_living_subscribers_by_feed_and_by_id(catalog_url: str) -> None:
    now = NOON
    with Catalog.open(catalog_url, clock=lambda: now) as catalog:
        catalog.apply(
            parse_script(
                "register feed http://a.example/ as A; register feed http://b.example/ as B;"
                "create feed X from A; create feed Y from (X | B); create feed Z from B;"
                "subscribe to X output console; subscribe to Y output console for 2 days;"
                "subscribe to Y output file 'y.rss'; subscribe to B output console;"
            )
        )
        assert catalog.subscribers(["X", "Y", "Z", "none"]) == {
            "X": [(1, 1)],
            "Y": [(2, 1), (3, 1)],
        }
        assert catalog.demand() == {"X": 3, "Y": 2, "A": 3, "B": 3}
        assert sorted(catalog.subscribed()) == ["B", "X", "Y"]
        found = catalog.subscriptions_of_ids([1, 3, 99])
        assert [(id_, each.feed, each.target) for id_, each in found.items()] == [
            (1, "X", ""),
            (3, "Y", "y.rss"),
        ]
        now = NOON + timedelta(days=1, seconds=1)
        assert catalog.subscribers(["X", "Y", "B"]) == {"Y": [(2, 1)]}
        assert list(catalog.subscriptions_of_ids([1, 2, 3])) == [2]
        assert catalog.demand() == {"X": 1, "Y": 1, "A": 1, "B": 1}
        assert catalog.subscribed() == ["Y"]
