"""`headgate stats`: items, matches and deliveries."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.cli.headgate_command import Run
from tests.store.small_log import NOON, SmallLog, news, ticket

from headgate.deliver.delivery_database import DeliveryChange, DeliveryDatabase
from headgate.deliver.delivery_tables import DeadLetter, LagRow

SINCE = ("--since", "2026-11-01")


@pytest.fixture
def store(tmp_path: Path) -> SmallLog:
    made = SmallLog(tmp_path)
    made.catalog().close()
    for day in range(4):
        arrived = NOON - timedelta(days=3 - day)
        made.put([ticket(f"{day}-{n}", n * 20, "Paris") for n in range(day + 1)], arrived=arrived)
    made.put([news("1", "rock"), news("2", "[red]pop", source="Photos")], arrived=NOON)
    error = "the receiver [31m has gone"
    letters = [DeadLetter(1, 1, f"m{n}", n, n + 1, 1, "[]", 1, error, 1.0, 0) for n in range(2)]
    database = DeliveryDatabase(made.folder.delivery_database)
    with database, database.changing() as connection:
        change = DeliveryChange(connection)
        change.put_dead(letters)
        change.put_lags([LagRow(2, 1, 0, 0, 0.0)])
        change.count({"sent file": 7})
    return made


@pytest.mark.usefixtures("store")
def test_what_is_shown(headgate: Run, golden: Callable[[str, str], None]) -> None:
    code, out, err = headgate("stats", *SINCE)
    assert (code, err) == (0, "")
    short = headgate("stats", *SINCE, "--top", "1")[1]
    assert "\x1b" not in out
    golden("cli/stats.txt", re.sub(r"of [\d.]+ kB", "of … kB", f"{out}\n{short}"))


def test_json(headgate: Run, store: SmallLog) -> None:
    result = json.loads(headgate("stats", *SINCE, "--json")[1])
    assert (result["items"], result["unmatched"], result["files"]) == (12, 1, 5)
    assert result["sources"][0]["by_day"]["2026-11-16"] == 4
    feeds = {each["feed"]: each["items"] for each in result["feeds"]}
    assert feeds["Paris"] == 10
    assert result["feeds"][0]["number"] == store.number("Paris")
    assert result["deliveries"] == {
        "delivered": 7,
        "behind": 1,
        "retrying": 0,
        "halted": 0,
        "dead": 2,
    }
    assert result["dead_letters"] == [
        {"subscription": 1, "count": 2, "error": "the receiver [31m has gone"}
    ]


def test_an_empty_store(headgate: Run, tmp_path: Path) -> None:
    SmallLog(tmp_path).catalog().close()
    code, out, _ = headgate("stats")
    assert code == 0
    assert out.startswith("-- no items since 7d\n")


def test_a_damaged_file_is_named(headgate: Run, store: SmallLog) -> None:
    bad = store.put([ticket("x", 1, "Rome")], arrived=NOON)
    store.damage(bad.segment)
    code, out, err = headgate("stats", *SINCE)
    assert code == 0
    assert out.startswith("12 items")
    assert f"{bad.items[-20:]}' is damaged and was skipped" in err.replace("\n", "")
