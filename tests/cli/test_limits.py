"""`suspend`, `resume`, `quota`, and the price in `check`, `explain` and `show`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.headgate_command import Run

SCRIPT = """
register stream News from post (title text, content text);
create feed Slow from News where content matches '[a-h][^u-z]{90}z';
create feed Words from News where title contains 'rock';
"""


@pytest.fixture
def script() -> str:
    Path("script.feeds").write_text(SCRIPT)
    return "script.feeds"


def test_check_shows_what_is_expensive(headgate: Run, script: str) -> None:
    code, out, _ = headgate("check", script)
    assert code == 0
    assert "price of Slow: 2.4 ms of CPU an item" in out
    assert "most of it: content matches '[a-h][^u-z]{90}z'" in out
    assert "cheaper: fewer repetitions" in out
    assert "price of Words" not in out
    _, out, _ = headgate("check", script, "--json")
    assert json.loads(out)["prices"]["Words"]["cpu_us"] < 0.001


def test_a_suspended_feed_is_shown_as_such_until_it_is_resumed(headgate: Run, script: str) -> None:
    headgate("apply", script)
    assert headgate("suspend", "Slow", "--reason", "too slow")[1] == "suspended Slow\n"
    assert headgate("suspend", "Slow")[1] == "Slow is suspended already\n"
    assert "UTC: too slow" in headgate("show", "feeds")[1]
    assert "suspended since" in headgate("explain", "Slow")[1]
    assert headgate("resume", "Slow")[1] == "resumed Slow\n"
    assert headgate("resume", "Slow")[1] == "Slow is not suspended\n"
    assert "suspended" not in headgate("show", "feeds")[1]
    code, _, err = headgate("suspend", "Nobody")
    assert code == 3
    assert "there is no feed named 'Nobody'" in err


def test_explain_has_the_price(headgate: Run, script: str) -> None:
    headgate("apply", script)
    assert "price: less than 0.01 µs of CPU an item" in headgate("explain", "Words")[1]
    data = json.loads(headgate("explain", "Slow", "--json")[1])
    assert data["price"]["parts"][0]["cpu_us"] == 2400.0
    assert "price" not in headgate("explain", "News")[1]


def test_quotas_are_set_shown_and_enforced(headgate: Run, script: str) -> None:
    headgate("apply", script)
    code, out, _ = headgate("quota", "--set", "statements=3", "--set", "cpu-percent=50")
    assert code == 0
    Path("more.feeds").write_text("create feed More from News where title contains 'pop';")
    code, _, err = headgate("apply", "more.feeds")
    assert code == 3
    assert "the quota of 3 statements is exceeded" in err
    code, out, _ = headgate("quota", "--set", "statements=none", "--json")
    assert json.loads(out)["quotas"] == {"cpu-percent": 50}
    assert headgate("apply", "more.feeds")[0] == 0


@pytest.mark.parametrize("wrong", ["statements", "statements=x", "beer=3"])
def test_a_wrong_quota_says_what_is_right(headgate: Run, wrong: str) -> None:
    code, _, err = headgate("quota", "--set", wrong)
    assert code == 2
    assert "RESOURCE=LIMIT" in err
