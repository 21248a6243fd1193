"""`/v1/reading/items` with words, one item, positions, and following by URL, by a real server."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.service.reader_home import ReaderHome
from tests.service.test_api import problem_in
from tests.service.test_reading import titles, unread

from headgate.catalog.principals import Scope
from headgate.service import reading_items


@pytest.fixture
def ada(readers: ReaderHome) -> Iterator[httpx.Client]:
    with readers.session("ada", "acme") as client:
        yield client


def test_words_are_found_in_all_followed_feeds(readers: ReaderHome, ada: httpx.Client) -> None:
    readers.put("acme", "loud rock", "Rock", "Loud")
    readers.put("acme", "jazz", description="ROCK, but in the text")
    readers.put("acme", "rocks")
    assert titles(ada, words="rock") == ["jazz", "loud rock"]
    assert titles(ada, words="rock loud") == ["loud rock"]
    assert titles(ada, words="rock", feed="Loud") == ["loud rock"]
    assert titles(ada, words="nothing") == []
    assert len(titles(ada, words=" ")) == 3
    ada.post("/v1/reading/marks", json={"positions": [0], "read": True, "starred": True})
    assert titles(ada, words="rock", unread=True) == ["jazz"]
    assert titles(ada, words="rock", starred=True) == ["loud rock"]
    page = ada.get("/v1/reading/items?words=rock").json()
    assert (page["looked_at"], "next" in page) == (3, False)


def test_a_search_goes_on_where_it_stopped(
    readers: ReaderHome, ada: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_items, "REFERENCES_AT_ONCE", 2)
    monkeypatch.setattr(reading_items, "LOOKED_AT_MAX", 3)
    for n in range(9):
        readers.put("acme", f"rock {n}" if n % 4 == 0 else f"jazz {n}", "Rock")
    seen: list[str] = []
    params: dict[str, object] = {"words": "rock"}
    pages = 0
    while pages < 20:
        page = ada.get("/v1/reading/items", params=params).json()  # type: ignore[arg-type]
        seen += [each["title"] for each in page["items"]]
        pages += 1
        if "next" not in page:
            break
        params["before"] = page["next"]
    assert seen == ["rock 8", "rock 4", "rock 0"]
    assert pages > 1
    first = ada.get("/v1/reading/items?words=rock&limit=1").json()
    assert (first["items"][0]["title"], first["next"]) == ("rock 8", 8)


def test_one_item_is_there_if_a_followed_feed_has_it(
    readers: ReaderHome, ada: httpx.Client
) -> None:
    own = readers.put("acme", "rock", "Rock", description="<i>hi</i>", link="https://a.example/")
    other = readers.put("globex", "secret", "Rock")
    found = ada.get(f"/v1/reading/items/{own}").json()
    assert (found["title"], found["feeds"], found["html"]) == (
        "rock",
        ["News", "Rock"],
        "<i>hi</i>",
    )
    problem_in(ada.get(f"/v1/reading/items/{other}"), 404)
    problem_in(ada.get("/v1/reading/items/99"), 404)
    ada.post("/v1/reading/marks", json={"positions": [own], "starred": True})
    for name in ("News", "Rock"):
        ada.delete(f"/v1/reading/feeds/{name}")
    assert ada.get(f"/v1/reading/items/{own}").json()["starred"] is True


def test_what_was_marked_as_read_can_be_undone(readers: ReaderHome, ada: httpx.Client) -> None:
    for n in range(5):
        readers.put("acme", f"rock {n}", "Rock", "Loud")
    ada.post("/v1/reading/marks", json={"positions": [3], "read": True})
    found = ada.get("/v1/reading/positions?unread=true&feed=Rock").json()
    assert found == {"positions": [4, 2, 1, 0], "complete": True}
    assert ada.get("/v1/reading/positions?unread=true&before=2").json()["positions"] == [1, 0]
    ada.post("/v1/reading/read-all", json={"feed": "Rock"})
    assert unread(ada)["Rock"] == 0
    ada.post("/v1/reading/marks", json={"positions": found["positions"], "read": False})
    assert titles(ada, unread=True) == ["rock 4", "rock 2", "rock 1", "rock 0"]
    problem_in(ada.get("/v1/reading/positions?feed=Nothing"), 404)


def test_unread_items_are_counted_once(readers: ReaderHome, ada: httpx.Client) -> None:
    for n in range(3):
        readers.put("acme", f"rock {n}", "Rock", "Loud")
    readers.put("globex", "not theirs", "Rock")
    ada.post("/v1/reading/marks", json={"positions": [0], "read": True, "starred": True})
    found = ada.get("/v1/reading/feeds").json()
    assert (found["unread"], found["starred"], found["position"]) == (2, 1, 4)


def test_a_url_is_registered_and_followed(readers: ReaderHome, ada: httpx.Client) -> None:
    new = {"url": "https://blog.example/atom.xml", "label": "Blogs", "title": "A blog"}
    made = ada.post("/v1/reading/feeds", json=new)
    assert made.status_code == 201
    assert (made.json()["title"], made.json()["label"]) == ("A blog", "Blogs")
    assert ada.post("/v1/reading/feeds", json=new).json()["name"] == made.json()["name"]
    assert made.json()["name"] in unread(ada)
    for url in ("javascript:alert(1)", "https://a.example/\x01"):
        problem_in(ada.post("/v1/reading/feeds", json={"url": url}), 422)
    with readers.client("acme", Scope.READ) as reader:
        problem_in(reader.post("/v1/reading/feeds", json=new), 403)
    with readers.session("bob", "globex") as bob:
        assert made.json()["name"] not in unread(bob)


def test_an_imported_list_is_followed_on_demand(ada: httpx.Client) -> None:
    ada.delete("/v1/reading/feeds/Muse")
    outlines = "".join(
        f'<outline text="{name}" xmlUrl="{url}"/>'
        for name, url in (("New", "https://new.example/rss"), ("M", "https://muse.example/rss"))
    )
    body = f'<opml version="2.0"><body>{outlines}</body></opml>'
    plain = ada.post("/v1/opml", content=body)
    assert [each["name"] for each in plain.json()["feeds"]] == ["New", "Muse"]
    assert not {"New", "Muse"} & unread(ada).keys()
    ada.post("/v1/opml?follow=true", content=body)
    assert {"New", "Muse"} <= unread(ada).keys()
