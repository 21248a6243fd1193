"""Why a feed has a stored item or not, and which feeds have it, by HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.service.stored_home import StoredHome
from tests.service.test_api import apply, problem_in

from headgate.catalog.principals import Scope


@pytest.fixture
def home(stored: StoredHome) -> StoredHome:
    return stored


@pytest.fixture
def acme(home: StoredHome) -> Iterator[httpx.Client]:
    with home.client("acme") as client:
        yield client


@pytest.fixture
def globex(home: StoredHome) -> Iterator[httpx.Client]:
    with home.client("globex") as client:
        yield client


def grant(client: httpx.Client, name: str, to: str, right: str) -> None:
    answer = client.put("/v1/grants", json={"definition": name, "tenant": to, "right": right})
    assert answer.status_code == 204


def test_by_position(home: StoredHome, acme: httpx.Client) -> None:
    rock, jazz = home.put("acme", "rock", 7), home.put("acme", "jazz", 3)
    told = acme.get("/v1/feeds/Rock/why", params={"position": rock}).json()
    assert (told["has"], told["verdict"]) == (True, "Rock has it")
    assert told["item"]["attributes"] == {"title": "rock", "n": 7}
    told = acme.get("/v1/feeds/Rock/why", params={"position": jazz}).json()
    assert (told["has"], told["verdict"]) == (False, "Rock does not have it")
    assert "title is 'jazz'" in told["text"]
    assert "acme." not in str(told)  # its own names have no tenant before them
    (branch,) = told["data"]["branches"]
    assert [part["answer"] for part in branch["parts"]] == ["no"]
    assert acme.get("/v1/feeds/News/why", params={"position": jazz}).json()["has"]
    nothing = problem_in(acme.get("/v1/feeds/Rock/why", params={"position": 99}), 404)
    assert nothing["detail"] == "there is no item at position 99"
    problem_in(acme.get("/v1/feeds/Rock/why"), 422)
    problem_in(acme.get("/v1/feeds/Rck/why", params={"position": rock}), 404)


def test_by_id(home: StoredHome, acme: httpx.Client) -> None:
    home.put("acme", "rock", 7)
    home.put("globex", "jazz", id_="rock")  # others may have the same id
    told = acme.post("/v1/why", json={"feed": "Big", "id": "rock"}).json()
    assert (told["has"], told["item"]["source"]) == (True, "News")
    with_source = {"feed": "Big", "id": "rock", "source": "News"}
    assert acme.post("/v1/why", json=with_source).json() == told
    problem_in(acme.post("/v1/why", json=with_source | {"source": "globex.News"}), 404)
    problem_in(acme.post("/v1/why", json={"feed": "Big", "id": "pop"}), 404)
    for wrong in ({}, {"id": "rock", "position": 0}):
        problem_in(acme.post("/v1/why", json={"feed": "Big"} | wrong), 422)
    with home.client("globex") as globex:
        grant(globex, "News", "acme", "read")
        both = problem_in(acme.post("/v1/why", json={"feed": "Big", "id": "rock"}), 409)
        assert "News or globex.News" in str(both["detail"])


def test_a_feed_that_came_later(home: StoredHome, acme: httpx.Client) -> None:
    position = home.put("acme", "rock")
    apply(acme, "create feed New from News;")
    told = acme.get("/v1/feeds/New/why", params={"position": position}).json()
    assert not told["has"]
    assert told["data"]["answer"] == "yes"


def test_joins(home: StoredHome, acme: httpx.Client, globex: httpx.Client) -> None:
    position = home.put("acme", "rock")
    told = acme.get("/v1/feeds/Pairs/why", params={"position": position}).json()
    assert not told["has"]
    assert "its leaves let it through" in told["verdict"]
    home.put("acme", "jazz", hours=1)
    pair = home.put_pair("acme", "rock", "jazz", hours=2)
    assert acme.get("/v1/feeds/Pairs/why", params={"position": position}).json()["has"]
    told = acme.get("/v1/feeds/Pairs/why", params={"position": pair}).json()
    assert told["has"]
    ((joined,),) = [each["items"] for each in told["item"]["annotations"]]
    assert (joined["id"], joined["source"]) == ("jazz", "News")
    assert acme.get(f"/v1/items/{pair}/feeds").json() == {"feeds": ["Pairs"]}
    # Whoever sees the source does not see what the joins of others have made of it.
    grant(acme, "News", "globex", "read")
    assert globex.get(f"/v1/items/{position}/feeds").json() == {"feeds": []}
    problem_in(globex.get(f"/v1/items/{pair}/feeds"), 404)
    told = globex.post("/v1/why", json={"feed": "Rock", "position": position}).json()
    assert "annotations" not in told["item"] or told["item"]["annotations"] == []
    # Whoever sees only the feed sees no name of a source.
    grant(acme, "News", "globex", "use")
    grant(acme, "Pairs", "globex", "read")
    assert globex.get(f"/v1/items/{pair}/feeds").json() == {"feeds": ["acme.Pairs"]}


def test_which_feeds_have_an_item(home: StoredHome, acme: httpx.Client) -> None:
    position = home.put("acme", "loud rock", 9)
    assert acme.get(f"/v1/items/{position}/feeds").json()["feeds"] == ["Rock", "Big", "Loud"]
    names: list[str] = []
    page: dict[str, object] = {"next": 0}
    while "next" in page:
        where = {"limit": 1, "after": page["next"]}
        page = acme.get(f"/v1/items/{position}/feeds", params=where).json()  # type: ignore[arg-type]
        names += page["feeds"]  # type: ignore[arg-type]
    assert names == ["Rock", "Big", "Loud"]
    problem_in(acme.get("/v1/items/7/feeds"), 404)


def test_what_is_not_seen_is_not_there(
    home: StoredHome, acme: httpx.Client, globex: httpx.Client
) -> None:
    loud, jazz = home.put("acme", "loud rock"), home.put("acme", "jazz")
    for position in (loud, jazz, 77):
        for answer in (
            globex.get("/v1/feeds/Rock/why", params={"position": position}),
            globex.post("/v1/why", json={"feed": "Rock", "position": position}),
            globex.get(f"/v1/items/{position}/feeds"),
        ):
            problem = problem_in(answer, 404)
            assert problem["detail"] == f"there is no item at position {position}"
    problem_in(globex.post("/v1/why", json={"feed": "Rock", "id": "jazz"}), 404)
    problem_in(globex.get("/v1/feeds/acme.Rock/why", params={"position": loud}), 404)
    grant(acme, "Loud", "globex", "read")
    # The item can be read now, the definition of the feed cannot.
    assert globex.get(f"/v1/items/{loud}/feeds").json() == {"feeds": ["acme.Loud"]}
    problem_in(globex.get("/v1/feeds/acme.Loud/why", params={"position": loud}), 404)
    told = globex.get("/v1/feeds/Rock/why", params={"position": loud}).json()
    assert told["verdict"] == "Rock does not have it: it does not read the source of the item"
    assert "News" not in str(told)
    told = globex.get("/v1/feeds/News/why", params={"position": loud}).json()
    assert told["verdict"] == "News is a source: it is of another one"
    grant(acme, "Loud", "globex", "use")
    told = globex.get("/v1/feeds/acme.Loud/why", params={"position": loud}).json()
    assert told["has"]
    problem_in(globex.get("/v1/feeds/acme.Loud/why", params={"position": jazz}), 404)


def test_scopes(home: StoredHome) -> None:
    position = home.put("acme", "rock")
    with home.client("acme", Scope.POST) as poster:
        problem_in(poster.get("/v1/feeds/Rock/why", params={"position": position}), 403)
        problem_in(poster.post("/v1/why", json={"feed": "Rock", "position": position}), 403)
        problem_in(poster.get(f"/v1/items/{position}/feeds"), 403)
