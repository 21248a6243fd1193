"""`headgate backtest` and `headgate statistics`, in this process."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.headgate_command import Run
from tests.store.small_log import SmallLog, news, ticket

from headgate.catalog.catalog import Catalog

CHEAP = "create feed X from Tickets as $t where $t[price < 30]"


@pytest.fixture
def store(tmp_path: Path) -> SmallLog:
    made = SmallLog(tmp_path)
    made.catalog().close()
    now = datetime.now(UTC)
    for day in range(4):
        arrived = now - timedelta(days=3 - day)
        made.put([ticket(f"{day}-{n}", n * 20, "Paris\x1b[31m") for n in range(4)], arrived=arrived)
    made.put([news("1", "rock")], arrived=now)
    return made


@pytest.mark.usefixtures("store")
def test_backtest(headgate: Run) -> None:
    code, out, err = headgate("backtest", CHEAP, "--since", "7d", "--samples", "2")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "X, 7 days, in this process, as there are fewer than 200,000 rows"
    assert lines[1] == "8 of 16 items of its sources, 50.00%; 1.14/day"
    assert lines[3] == "    ████"
    assert [line.split()[0] for line in lines[5:13]] == ["0", "0", "0", "0", "2", "2", "2", "2"]
    assert lines[15].split() == ["8", "Tickets", "16", "50.00%"]
    assert "price 20  destination Paris [31m" in lines[-2]
    assert "price 0" in lines[-1]
    assert "\x1b" not in out


@pytest.mark.usefixtures("store")
def test_backtest_json_and_registered_feeds(headgate: Run) -> None:
    result = json.loads(headgate("backtest", "Cheap", "--json", "--local")[1])
    assert (result["feed"], result["items"], result["matched"]) == ("Cheap", 16, 12)
    assert result["sources"] == {"Tickets": {"items": 16, "matched": 12, "further": 0}}
    assert (result["ran"], result["only_leaves"]) == ("in this process", None)
    assert len(result["samples"]) == 5
    assert sum(result["by_day"].values()) == 12


@pytest.mark.usefixtures("store")
def test_backtests_that_are_refused(headgate: Run) -> None:
    code, _, err = headgate("backtest", "create feed X from Tickets as $t where $t[prize < 3]")
    assert code == 1
    assert "did you mean 'price'?" in err
    assert "^" in err
    code, _, err = headgate("backtest", "drop feed Cheap")
    assert code == 2
    assert "a backtest is of a feed" in " ".join(err.split())
    code, _, err = headgate("backtest", "Chep")
    assert code == 3
    assert "did you mean 'Cheap'?" in err


def test_backtest_of_an_empty_store(headgate: Run, tmp_path: Path) -> None:
    SmallLog(tmp_path).catalog().close()
    code, out, _ = headgate("backtest", CHEAP)
    assert code == 0
    assert "-- there are no items of its sources" in out


@pytest.mark.usefixtures("store")
def test_statistics(headgate: Run) -> None:
    code, out, err = headgate("statistics")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("2 sources over 30 days, in this process")
    assert lines[3].split()[:2] == ["16", "Tickets"]
    assert [line.split()[:3] for line in lines[7:9]] == [
        ["1", "100.000%", "News"],
        ["16", "100.000%", "Tickets"],
    ]
    with Catalog.open("headgate.db") as catalog:
        kept = catalog.statistics("Tickets")
    assert kept is not None
    assert kept.selectivity("price < 50") == 0.75


@pytest.mark.usefixtures("store")
def test_statistics_json(headgate: Run) -> None:
    result = json.loads(headgate("statistics", "--json", "--local")[1])
    news_, tickets = result["sources"]
    assert (news_["source"], news_["items"], news_["rate_per_s"]) == ("News", 1, None)
    assert tickets["atoms"]["price < 50"] == 12


def test_statistics_of_an_empty_store(headgate: Run, tmp_path: Path) -> None:
    SmallLog(tmp_path).catalog().close()
    code, out, _ = headgate("statistics")
    assert code == 0
    assert "-- no items" in out
