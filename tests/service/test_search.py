"""Searching the newest items of a feed by words."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.service.stored_home import StoredHome
from tests.service.test_api import problem_in

from headgate.service import search

VOCABULARY = ("rock", "loud", "jazz", "東京", "straße", "n7")


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_what_is_found_has_all_words(stored: StoredHome, data: st.DataObject) -> None:
    """The oracle splits at spaces; it knows nothing of folding."""
    titles = _titles(stored)
    words = data.draw(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=3))
    limit = data.draw(st.integers(1, 60))
    feed = data.draw(st.sampled_from(("News", "Rock")))
    expected = [
        title
        for title in reversed(titles)
        if set(words) <= set(title.split()) and (feed == "News" or "rock" in title.split())
    ]
    with stored.client("acme") as acme:
        query = {"words": " ".join(words).upper(), "limit": str(limit)}
        answer = acme.get(f"/v1/feeds/{feed}/search", params=query)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert [each["attributes"]["title"] for each in found["items"]] == expected[:limit]
    assert found["complete"] is (len(expected) <= limit)


def _titles(stored: StoredHome) -> list[str]:
    """Fifty items of acme, put once; others of globex between them."""
    if not stored.stored.items:
        chosen = random.Random(7)
        for n in range(50):
            words = chosen.sample(VOCABULARY, chosen.randint(1, 4))
            stored.put("acme", " ".join(words), n, id_=f"a{n}", hours=n)
            stored.put("globex", " ".join(VOCABULARY), n, id_=f"g{n}", hours=n)
    acme = [each for each in stored.stored.items if each.source == "acme.News"]
    return [str(each.attributes["title"]) for each in acme]


def test_a_search_is_bounded_and_says_so(
    stored: StoredHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(10):
        stored.put("acme", "rock" if n == 0 else "jazz", n, id_=f"a{n}", hours=n)
    monkeypatch.setattr(search, "LOOKED_AT_MAX", 5)
    monkeypatch.setattr(search, "ITEMS_AT_ONCE", 2)
    with stored.client("acme") as acme:
        found = acme.get("/v1/feeds/News/search", params={"words": "rock"}).json()
        assert found == {"items": [], "looked_at": 5, "complete": False}
        problem_in(acme.get("/v1/feeds/globex.News/search", params={"words": "rock"}), 404)
        problem_in(acme.get("/v1/feeds/News/search"), 422)
        problem = problem_in(acme.get("/v1/feeds/News/search", params={"words": "?!"}), 422)
        assert problem["detail"] == "the text '?!' has no word in it"
        problem_in(acme.get("/v1/feeds/News/search", params={"words": "x" * 501}), 422)
