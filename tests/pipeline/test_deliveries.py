"""From stored rows to the outbox: whoever is subscribed gets what its feed has, once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.catalog.catalog import Catalog
from headgate.deliver.outbox import Outbox
from headgate.language import parse_script
from headgate.match.item_columns import items_to_arrow
from headgate.model.items import Item
from headgate.pipeline.batch_stage import BatchTask, PartitionSummary, match_and_store
from headgate.pipeline.deliveries import Dispatcher, FeedMatch, matches_in
from headgate.pipeline.planner import CurrentPlans, Planner
from headgate.store.data_folder import DataFolder

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SCRIPT = """
register stream T from json 't' (a int); register stream U from json 'u' (a int);
create feed Big from (T | U) where a > 5; create feed Small from T where a < 3;
subscribe to Big output console; subscribe to T output console;
subscribe to Big output file 'b.rss';
"""


@pytest.fixture
def planned(tmp_path: Path):
    with Catalog.open("sqlite://") as catalog:
        catalog.apply(parse_script(SCRIPT))
        yield catalog, Planner(catalog, DataFolder(tmp_path).make()).update(), tmp_path


def stored(planned: CurrentPlans, folder: Path) -> PartitionSummary:
    items = [Item(f"{s}{n}", s, NOON, {"a": n}) for n in range(10) for s in ("T", "U")]
    task = BatchTask(str(folder / "store"), "g", 0, NOON, str(planned.path))
    found = match_and_store([items_to_arrow(items, planned.schemas["T"])], task, "0")
    assert found is not None
    return found


def test_a_part_tells_what_is_in_it(planned: tuple[Catalog, CurrentPlans, Path]) -> None:
    _, plan, folder = planned
    part = stored(plan, folder)
    assert (part.items, part.matched, part.matches) == (20, 11, 11)
    assert part.sources == {"T": 10, "U": 10}
    assert [plan.names[each] for each in part.feeds] == ["Big", "Small"]
    assert part.join_inputs.size == 0


def test_found_are_the_items_of_feeds_and_sources(
    planned: tuple[Catalog, CurrentPlans, Path],
) -> None:
    _, plan, folder = planned
    part = stored(plan, folder)
    found = list(matches_in(part, ["Big", "U", "none"], plan.names, plan.schemas))
    big = {f"{source}{n}" for source in "TU" for n in range(6, 10)}
    assert {each.item.id for each in found if each.feed == "Big"} == big
    assert {each.item.id for each in found if each.feed == "U"} == {f"U{n}" for n in range(10)}
    assert len(found) == 18
    assert all(each.item.attributes == {"a": int(each.item.id[1:])} for each in found)


def test_subscribers_get_what_is_theirs_once(planned: tuple[Catalog, CurrentPlans, Path]) -> None:
    catalog, plan, folder = planned
    part = stored(plan, folder)
    with Outbox.open(folder / "o.db") as outbox:
        dispatcher = Dispatcher(catalog, outbox)
        subscribers = dispatcher.subscribers(["Big", "Small", "T", "U"], NOON)
        assert {name: len(found) for name, found in subscribers.items()} == {"Big": 2, "T": 1}
        for expected in (2 * 8 + 10, 0):
            found = matches_in(part, subscribers, plan.names, plan.schemas)
            assert dispatcher.put(found, subscribers, NOON) == expected


def test_news_that_two_web_feeds_have_is_delivered_once(
    planned: tuple[Catalog, CurrentPlans, Path],
) -> None:
    catalog, _, folder = planned
    story = {"title": "Muse play Paris", "link": "https://muse.example/paris"}
    found = [FeedMatch("F", Item(name, name, NOON, story)) for name in ("A", "B", "C")]
    with Outbox.open(folder / "o.db") as outbox:
        dispatcher = Dispatcher(catalog, outbox)
        put = dispatcher.put(found, {"F": [(1, 1)]}, NOON, web_feeds={"A", "B"})
        assert put == 2
        ids = [each.delivery.item.id for each in outbox.pending(1, limit=9)]
        assert ids == ["A", "C"], "C is no web feed: its links say nothing of what it is"
