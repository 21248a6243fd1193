"""`headgate suggest`, `dependents`, `history`, `values`, `compare`, and `backtest --at`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.headgate_command import Run
from tests.store.small_log import SmallLog, ticket


@pytest.fixture
def store(tmp_path: Path) -> SmallLog:
    made = SmallLog(tmp_path)
    made.catalog().close()
    now = datetime.now(UTC)
    for number in range(4):
        place = "Paris" if number % 2 else "Rome"
        arrived = now - timedelta(hours=4 - number)
        made.put([ticket(f"t{number}", 20 * number, place)], arrived=arrived)
    return made


@pytest.mark.usefixtures("store")
def test_what_is_there_already(headgate: Run) -> None:
    statement = "create feed X from Tickets where price < 50 and destination contains 'Paris'"
    code, out, err = headgate("suggest", statement)
    assert (code, err) == (0, "")
    assert out.startswith("equal: CheapParis\nwider: Paris\nwider: Cheap\n")
    assert "create feed X from Paris where price < 50;" in out
    found = json.loads(headgate("suggest", statement, "--json")[1])
    assert [each["name"] for each in found["feeds"]] == ["CheapParis", "Paris", "Cheap"]
    assert headgate("suggest", "create feed X from Tickts")[0] == 1


@pytest.mark.usefixtures("store")
def test_what_is_behind_a_source(headgate: Run) -> None:
    out = headgate("dependents", "Tickets")[1]
    assert out.startswith("3 feeds and 0 subscriptions of 1 tenants are behind Tickets\n")
    assert json.loads(headgate("dependents", "Cheap", "--json")[1])["feeds"] == ["CheapParis"]
    assert headgate("dependents", "Nope")[0] == 3


@pytest.mark.usefixtures("store")
def test_values_and_conditions(headgate: Run) -> None:
    out = headgate("values", "Tickets", "destination", "--prefix", "pa")[1]
    assert "50.0%" in out
    assert "Paris" in out
    assert "Rome" not in out
    found = json.loads(headgate("values", "Tickets", "--filter", "price < 50", "--json")[1])
    assert found[""][0] == {"text": "price < 50", "items": 3, "sample": 4, "per_day": 3.0}
    assert headgate("values", "Cheap")[0] != 0


@pytest.mark.usefixtures("store")
def test_the_past_and_the_present(headgate: Run) -> None:
    assert headgate("drop", "feed", "CheapParis")[0] == 0
    past = headgate("history", "CheapParis")[1]
    assert "create feed CheapParis" in past
    assert headgate("history", "Nope")[0] == 3
    assert headgate("backtest", "CheapParis", "--local")[0] != 0
    at = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    found = json.loads(headgate("backtest", "CheapParis", "--local", "--at", at, "--json")[1])
    assert found["matched"] == 1
    compared = headgate("compare", "Cheap", "CheapParis", "--right-at", at, "--local")[1]
    assert compared.startswith("left: 3 items, 2 that right has not\nright: 1 items, 0 that")
    assert "the first that differs is in left: Tickets t0" in compared
    equal = headgate("compare", "Cheap", "create feed X from Cheap", "--local")[1]
    assert equal == "equal: both have the same 3 items\n"
