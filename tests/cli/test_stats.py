"""`headgate stats`: items, matches and deliveries."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.cli.headgate_command import Run
from tests.store.small_store import NOON, SmallStore, news, ticket

from headgate.deliver.outbox import Outbox
from headgate.deliver.records import ItemDelivery

SINCE = ("--since", "2026-11-01")


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    made = SmallStore(tmp_path)
    made.catalog().close()
    for day in range(4):
        arrived = NOON - timedelta(days=3 - day)
        made.put([ticket(f"{day}-{n}", n * 20, "Paris") for n in range(day + 1)], arrived=arrived)
    made.put([news("1", "rock"), news("2", "[red]pop", source="Photos")], arrived=NOON)
    with Outbox.open(made.folder.outbox) as outbox:
        items = [ticket(str(n), 1, "Rome") for n in range(3)]
        outbox.put(
            [ItemDelivery(n % 2 + 1, 1, "Cheap", each) for n, each in enumerate(items)], now_s=0
        )
        outbox.give_up(1, "the receiver\x1b[31m has gone", now_s=1)
    return made


@pytest.mark.usefixtures("store")
def test_what_is_shown(headgate: Run, golden: Callable[[str, str], None]) -> None:
    code, out, err = headgate("stats", *SINCE)
    assert (code, err) == (0, "")
    short = headgate("stats", *SINCE, "--top", "1")[1]
    assert "\x1b" not in out
    golden("cli/stats.txt", re.sub(r"of [\d.]+ kB", "of … kB", f"{out}\n{short}"))


def test_json(headgate: Run, store: SmallStore) -> None:
    result = json.loads(headgate("stats", *SINCE, "--json")[1])
    assert (result["items"], result["unmatched"], result["files"]) == (12, 1, 5)
    assert result["sources"][0]["by_day"]["2026-11-16"] == 4
    feeds = {each["feed"]: each["items"] for each in result["feeds"]}
    assert feeds["Paris"] == 10
    assert result["feeds"][0]["number"] == store.number("Paris")
    assert result["outbox"]["dead"] == 2
    assert result["dead_letters"] == [
        {"subscription": 1, "count": 2, "error": "the receiver [31m has gone"}
    ]


def test_an_empty_store(headgate: Run, tmp_path: Path) -> None:
    SmallStore(tmp_path).catalog().close()
    code, out, _ = headgate("stats")
    assert code == 0
    assert out.startswith("-- no items since 7d\n")


def test_a_damaged_file_is_named(headgate: Run, store: SmallStore) -> None:
    store.put([ticket("x", 1, "Rome")], arrived=NOON).write_bytes(b"rubbish")
    code, out, err = headgate("stats", *SINCE)
    assert code == 0
    assert out.startswith("12 items")
    assert "4-0.parquet' is damaged and was skipped" in " ".join(err.split())
