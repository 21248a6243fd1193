"""How many items the sources and feeds of a tenant have, by HTTP."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.service.stored_home import StoredHome
from tests.service.test_api import problem_in
from tests.store.small_log import NOON

from headgate.catalog.principals import Scope


def test_counts_of_sources_and_feeds(stored: StoredHome) -> None:
    hours = (datetime.now(UTC) - NOON).total_seconds() / 3600  # until now
    for before, title in ((100.0, "rock"), (10.0, "jazz"), (5.0, "rock"), (0.1, "rock")):
        stored.put("acme", title, id_=f"{before}", hours=hours - before)
    stored.put("globex", "rock", hours=hours)
    with stored.client("acme") as acme, stored.client("globex") as globex:
        page = acme.get("/v1/stats").json()
        assert page["total"] == len(page["entries"]) == 5
        counts = {each.pop("name"): each for each in page["entries"]}
        assert counts["Big"] == {"kind": "feed", "items": 0, "last_day": 0, "last_hour": 0}
        last = counts["News"].pop("last_arrived")
        assert counts["News"] == {"kind": "stream", "items": 4, "last_day": 3, "last_hour": 1}
        assert last[:16] == acme.get("/v1/feeds/News/stats").json()["last_arrived"][:16]
        rock = acme.get("/v1/feeds/Rock/stats").json()
        assert (rock["items"], rock["last_day"], rock["last_hour"]) == (3, 2, 1)
        names = []
        page = {"next": ""}
        while "next" in page:
            page = acme.get("/v1/stats", params={"limit": 2, "after": page["next"]}).json()
            names += [each["name"] for each in page["entries"]]
        assert names == ["Big", "Loud", "News", "Pairs", "Rock"]
        assert globex.get("/v1/feeds/News/stats").json()["items"] == 1
        there = problem_in(globex.get("/v1/feeds/acme.Rock/stats"), 404)
        nowhere = problem_in(globex.get("/v1/feeds/acme.Rck/stats"), 404)
        assert str(there["detail"]).replace("Rock", "Rck") == nowhere["detail"]
        grant = {"definition": "Rock", "tenant": "globex", "right": "read"}
        acme.put("/v1/grants", json=grant)
        assert globex.get("/v1/feeds/acme.Rock/stats").json()["items"] == 3
        assert globex.get("/v1/stats").json()["total"] == 6
    with stored.client("acme", Scope.POST) as poster:
        problem_in(poster.get("/v1/stats"), 403)
        problem_in(poster.get("/v1/feeds/Rock/stats"), 403)
