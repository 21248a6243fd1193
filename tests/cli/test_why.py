"""`headgate why`: why a stored item is in a feed, or why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.headgate_command import Run
from tests.store.small_log import NOON, SmallLog, news, ticket


@pytest.fixture
def store(tmp_path: Path) -> SmallLog:
    made = SmallLog(tmp_path)
    made.catalog().close()
    made.put([ticket("1", 10, "Paris"), ticket("2", 90, "Rome")], arrived=NOON)
    made.put([news("2", "rock \x1b[31m")], arrived=NOON)
    return made


@pytest.mark.usefixtures("store")
def test_what_is_shown(headgate: Run, golden: Callable[[str, str], None]) -> None:
    shown = []
    for call in (
        ["1", "CheapParis"],
        ["2", "Cheap", "--source", "Tickets"],
        ["2", "Pictures", "--source", "News"],
        ["1", "Tickets"],
    ):
        code, out, err = headgate("why", *call)
        assert (code, err) == (0, "")
        shown.append(f"$ headgate why {' '.join(call)}\n{out}")
    assert "\x1b" not in "".join(shown)
    golden("cli/why.txt", "\n".join(shown))


@pytest.mark.usefixtures("store")
def test_json(headgate: Run) -> None:
    result = json.loads(headgate("why", "1", "CheapParis", "--json")[1])
    assert (result["has"], result["feeds"]) == (True, ["Cheap", "CheapParis", "Paris"])
    assert result["why"]["answer"] == "yes"
    assert (result["subscription"], result["delivery"]) == (None, "")


def test_an_active_subscription(headgate: Run, tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.catalog().close()
    store.put([ticket("old", 10, "Paris")], arrived=datetime(2020, 1, 1, tzinfo=UTC))
    to = ["--output", "file", "--to", "cheap.rss"]
    _, out, _ = headgate("subscribe", "Cheap", *to, "--for", "10 years", "--json")
    who = str(json.loads(out)["subscription"])
    code, out, _ = headgate("why", "old", who)
    assert code == 0
    assert f"subscription {who}, file cheap.rss: not delivered, as it was made at" in out


@pytest.mark.usefixtures("store")
def test_unknown_items_and_feeds_are_refused(headgate: Run) -> None:
    for call, reason in (
        (["17", "Cheap"], "the store has no item '17'"),
        (["2", "Cheap"], "name its source: News or Tickets"),
        (["1", "Chep"], "did you mean 'Cheap'?"),
        (["1", "4711"], "there is no active subscription 4711"),
    ):
        code, _, err = headgate("why", *call)
        assert code == 3
        assert reason in " ".join(err.split())
