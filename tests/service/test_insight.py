"""Suggestions, values, dependents, history and comparisons by HTTP, for tenants that must not see
each other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
from tests.service.stored_home import StoredHome
from tests.service.test_api import apply, problem_in
from tests.service.test_backtests import finished

SINCE = "2026-11-01"


def suggest(client: httpx.Client, where: str, source: str = "News") -> dict[str, object]:
    answer = client.post(
        "/v1/suggest", json={"statement": f"create feed X from {source} where {where};"}
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


# --- suggestions ----------------------------------------------------------------------------------


def test_feeds_that_are_there_already(stored: StoredHome) -> None:
    with stored.client("acme") as acme:
        found = suggest(acme, "title contains 'rock' and n > 5")
        feeds = {each["name"]: each for each in found["feeds"]}
        assert {name: each["relation"] for name, each in feeds.items()} == {
            "Rock": "wider",
            "Big": "wider",
        }
        assert feeds["Rock"]["statement"] == "create feed X from Rock where n > 5;"
        assert suggest(acme, "title contains 'ROCK'")["feeds"][0]["relation"] == "equal"
        wide = suggest(acme, "n > 0 or title contains 'rock'")["feeds"]
        assert {each["name"]: each["relation"] for each in wide} == {
            "Rock": "narrower",
            "Big": "narrower",
            "Loud": "narrower",
        }
        rewritten = feeds["Rock"]["statement"]
        assert acme.post("/v1/check", json={"script": rewritten}).json()["ok"]


def test_what_others_have_costs_nothing_more(stored: StoredHome) -> None:
    with stored.client("acme") as acme:
        assert apply(acme, "create feed P from News where title matches 'a.*b';").status_code == 200
        found = suggest(acme, "title matches 'a.*b' and n > 77")
        shared = {each["text"]: each["shared_by"] for each in found["parts"]}
        assert shared == {"title matches 'a.*b'": 1, "n > 77": 0}
        assert 0 < found["added_us"] < found["share_us"] < found["cpu_us"]
        price = acme.get("/v1/feeds/P/price").json()
        assert [each["shared_by"] for each in price["parts"]] == [0]
        assert price["added_us"] == price["share_us"] == price["cpu_us"]
        assert "spent_s" not in price


def test_nothing_of_another_tenant_is_suggested_or_counted(stored: StoredHome) -> None:
    with stored.client("acme") as acme, stored.client("globex") as globex:
        grant = {"definition": "News", "tenant": "globex", "right": "use"}
        assert acme.put("/v1/grants", json=grant).status_code == 204
        apply(acme, "create feed Secret from News where title contains 'merger';")
        found = suggest(globex, "title contains 'merger'", "acme.News")
        assert (found["feeds"], found["candidates"]) == ([], 0)
        assert [each["shared_by"] for each in found["parts"]] == [0]
        problem_in(
            globex.post("/v1/suggest", json={"statement": "create feed X from acme.Secret;"}), 422
        )


def test_what_is_no_feed_is_refused(stored: StoredHome) -> None:
    with stored.client("acme") as acme:
        wrong = acme.post("/v1/suggest", json={"statement": "create feed X from Nws;"})
        (error,) = problem_in(wrong, 422)["errors"]  # type: ignore[misc]
        assert (error["column"], error["hint"]) == (20, "did you mean 'News'?")
        problem_in(acme.post("/v1/suggest", json={"statement": "show feeds;"}), 422)


# --- values ---------------------------------------------------------------------------------------


def test_values_and_rates_of_a_source(stored: StoredHome) -> None:
    for n, title in enumerate(("loud rock", "quiet rock", "loud jazz")):
        stored.put("acme", title, n, hours=n)
    stored.put("globex", "secret rock")
    with stored.client("acme") as acme, stored.client("globex", *()) as globex:
        found = acme.get(
            "/v1/sources/News/values", params={"attribute": "title", "prefix": "RO"}
        ).json()
        (title,) = found["attributes"]
        assert [(each["text"], each["items"]) for each in title["words"]] == [("rock", 2)]
        assert found["sample"] == 3
        rates = acme.post(
            "/v1/sources/News/selectivity", json={"filter": "title contains 'rock' and n > 0"}
        ).json()
        assert rates["filter"]["items"] == 1
        assert {each["text"]: each["items"] for each in rates["conditions"]} == {
            "title contains 'rock'": 2,
            "n > 0": 2,
        }
        wrong = acme.post("/v1/sources/News/selectivity", json={"filter": "titel = 'x'"})
        assert "did you mean 'title'" in str(problem_in(wrong, 422)["errors"])
        problem_in(acme.get("/v1/sources/Rock/values"), 404)
        problem_in(globex.get("/v1/sources/acme.News/values"), 404)
        problem_in(globex.post("/v1/sources/acme.News/selectivity", json={"filter": "n > 0"}), 404)


# --- dependents and history -----------------------------------------------------------------------


def test_what_is_behind_a_source(stored: StoredHome) -> None:
    with stored.client("acme") as acme, stored.client("globex") as globex:
        acme.put("/v1/grants", json={"definition": "News", "tenant": "globex", "right": "use"})
        apply(globex, "create feed Mine from acme.News;")
        found = acme.get("/v1/sources/News/dependents").json()
        assert found["feeds"] == ["Big", "Loud", "Pairs", "Rock"]
        assert (found["other_feeds"], found["other_tenants"], found["tenants"]) == (1, 1, ["acme"])
        other = globex.get("/v1/sources/acme.News/dependents").json()
        assert (other["feeds"], other["other_feeds"]) == (["Mine"], 0)
        problem_in(globex.get("/v1/feeds/acme.Rock/dependents"), 404)


def test_the_past_of_a_feed(stored: StoredHome) -> None:
    with stored.client("acme") as acme, stored.client("globex") as globex:
        assert acme.delete("/v1/feeds/Loud").status_code == 204
        apply(acme, "create feed Loud from Rock where title contains 'very';")
        found = acme.get("/v1/feeds/Loud/history").json()["versions"]
        assert ["very" in each["definition"] for each in found] == [True, False]
        assert "dropped_at" in found[1]
        problem_in(acme.get("/v1/sources/Loud/history"), 404)
        problem_in(globex.get("/v1/feeds/acme.Loud/history"), 404)


# --- comparisons ----------------------------------------------------------------------------------


def compared(client: httpx.Client, left: object, right: object) -> dict[str, object]:
    body = {"left": left, "right": right, "since": SINCE}
    answer = client.post("/v1/comparisons", json=body)
    assert answer.status_code == 202, answer.text
    return finished(client, answer.headers["location"])


def test_two_feeds_are_equal_or_the_first_difference_is_told(stored: StoredHome) -> None:
    for n, title in enumerate(("loud rock", "quiet rock", "loud jazz")):
        stored.put("acme", title, n, hours=n)
    statement = {"statement": "create feed Y from News where title contains 'loud';"}
    with stored.client("acme") as acme, stored.client("globex") as globex:
        found = compared(acme, {"feed": "Rock"}, statement)
        result = found["result"]
        assert isinstance(result, dict)
        assert (result["equal"], result["left"], result["right"]) == (False, 2, 2)
        assert (result["only_left"], result["only_right"]) == (1, 1)
        first = result["first"]
        assert (first["is_in"], first["item"]["id"]) == ("left", "quiet rock")
        assert "contains 'loud'" in first["right"]
        assert "proved" not in found
        same = compared(acme, {"feed": "Loud"}, {"statement": "create feed Y from Loud;"})
        assert same["proved"] == "equal"
        assert same["result"]["equal"] is True
        path = f"/v1/comparisons/{found['id']}"
        problem_in(globex.get(path), 404)
        problem_in(acme.get(f"/v1/backtests/{found['id']}"), 404)
        problem_in(globex.delete(path), 404)
        assert acme.delete(path).status_code == 204


def test_a_feed_is_compared_with_its_past(stored: StoredHome) -> None:
    stored.put("acme", "loud rock", hours=1)
    stored.put("acme", "very loud rock", hours=2)
    # The catalog's clock stands still: what is dropped now was never there.
    stored.catalog._clock = lambda: datetime.now(UTC)
    with stored.client("acme") as acme:
        before = datetime.now(UTC) - timedelta(minutes=5)
        assert acme.delete("/v1/feeds/Loud").status_code == 204
        apply(acme, "create feed Loud from Rock where title contains 'very';")
        past = {"feed": "Loud", "at": before.isoformat()}
        result = compared(acme, past, {"feed": "Loud"})["result"]
        assert isinstance(result, dict)
        assert (result["left"], result["right"], result["only_left"]) == (2, 1, 1)
        answer = acme.post("/v1/backtests", json={**past, "since": SINCE})
        tested = finished(acme, answer.headers["location"])["result"]
        assert isinstance(tested, dict)
        assert tested["matched"] == 2
        both = {"statement": "create feed X from News;", "at": before.isoformat()}
        assert acme.post("/v1/backtests", json=both).status_code == 422
        gone = {"feed": "Loud", "at": "2020-01-01T00:00:00Z"}
        problem_in(acme.post("/v1/backtests", json=gone), 404)
