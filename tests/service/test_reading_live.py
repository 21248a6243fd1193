"""How many items arrive: lines by a real server, of one reader's feeds only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.deliver.log_world import news
from tests.service.reader_home import ReaderHome
from tests.service.test_api import SCRIPT, Home, apply, problem_in

from headgate.catalog.principals import Scope
from headgate.service import reading_live

PATH = "/v1/reading/live"


@pytest.fixture
def ada(readers: ReaderHome, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    monkeypatch.setattr(reading_live, "LINE_S", 0.01)
    with readers.session("ada", "acme") as client:
        yield client


def lines(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """The lines that have something."""
    return (json.loads(line) for line in response.iter_lines() if line)


def test_lines_count_what_has_arrived_since_a_position(
    readers: ReaderHome, ada: httpx.Client
) -> None:
    readers.put("acme", "old")
    readers.put("acme", "rock", "Rock")
    readers.put("globex", "secret", "Rock")
    readers.put("acme", "loud rock", "Rock", "Loud")
    with ada.stream("GET", PATH, params={"since": 1}) as response:
        found = next(lines(response))
        assert found == {"position": 4, "items": 2, "feeds": {"News": 2, "Rock": 2, "Loud": 1}}
    with ada.stream("GET", PATH, params={"since": 0, "feed": "Loud"}) as response:
        assert next(lines(response))["items"] == 1
    with ada.stream("GET", PATH, params={"since": 0, "label": "Queries"}) as response:
        assert next(lines(response))["items"] == 2


def test_what_arrives_later_is_told_of_once(readers: ReaderHome, ada: httpx.Client) -> None:
    readers.put("acme", "old")
    with ada.stream("GET", PATH) as response:
        parts = response.iter_lines()
        assert next(parts) == "", "it shows that it is there"
        total, position = 0, 1
        for n in range(5):
            readers.put("globex" if n == 2 else "acme", f"rock {n}", "Rock")
        for line in map(json.loads, filter(None, parts)):
            total += line["items"]
            assert line["position"] > position
            position = line["position"]
            if total >= 4:
                break
    assert (total, position) == (4, 6)


def test_a_stream_ends_with_its_token_and_needs_the_scope(
    readers: ReaderHome, ada: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers.put("acme", "old")
    monkeypatch.setattr(reading_live, "BEAT_S", 0.05)
    problem_in(ada.get(f"{PATH}?feed=Nothing"), 404)
    with readers.client("acme", Scope.POST) as poster:
        problem_in(poster.get(PATH), 403)
    with readers.client("acme", Scope.READ, Scope.ADMIN) as program:
        own = program.get("/v1/me").json()["actor"].removeprefix("token ")
        with program.stream("GET", PATH) as response:
            parts = response.iter_raw()
            assert next(parts) == b"\n"
            assert program.delete(f"/v1/tokens/{own}").status_code == 204
            assert set(parts) <= {b"\n"}, "it ends"


def test_who_comes_before_the_first_run_waits_for_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_live, "LINE_S", 0.01)
    with home.client("acme") as client:
        apply(client, SCRIPT)
        assert client.get("/v1/reading/items?words=x").json() == {"items": [], "looked_at": 0}
        with client.stream("GET", PATH) as response:
            parts = response.iter_lines()
            assert next(parts) == ""
            home.make_log().publish(news("first", 999_999, source="acme.News"))
            line = json.loads(next(filter(None, parts)))
    assert line == {"position": 1, "items": 1, "feeds": {"News": 1}}
