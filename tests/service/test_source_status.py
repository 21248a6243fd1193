"""How a source is, by HTTP, for its owner and nobody else."""

from __future__ import annotations

from pathlib import Path

from tests.acquire.test_inbox import NOW, document, visit
from tests.service.stored_home import StoredHome
from tests.service.test_api import apply, problem_in

from headgate.acquire.inbox import Inbox
from headgate.acquire.inbox_tables import FailedFetch, ListedFeed
from headgate.acquire.refresh_state import RefreshState
from headgate.acquire.rejected import Rejects
from headgate.store.data_folder import DataFolder

URL = "https://example.org/feed"


def inbox_of(home: StoredHome) -> Path:
    folder = DataFolder(home.folder).sources / "feeds-1"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_a_web_feed_that_works_and_then_breaks(stored: StoredHome) -> None:
    feed = ListedFeed("acme.Web", URL)
    with stored.client("acme") as acme, stored.client("globex") as globex:
        apply(acme, f"register feed '{URL}' as Web;")
        before = acme.get("/v1/sources/Web/status").json()
        assert (before["items"], "fetches" in before, "problem" in before) == (0, False, False)
        with Inbox(inbox_of(stored)) as inbox:
            inbox.list_feeds([feed], NOW)
            inbox.put(feed, visit(), document())
            good = acme.get("/v1/sources/Web/status").json()
            assert good["fetches"]["url"] == URL
            assert good["fetches"]["failures"] == 0
            assert "problem" not in good
            failed = FailedFetch(
                NOW + 60, RefreshState(fetched_at=NOW, failures=2), NOW + 120, "it answers 500"
            )
            inbox.put_failure(feed, failed)
            bad = acme.get("/v1/sources/Web/status").json()
            assert bad["problem"] == "it answers 500"
            assert bad["fetches"]["failures"] == 2
            assert bad["fetches"]["next_at"] == "1970-01-12T13:48:40Z"
        problem_in(globex.get("/v1/sources/acme.Web/status"), 404)
        grant = {"definition": "Web", "tenant": "globex", "right": "use"}
        assert acme.put("/v1/grants", json=grant).status_code == 204
        problem_in(globex.get("/v1/sources/acme.Web/status"), 404)


def test_rejected_records_are_for_the_owner(stored: StoredHome) -> None:
    stored.put("acme", "rock")
    folder = DataFolder(stored.folder).sources / "post-1"
    for number, reason in enumerate(("first", "second \x1b")):
        rejects = Rejects("acme.News", "post")
        rejects.add(number, reason, b'{"secret": \xff}')
        rejects.write(folder, str(number))
    with stored.client("acme") as acme, stored.client("globex") as globex:
        found = acme.get("/v1/sources/News/rejected").json()["records"]
        assert sorted(each["place"] for each in found) == ["post:0", "post:1"]
        assert all("secret" in each["text"] and each["count"] == 1 for each in found)
        assert "\x1b" not in str(found)
        assert len(acme.get("/v1/sources/News/rejected?limit=1").json()["records"]) == 1
        assert globex.get("/v1/sources/News/rejected").json()["records"] == []
        problem_in(globex.get("/v1/sources/acme.News/rejected"), 404)
        problem_in(acme.get("/v1/sources/Rock/rejected"), 404)


def test_a_tenant_may_write_its_own_prefix(stored: StoredHome) -> None:
    stored.put("acme", "rock")
    with stored.client("acme") as acme:
        for path in ("sources/{}/status", "feeds/{}/items", "sources/{}"):
            plain = acme.get("/v1/" + path.format("News"))
            prefixed = acme.get("/v1/" + path.format("acme.News"))
            assert plain.status_code == prefixed.status_code == 200
        script = "create feed acme.X from acme.Rock; create feed Y from X; drop feed acme.Y;"
        assert apply(acme, script).status_code == 200
        assert acme.get("/v1/feeds/acme.X").json()["name"] == "X"
