"""`/v1/reading` by a real server."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.service.reader_home import API, ReaderHome
from tests.service.test_api import PATIENCE_S, problem_in

from headgate.catalog.principals import Scope


@pytest.fixture
def ada(readers: ReaderHome) -> Iterator[httpx.Client]:
    with readers.session("ada", "acme") as client:
        yield client


def unread(client: httpx.Client) -> dict[str, int]:
    feeds = client.get("/v1/reading/feeds").json()["feeds"]
    return {each["name"]: each["unread"] for each in feeds}


def titles(client: httpx.Client, **params: object) -> list[str]:
    answer = client.get("/v1/reading/items", params=params)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    return [each["title"] for each in answer.json()["items"]]


def test_an_item_is_shown_once_with_all_its_feeds(readers: ReaderHome, ada: httpx.Client) -> None:
    readers.put("acme", "jazz")
    readers.put("acme", "rock", "Rock", "Loud", description="<b onclick='x'>hi</b>")
    (first, second) = ada.get("/v1/reading/items").json()["items"]
    assert (first["title"], second["title"]) == ("rock", "jazz")
    assert first["feeds"] == ["Loud", "News", "Rock"]
    assert (first["read"], first["starred"]) == (False, False)
    assert first["html"] == "<b>hi</b>"
    assert second["feeds"] == ["News"]
    assert unread(ada) == {"Loud": 1, "Rock": 1, "News": 2, "Muse": 0}


def test_marking_and_filters(readers: ReaderHome, ada: httpx.Client) -> None:
    for n in range(4):
        readers.put("acme", f"rock {n}", "Rock")
    marks = {"positions": [1, 3, 99], "read": True}
    for _ in range(2):
        assert ada.post("/v1/reading/marks", json=marks).status_code == 204
    assert titles(ada, unread=True) == ["rock 2", "rock 0"]
    assert titles(ada, unread=False) == ["rock 3", "rock 1"]
    ada.post("/v1/reading/marks", json={"positions": [0], "starred": True})
    assert titles(ada, starred=True) == ["rock 0"]
    assert titles(ada, starred=False, unread=True, feed="Rock") == ["rock 2"]
    assert titles(ada, label="Music › Bands") == []
    assert unread(ada)["Rock"] == 2
    assert ada.post("/v1/reading/read-all", json={"feed": "Rock", "below": 1}).status_code == 204
    assert unread(ada) == {"Loud": 0, "Rock": 1, "News": 1, "Muse": 0}
    ada.post("/v1/reading/marks", json={"positions": [1], "read": False})
    assert titles(ada, unread=True) == ["rock 2", "rock 1"]
    assert ada.post("/v1/reading/read-all", json={}).status_code == 204
    assert titles(ada, unread=True) == []
    problem_in(ada.post("/v1/reading/read-all", json={"feed": "Nothing"}), 404)
    problem_in(ada.get("/v1/reading/items?feed=Nothing"), 404)


def test_pages_go_on_by_position(readers: ReaderHome, ada: httpx.Client) -> None:
    for n in range(7):
        readers.put("acme", f"rock {n}", "Rock", "Loud")
    seen: list[str] = []
    params: dict[str, int] = {"limit": 3}
    while True:
        page = ada.get("/v1/reading/items", params=params).json()
        seen += [each["title"] for each in page["items"]]
        if "next" not in page:
            break
        params["before"] = page["next"]
        readers.put("acme", "rock new", "Rock")
    assert seen == [f"rock {n}" for n in reversed(range(7))]


def test_feeds_are_followed_and_left(readers: ReaderHome, ada: httpx.Client) -> None:
    readers.put("acme", "rock", "Rock")
    changed = ada.put("/v1/reading/feeds/Rock", json={"label": "Best", "title": "My rock"}).json()
    assert (changed["label"], changed["title"], changed["unread"]) == ("Best", "My rock", 1)
    assert titles(ada, label="Best") == ["rock"]
    assert ada.delete("/v1/reading/feeds/News").status_code == 204
    problem_in(ada.delete("/v1/reading/feeds/News"), 404)
    assert unread(ada).keys() == {"Rock", "Loud", "Muse"}
    problem_in(ada.put("/v1/reading/feeds/globex.Rock", json={}), 404)
    problem_in(ada.put("/v1/reading/feeds/Rock", json={"label": "x" * 201}), 422)
    with readers.client("acme") as program:
        assert unread(program).keys() == {"Rock", "Loud", "Muse", "News"}, "it has its own state"


def test_a_program_has_a_state_of_its_own_and_no_password(readers: ReaderHome) -> None:
    readers.put("acme", "rock", "Rock")
    with readers.client("acme", Scope.READ) as one, readers.client("acme") as other:
        one.post("/v1/reading/read-all", json={})
        assert unread(one)["Rock"] == 0
        assert unread(other)["Rock"] == 1
        for method in ("GET", "POST", "DELETE"):
            problem_in(one.request(method, "/v1/reading/password"), 403)
    with readers.client("acme", Scope.POST) as poster:
        problem_in(poster.get("/v1/reading/feeds"), 403)
        problem_in(poster.post("/v1/reading/marks", json={"positions": [0], "read": True}), 403)


def test_a_session_makes_the_password_of_other_readers(
    readers: ReaderHome, ada: httpx.Client
) -> None:
    known = ada.get("/v1/reading/password")
    assert known.json()["login"] == "ada/acme"
    made = ada.post("/v1/reading/password")
    assert made.status_code == 201
    old, readers.passwords["ada"] = readers.passwords["ada"], made.json()["password"]
    assert made.json()["password"] not in ada.get("/v1/reading/password").text
    with readers.reader("ada", made.json()["login"]) as reader:
        assert reader.get(f"{API}/user-info").status_code == 200
        form = {"Email": "ada", "Passwd": old}
        refused = httpx.post(f"{readers.url}/accounts/ClientLogin", data=form, timeout=PATIENCE_S)
        assert refused.status_code == 401, "the new one has ended it"
        assert ada.delete("/v1/reading/password").status_code == 204
        assert reader.get(f"{API}/user-info").status_code == 401
    problem_in(ada.get("/v1/reading/password"), 404)
    problem_in(ada.delete("/v1/reading/password"), 404)


def test_nothing_of_another_tenant(readers: ReaderHome, ada: httpx.Client) -> None:
    own = readers.put("acme", "rock secret", "Rock")
    with readers.session("bob", "globex") as bob:
        bob.post("/v1/reading/marks", json={"positions": [own], "read": True, "starred": True})
        assert titles(bob) == []
        assert titles(bob, starred=True) == []
        assert "acme" not in bob.get("/v1/reading/feeds").text
    assert titles(ada, unread=True) == ["rock secret"]
