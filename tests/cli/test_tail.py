"""`headgate tail`: the last items as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from tests.cli.headgate_command import Run
from tests.store.small_log import NOON, SmallLog, news, ticket

from headgate.store.tail import Follower

HOSTILE = "rock \x1b[31m[bold]red[/bold]\u202e\nnew line :smile:"


@pytest.fixture
def store(tmp_path: Path) -> SmallLog:
    made = SmallLog(tmp_path)
    made.catalog().close()
    made.put([ticket("1", 10, "Paris"), ticket("2", 90, "Rome")], arrived=NOON)
    titled = [news("1", HOSTILE, hours=1), news("2", "A rock concert", source="Photos", hours=1)]
    made.put(titled, arrived=NOON + timedelta(hours=1))
    made.put([ticket("3", None, "Rome " * 40, hours=2)], arrived=NOON + timedelta(hours=2))
    return made


@pytest.mark.usefixtures("store")
def test_what_is_shown(headgate: Run, golden: Callable[[str, str], None]) -> None:
    shown = []
    for name in ("Tickets", "Cheap", "Rock", "Pictures"):
        code, out, err = headgate("tail", name)
        assert (code, err) == (0, "")
        shown.append(f"$ headgate tail {name}\n{out}")
    assert "\x1b" not in "".join(shown)
    golden("cli/tail.txt", "\n".join(shown))


@pytest.mark.usefixtures("store")
def test_json(headgate: Run) -> None:
    code, out, _ = headgate("tail", "Rock", "--json", "--lines", "1")
    (row,) = map(json.loads, out.splitlines())
    assert code == 0
    assert (row["id"], row["source"]) == ("2", "Photos")
    assert row["attributes"] == {"title": "A rock concert"}
    assert row["arrived"] == "2026-11-16T13:00:00+00:00"


@pytest.mark.usefixtures("store")
def test_since_and_lines(headgate: Run) -> None:
    assert len(headgate("tail", "Tickets", "--lines", "2")[1].splitlines()) == 2
    out = headgate("tail", "Tickets", "--since", "2026-11-16 13:00")[1]
    assert len(out.splitlines()) == 1
    for wrong in ("2 fortnights", "2x", "-3d", "0h"):
        code, _, err = headgate("tail", "Tickets", "--since", wrong)
        assert code == 2
        assert "--since" in err


@pytest.mark.usefixtures("store")
def test_unknown_names_are_refused(headgate: Run) -> None:
    code, _, err = headgate("tail", "Tikets")
    assert code == 3
    assert "there is no source or feed 'Tikets'; did you mean 'Tickets'?" in err


def test_no_folder(headgate: Run) -> None:
    code, _, err = headgate("tail", "Tickets")
    assert code == 2
    assert "'headgate run' makes it" in " ".join(err.split())


def test_an_empty_store(headgate: Run, tmp_path: Path) -> None:
    SmallLog(tmp_path).catalog().close()
    assert headgate("tail", "Tickets")[:2] == (0, "-- no items of Tickets yet\n")
    assert headgate("tail", "Tickets", "--since", "2h")[1] == "-- no items of Tickets since 2h\n"


def test_a_damaged_file_is_named(headgate: Run, store: SmallLog) -> None:
    bad = store.put([ticket("4", 10, "Rome")], arrived=NOON + timedelta(hours=3))
    store.damage(bad.items)
    code, out, err = headgate("tail", "Tickets")
    assert code == 0
    assert len(out.splitlines()) == 3
    assert f"{bad.items[-20:]}' is damaged and was skipped" in err.replace("\n", "")


def test_follow(headgate: Run, store: SmallLog, monkeypatch: pytest.MonkeyPatch) -> None:
    poll, polls = Follower.poll, count(1)

    def poll_and_put(follower: Follower) -> object:
        rows, number = poll(follower), next(polls)
        if number == 3:
            raise KeyboardInterrupt
        arrived = NOON + timedelta(hours=2 + number)
        store.put([ticket(f"new {number}", 5, "Oslo")], arrived=arrived)
        return rows

    monkeypatch.setattr(Follower, "poll", poll_and_put)
    monkeypatch.setattr("headgate.api.stored_items.POLL_S", 0.0)
    code, out, _ = headgate("tail", "Cheap", "--lines", "1", "--follow", "--json")
    assert code == 0
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["1", "new 1"]
