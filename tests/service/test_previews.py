"""What somebody who writes a feed sees beside the text, and the smallest edit, by HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.service.stored_home import StoredHome
from tests.service.test_api import apply, problem_in

from headgate.catalog.principals import Scope

TWO = "create feed New from News where title contains 'rock' and n > 5;"


@pytest.fixture
def acme(stored: StoredHome) -> Iterator[httpx.Client]:
    with stored.client("acme") as client:
        yield client


@pytest.fixture
def globex(stored: StoredHome) -> Iterator[httpx.Client]:
    with stored.client("globex") as client:
        yield client


def preview(client: httpx.Client, statement: str) -> dict[str, object]:
    answer = client.post("/v1/preview", json={"statement": statement})
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


def titles(items: object) -> list[str]:
    assert isinstance(items, list)
    return [each["attributes"]["title"] for each in items]


def test_what_matches_and_what_nearly_does(stored: StoredHome, acme: httpx.Client) -> None:
    stored.put("acme", "rock", 7)
    stored.put("acme", "loud rock", 9)
    stored.put("acme", "rock", 3, id_="small")
    stored.put("acme", "jazz", 8)
    stored.put("acme", "jazz", 1, id_="nothing")
    stored.put("globex", "rock", 7)
    found = preview(acme, TWO)
    assert (found["items"], found["matched"], found["nearly"]) == (5, 2, 2)
    assert titles(found["matched_items"]) == ["loud rock", "rock"]
    nearly = found["nearly_items"]
    assert isinstance(nearly, list)
    assert [(each["item"]["attributes"]["title"], each["condition"]) for each in nearly] == [
        ("jazz", "title contains 'rock'"),
        ("rock", "n > 5"),
    ]
    conditions = found["conditions"]
    assert isinstance(conditions, list)
    assert {each["text"]: (each["holds"], each["alone"]) for each in conditions} == {
        "title contains 'rock'": (3, 1),
        "n > 5": (3, 1),
    }


def test_other_shapes_of_feeds(stored: StoredHome, acme: httpx.Client) -> None:
    stored.put("acme", "loud rock", 1)
    assert preview(acme, "create feed X from News;")["matched"] == 1
    assert preview(acme, "create feed X from News where n > 5;")["nearly"] == 0
    over_a_feed = preview(acme, "create feed X from Rock where n > 5;")
    assert (over_a_feed["matched"], over_a_feed["nearly"]) == (0, 1)
    joined = "create feed X from News as $a join last 5 items on News with $a[n = window.n];"
    assert preview(acme, joined)["other_branches"] == 1
    wrong = problem_in(
        acme.post("/v1/preview", json={"statement": "create feed X from Nwes;"}), 422
    )
    assert wrong["errors"][0]["hint"] == "did you mean 'News'?"


def test_sources_of_others_are_not_looked_at(
    stored: StoredHome, acme: httpx.Client, globex: httpx.Client
) -> None:
    stored.put("acme", "rock", 7)
    problem_in(globex.post("/v1/preview", json={"statement": "create feed X from acme.Rock;"}), 422)
    grant = {"definition": "Rock", "tenant": "globex", "right": "use"}
    assert acme.put("/v1/grants", json=grant).status_code == 204
    found = preview(globex, "create feed X from acme.Rock where n > 9;")
    assert (found["items"], found["other_sources"], found["nearly_items"]) == (0, 1, [])


def test_the_plan_as_a_graph(acme: httpx.Client, globex: httpx.Client) -> None:
    asked = {"statement": "create feed New from Rock where n > 5;"}
    plan = acme.post("/v1/plan", json=asked).json()
    before, after = plan["before"]["nodes"], plan["after"]["nodes"]
    assert [node["op"] for node in before] == ["source", "filter", "filter"]
    assert [node["feed"] for node in before] == ["", "Rock", ""]
    assert [node["op"] for node in after] == ["source", "filter"]
    assert after[1]["inputs"] == [0]
    shared = {each["text"]: each["shared_by"] for each in after[1]["conditions"]}
    assert shared == {"title contains 'rock'": 1, "n > 5": 1}
    assert "unregistered" not in str(plan)
    assert "acme." not in str(plan)
    of_source = acme.post("/v1/plan", json={"feed": "News"}).json()
    assert [node["text"] for node in of_source["after"]["nodes"]] == ["News"]
    of_feed = acme.post("/v1/plan", json={"feed": "Loud"}).json()
    assert len(of_feed["after"]["nodes"]) == 2
    problem_in(globex.post("/v1/plan", json={"feed": "acme.Rock"}), 404)
    problem_in(acme.post("/v1/plan", json={}), 422)


def test_the_smallest_edit(stored: StoredHome, acme: httpx.Client, globex: httpx.Client) -> None:
    low, rock = stored.put("acme", "rock", 3), stored.put("acme", "rock", 9, id_="high")
    apply(acme, "create feed Both from News where title contains 'rock' and n > 5;")
    found = acme.get("/v1/feeds/Both/edit", params={"position": low}).json()
    (edit,) = found["feeds"]
    assert edit["changes"] == [{"before": "n > 5", "after": "n >= 3"}]
    assert "n >= 3" in edit["after"]
    rates = found["rates"]
    assert (rates["sample"], rates["before"]["items"], rates["after"]["items"]) == (2, 1, 2)
    assert acme.get("/v1/feeds/Both/edit", params={"position": rock}).json()["feeds"] == []
    (below,) = acme.get("/v1/feeds/Loud/edit", params={"position": low}).json()["feeds"]
    assert below["changes"] == [{"before": "title contains 'loud'"}]
    problem_in(globex.get("/v1/feeds/Rock/edit", params={"position": low}), 404)


def test_an_edit_of_a_feed_below(stored: StoredHome, acme: httpx.Client) -> None:
    jazz = stored.put("acme", "loud jazz", 3)
    (edit,) = acme.get("/v1/feeds/Loud/edit", params={"position": jazz}).json()["feeds"]
    assert edit["feed"] == "Rock"


def test_an_item_and_its_deliveries(
    stored: StoredHome, acme: httpx.Client, globex: httpx.Client
) -> None:
    rock, jazz = stored.put("acme", "rock", 3), stored.put("acme", "jazz", 3)
    assert acme.get(f"/v1/items/{rock}").json()["attributes"] == {"title": "rock", "n": 3}
    problem_in(globex.get(f"/v1/items/{rock}"), 404)
    new = {"feed": "Rock", "output": "webhook", "target": "https://hooks.example/r"}
    assert acme.post("/v1/subscriptions", json=new).status_code == 201
    found = acme.get(f"/v1/items/{rock}/deliveries").json()
    assert found["complete"]
    (delivery,) = found["deliveries"]
    assert (delivery["feed"], delivery["output"]) == ("Rock", "webhook")
    assert delivery["text"]
    assert acme.get(f"/v1/items/{jazz}/deliveries").json()["deliveries"] == []
    problem_in(globex.get(f"/v1/items/{rock}/deliveries"), 404)
    with stored.client("acme", Scope.READ) as reader:
        problem_in(reader.get(f"/v1/items/{rock}/deliveries"), 403)


def test_names_are_found_by_a_part(acme: httpx.Client, globex: httpx.Client) -> None:
    def names(client: httpx.Client, contains: str) -> tuple[list[str], int]:
        page = client.get("/v1/feeds", params={"contains": contains}).json()
        return [each["name"] for each in page["entries"]], page["total"]

    assert names(acme, "o") == (["Loud", "Rock"], 2)
    assert names(acme, "ROCK") == (["Rock"], 1)
    assert names(acme, "acme") == ([], 0)
    assert names(acme, "%") == ([], 0)
    grant = {"definition": "Rock", "tenant": "globex", "right": "read"}
    assert acme.put("/v1/grants", json=grant).status_code == 204
    assert names(globex, "rock") == (["Rock", "acme.Rock"], 2) or names(globex, "rock") == (
        ["acme.Rock", "Rock"],
        2,
    )


def test_counts_of_some_names(stored: StoredHome, acme: httpx.Client) -> None:
    stored.put("acme", "rock", 7)
    asked = {"name": ["Rock", "News", "Nothing", "globex.Rock", "Rock"]}
    page = acme.get("/v1/stats", params=asked).json()
    assert {each["name"]: each["items"] for each in page["entries"]} == {"Rock": 1, "News": 1}
