"""All sources of a tenant at once, and fetching one now."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.acquire.test_inbox import NOW, document, visit
from tests.service.stored_home import StoredHome
from tests.service.test_api import Home, apply, problem_in
from tests.service.test_source_status import inbox_of

from headgate.acquire.inbox import Inbox
from headgate.acquire.inbox_tables import FailedFetch, ListedFeed
from headgate.acquire.refresh_state import RefreshState
from headgate.acquire.retry_requests import take_retries
from headgate.catalog.principals import Scope

URL = "https://example.org/feed"


def failed(at: float = NOW + 60) -> FailedFetch:
    return FailedFetch(at, RefreshState(fetched_at=NOW, failures=2), at + 600, "it answers 500")


def test_broken_ones_come_first_and_tenants_are_apart(stored: StoredHome) -> None:
    stored.put("acme", "rock")
    with stored.client("acme") as acme, stored.client("globex") as globex:
        apply(acme, f"register feed '{URL}' as Web; register feed '{URL}2' as Also;")
        feeds = [ListedFeed("acme.Web", URL), ListedFeed("acme.Also", f"{URL}2")]
        with Inbox(inbox_of(stored)) as inbox:
            inbox.list_feeds(feeds, NOW)
            inbox.put(feeds[1], visit(), document())
            inbox.put_failure(feeds[0], failed())
        page = acme.get("/v1/source-states").json()
        assert [(each["name"], each["state"]) for each in page["entries"]] == [
            ("Web", "broken"),
            ("Also", "new"),
            ("News", "fine"),
        ]
        assert page["totals"] == {"broken": 1, "quiet": 0, "new": 1, "fine": 1}
        assert (page["run"], page["matching"], "next" in page) == ("never", 3, False)
        web, _, news = page["entries"]
        assert (web["problem"], web["failures"], web["url"]) == ("it answers 500", 2, URL)
        assert web["broken_since"] < web["next_at"]
        assert (news["items"], sum(news["counts"])) == (1, 1)
        others = globex.get("/v1/source-states").json()
        assert [each["name"] for each in others["entries"]] == ["News"]
        assert others["entries"][0]["items"] == 0
        # A grant shows the source elsewhere, but how it is remains its owner's business.
        grant = {"definition": "Web", "tenant": "globex", "right": "use"}
        assert acme.put("/v1/grants", json=grant).status_code == 204
        assert globex.get("/v1/source-states").json()["totals"]["broken"] == 0


def test_pages_states_and_names(stored: StoredHome) -> None:
    with stored.client("acme") as acme:
        apply(acme, "".join(f"register stream S{n} from post (a int);" for n in range(5)))
        names, after = [], ""
        while True:
            page = acme.get("/v1/source-states", params={"after": after, "limit": 2}).json()
            names += [each["name"] for each in page["entries"]]
            if "next" not in page:
                break
            after = page["next"]
        assert names == ["News", "S0", "S1", "S2", "S3", "S4"]
        fine = acme.get("/v1/source-states", params={"state": "fine"}).json()
        assert (fine["entries"], fine["matching"], fine["totals"]["new"]) == ([], 0, 6)
        found = acme.get("/v1/source-states", params={"name": "s3"}).json()
        assert [each["name"] for each in found["entries"]] == ["S3"]
        problem_in(acme.get("/v1/source-states", params={"after": "x"}), 422)
        problem_in(acme.get("/v1/source-states", params={"state": "odd"}), 422)


def test_before_the_first_run(home: Home) -> None:
    with home.client("acme") as acme:
        apply(acme, "register stream News from post (title text);")
        page = acme.get("/v1/source-states").json()
        assert (page["run"], page["totals"]["new"]) == ("never", 1)


def test_a_source_may_be_called_status(stored: StoredHome) -> None:
    with stored.client("acme") as acme:
        apply(acme, "register stream status from post (a int);")
        assert acme.get("/v1/sources/status").json()["name"] == "status"
        assert acme.get("/v1/sources/status/status").json()["state"] == "new"


def test_attributes_and_promises_of_a_source(stored: StoredHome) -> None:
    with stored.client("acme") as acme, stored.client("globex") as globex:
        apply(acme, "advertise News where n > 3;")
        found = acme.get("/v1/sources/News/schema").json()
        assert [(each["name"], each["type"]) for each in found["attributes"]] == [
            ("title", "text"),
            ("n", "int"),
        ]
        assert found["advertisements"] == ["advertise News where n > 3;"]
        problem_in(globex.get("/v1/sources/acme.News/schema"), 404)
        problem_in(acme.get("/v1/sources/Rock/schema"), 404)


def test_a_web_feed_is_fetched_now(stored: StoredHome) -> None:
    feed = ListedFeed("acme.Web", URL)
    with stored.client("acme") as acme, stored.client("globex") as globex:
        apply(acme, f"register feed '{URL}' as Web;")
        problem_in(acme.post("/v1/sources/Web/retry"), 409)  # no run has listed it
        with Inbox(inbox_of(stored)) as inbox:
            inbox.list_feeds([feed], NOW)
            inbox.put_failure(feed, failed())
            # The run has the inbox open, as here, and takes the request from beside it.
            assert acme.post("/v1/sources/Web/retry").status_code == 202
            status = acme.get("/v1/sources/Web/status").json()
            assert (status["state"], status["fetches"]["retry_requested"]) == ("broken", True)
            assert take_retries(inbox.folder) == ["acme.Web"]
            assert not acme.get("/v1/sources/Web/status").json()["fetches"]["retry_requested"]
            inbox.put_failure(feed, failed(datetime.now(UTC).timestamp()))
        refused = acme.post("/v1/sources/Web/retry")
        problem_in(refused, 429)
        assert 1 <= int(refused.headers["retry-after"]) <= 30
        problem_in(globex.post("/v1/sources/acme.Web/retry"), 404)
        problem_in(acme.post("/v1/sources/News/retry"), 422)
        with stored.client("acme", Scope.READ) as reader:
            problem_in(reader.post("/v1/sources/Web/retry"), 403)
