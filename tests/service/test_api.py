"""The API under /v1 by a real server: statements, definitions, items, subscriptions, tokens."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.deliver.log_world import LogWorld, news

from headgate.acquire.spool import Spool
from headgate.api.headgate import Headgate
from headgate.catalog.catalog import Catalog
from headgate.catalog.limits import Resource
from headgate.catalog.principals import Principal, Scope
from headgate.service import caller, rate_limits, server
from headgate.service.app import make_app
from headgate.store.data_folder import DataFolder

PATIENCE_S = 60.0
SCRIPT = """
register stream News from post (title text, n int);
create feed Rock from News where title contains 'rock';
"""


@contextmanager
def serving(
    headgate: Headgate, public_url: str = "", *, hosts: Collection[str] = (), **options: Any
) -> Iterator[str]:
    """The URL of a server on loopback."""
    app = make_app(headgate, hosts=hosts, public_url=public_url, **options)
    running = server.make_server(app)
    with server.listen("127.0.0.1", 0) as port:
        thread = threading.Thread(target=running.run, args=[[port]], daemon=True)
        thread.start()
        if public_url:
            app.state.service.hub.start()
        try:
            yield f"http://127.0.0.1:{port.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join(PATIENCE_S)
            app.state.service.hub.close()
            app.state.service.watch.close()


class Home:
    """A catalog with two tenants, and a service over it."""

    def __init__(self, folder: Path) -> None:
        self.catalog = Catalog.open(str(folder / "headgate.db"))
        for name in ("acme", "globex"):
            self.catalog.add_tenant(name)
        self.folder = folder / "data"
        self.headgate = Headgate(self.catalog, self.folder)
        self.url = ""

    def make_log(self) -> LogWorld:
        """As if there had been a run."""
        folder = DataFolder(self.folder).make()
        return LogWorld(folder.path, folder.storage)

    def token(self, tenant: str, *scopes: Scope) -> str:
        principal = Principal(tenant, "the test", frozenset(Scope))
        return self.catalog.acting_as(principal).issue_token(scopes or tuple(Scope)).text

    def client(self, tenant: str, *scopes: Scope) -> httpx.Client:
        headers = {"authorization": f"Bearer {self.token(tenant, *scopes)}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_S)


@pytest.fixture
def acme(home: Home) -> Iterator[httpx.Client]:
    with home.client("acme") as client:
        yield client


def apply(client: httpx.Client, script: str) -> httpx.Response:
    return client.post("/v1/statements", json={"script": script})


def problem_in(response: httpx.Response, status: int) -> dict[str, object]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found: dict[str, object] = response.json()
    assert found["status"] == status
    return found


# --- tokens ---------------------------------------------------------------------------------------


def test_without_a_valid_token_everything_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "WRONG_AT_ONCE", 1_000.0)
    with httpx.Client(base_url=home.url, timeout=PATIENCE_S) as nobody:
        paths = nobody.get("/v1/openapi.json").json()["paths"]
        checked = 0
        for path, methods in paths.items():
            for method in methods:
                if path.startswith("/v1/"):
                    known = {"listed": "feeds", "name": "X", "tenant": "x", "id_": "x"}
                    url = path.format(**known, number=1, position=1)
                    for wrong in (
                        {},
                        {"authorization": "Bearer hg_x"},
                        {"authorization": "Basic x"},
                    ):
                        answer = nobody.request(method, url, headers=wrong)
                        problem_in(answer, 401)
                        assert answer.headers["www-authenticate"].startswith("Bearer")
                    checked += 1
        assert checked > 15


def test_guessing_tokens_is_slowed_down_and_shuts_nobody_out(
    home: Home, acme: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "WRONG_PER_S", 0.001)
    monkeypatch.setattr(rate_limits, "WRONG_AT_ONCE", 5.0)
    monkeypatch.setattr(caller, "PRINCIPAL_S", PATIENCE_S)
    assert acme.get("/v1/me").status_code == 200
    wrong = {"authorization": f"Bearer hg_{'x' * 12}_{'y' * 43}"}
    with httpx.Client(base_url=home.url, headers=wrong, timeout=PATIENCE_S) as guesser:
        codes = [guesser.get("/v1/me").status_code for _ in range(7)]
        assert codes == [401] * 5 + [429] * 2
        answer = guesser.get("/v1/me")
        problem_in(answer, 429)
        assert int(answer.headers["retry-after"]) > 100
    assert acme.get("/v1/me").status_code == 200, "its token is remembered"


def test_a_tenant_has_a_number_of_requests(home: Home) -> None:
    home.catalog.set_quotas({Resource.REQUESTS: 0}, "acme")
    with home.client("acme") as acme, home.client("globex") as globex:
        refused = acme.get("/v1/me")
        assert "at most 0 a second" in str(problem_in(refused, 429)["detail"])
        assert refused.headers["retry-after"] == "60"
        assert {globex.get("/v1/me").status_code for _ in range(20)} == {200}


def test_only_known_hosts_are_served(home: Home, acme: httpx.Client) -> None:
    for host, status in {
        "127.0.0.1": 200,
        "localhost:1234": 200,
        "[::1]:80": 200,
        "evil.example": 421,
        "127.0.0.1.evil.example": 421,
        "": 421,
    }.items():
        assert acme.get("/v1/me", headers={"host": host}).status_code == status, host
    with serving(home.headgate, hosts=["News.example"]) as url:
        for host, status in {"news.example": 200, "NEWS.EXAMPLE.:80": 200, "example": 421}.items():
            assert httpx.get(f"{url}/livez", headers={"host": host}).status_code == status


def test_scopes_are_needed(home: Home) -> None:
    with home.client("acme", Scope.READ) as reader, home.client("acme", Scope.POST) as poster:
        assert reader.get("/v1/me").json()["scopes"] == ["read"]
        assert reader.get("/v1/feeds").status_code == 200
        assert problem_in(apply(reader, SCRIPT), 403)["type"] == "urn:headgate:problem:not-allowed"
        problem_in(reader.post("/v1/sources/News/items", json={}), 403)
        problem_in(reader.get("/v1/tokens"), 403)
        problem_in(poster.get("/v1/feeds"), 403)
        problem_in(poster.get("/v1/feeds/X/items"), 403)


def test_tokens_are_issued_listed_and_revoked(home: Home, acme: httpx.Client) -> None:
    answer = acme.post("/v1/tokens", json={"scopes": ["read"], "comment": "till", "days": 3})
    assert answer.status_code == 201
    token, entry = answer.json()["token"], answer.json()["entry"]
    headers = {"authorization": f"Bearer {token}"}
    assert httpx.get(f"{home.url}/v1/me", headers=headers).json()["tenant"] == "acme"
    listed = acme.get("/v1/tokens")
    assert token not in listed.text
    assert entry["id"] in [each["id"] for each in listed.json()["entries"]]
    with home.client("globex") as other:
        problem_in(other.delete(f"/v1/tokens/{entry['id']}"), 404)
    assert acme.delete(f"/v1/tokens/{entry['id']}").status_code == 204
    assert "issued token" in acme.get("/v1/audit").text


# --- statements -----------------------------------------------------------------------------------


def test_a_script_is_applied_whole_or_not_at_all(acme: httpx.Client) -> None:
    outcomes = apply(acme, SCRIPT).json()["outcomes"]
    assert [each["action"] for each in outcomes] == [
        "registered source News",
        "created feed Rock",
    ]
    wrong = "create feed Jazz from News where title contains 'jazz';\ncreate feed X from Nwes;"
    problem = problem_in(apply(acme, wrong), 422)
    (error,) = problem["errors"]  # type: ignore[misc]
    assert error == {
        "message": "there is no source or feed 'Nwes'",
        "kind": "LanguageError",
        "line": 2,
        "column": 20,
        "source": "create feed X from Nwes;",
        "hint": "did you mean 'News'?",
        "statement": 2,
    }
    assert [each["name"] for each in acme.get("/v1/feeds").json()["entries"]] == ["Rock"]
    taken = "create feed Rock from News where title contains 'roll';"
    assert problem_in(apply(acme, taken), 409)["title"] == "The name is taken"


def test_check_lists_all_errors_and_prices(acme: httpx.Client) -> None:
    def check(script: str) -> dict[str, object]:
        answer = acme.post("/v1/check", json={"script": script})
        assert answer.status_code == 200
        found: dict[str, object] = answer.json()
        return found

    found = check(SCRIPT + "create feed Slow from News where title matches '[a-h][^u-z]{90}z';")
    assert found["ok"]
    prices = found["prices"]
    assert prices["Slow"]["cpu_us"] > 100 > prices["Rock"]["cpu_us"]  # type: ignore[index]
    assert acme.get("/v1/feeds").json()["total"] == 0
    found = check("create fed X;\n" + SCRIPT + "create feed Y from News where p > 3; drop feed Z;")
    assert [each.get("line") for each in found["errors"]] == [1, 5, None]  # type: ignore[attr-defined]


# --- definitions ----------------------------------------------------------------------------------


def test_definitions_are_listed_read_and_dropped(acme: httpx.Client) -> None:
    apply(acme, SCRIPT + "".join(f"create feed F{n} from News where n = {n};" for n in range(5)))
    names: list[str] = []
    page = acme.get("/v1/feeds", params={"limit": 2}).json()
    assert page["total"] == 6
    while True:
        names += [each["name"] for each in page["entries"]]
        if "next" not in page:
            break
        page = acme.get("/v1/feeds", params={"limit": 2, "after": page["next"]}).json()
    assert names == ["F0", "F1", "F2", "F3", "F4", "Rock"]
    answer = acme.get("/v1/feeds/F1")
    assert answer.json()["definition"] == "create feed F1\n  from News\n  where n = 1;"
    problem_in(acme.get("/v1/sources/F1"), 404)
    problem_in(acme.delete("/v1/feeds/F1", headers={"if-match": '"0"'}), 412)
    assert (
        acme.delete("/v1/feeds/F1", headers={"if-match": answer.headers["etag"]}).status_code == 204
    )
    problem_in(acme.get("/v1/feeds/F1"), 404)
    problem = problem_in(acme.delete("/v1/sources/News"), 409)
    assert "is used by feeds F0, F2, F3, F4, Rock" in str(problem["detail"])


def test_a_feed_is_explained_priced_and_suspended(home: Home, acme: httpx.Client) -> None:
    apply(acme, SCRIPT)
    explained = acme.get("/v1/feeds/Rock/explain").json()
    assert "title contains 'rock'" in explained["text"]
    assert explained["data"]["price"]["cpu_us"] < 1
    assert acme.get("/v1/feeds/Rock/price").json()["cpu_us"] < 1
    item = {"attributes": {"title": "rock"}}
    assert "yes" in acme.post("/v1/feeds/Rock/why", json=item).json()["text"].lower()
    assert acme.post("/v1/feeds/Rock/suspend", json={"reason": "loud"}).json() == {"changed": True}
    assert acme.get("/v1/feeds/Rock").json()["suspended"] == "loud"
    assert "loud" in acme.get("/v1/feeds/Rock/explain").json()["text"]
    assert acme.post("/v1/feeds/Rock/resume").json() == {"changed": True}
    problem_in(acme.get("/v1/feeds/Nothing/explain"), 404)
    problem_in(acme.post("/v1/feeds/News/suspend", json={}), 409)
    with home.client("globex") as globex:
        grant = {"definition": "Rock", "tenant": "globex", "right": "read"}
        acme.put("/v1/grants", json=grant)
        for path in ("explain", "price"):  # items may be read, the definition not
            problem_in(globex.get(f"/v1/feeds/acme.Rock/{path}"), 404)
        problem_in(globex.post("/v1/feeds/acme.Rock/suspend", json={}), 404)
        acme.put("/v1/grants", json=grant | {"right": "use"})
        text = globex.get("/v1/feeds/acme.Rock/explain").json()["text"]
        assert "acme.News" in text


def test_another_tenant_sees_nothing(home: Home, acme: httpx.Client) -> None:
    apply(acme, SCRIPT)
    acme.post("/v1/subscriptions", json={"feed": "Rock", "output": "mail", "target": "a@b.org"})
    with home.client("globex") as globex:
        for path in ("feeds", "sources", "operators", "subscriptions", "grants"):
            assert globex.get(f"/v1/{path}").json()["entries"] == []
        for path in (
            "feeds/acme.Rock",
            "sources/acme.News",
            "feeds/acme.Rock/items",
            "feeds/acme.News/items",
            "subscriptions/1",
        ):
            there = problem_in(globex.get(f"/v1/{path}"), 404)
            nowhere = problem_in(
                globex.get(f"/v1/{path.replace('acme', 'acne').replace('1', '9')}"), 404
            )
            assert str(there["detail"]) == str(nowhere["detail"]).replace("acne", "acme").replace(
                "9", "1"
            )
        problem_in(globex.post("/v1/sources/acme.News/items", json={"title": "x"}), 404)
        problem_in(globex.delete("/v1/subscriptions/1"), 404)
        problem_in(globex.delete("/v1/feeds/acme.Rock"), 404)
        assert "Rock" not in globex.get("/v1/audit").text
        assert (
            globex.put(
                "/v1/grants", json={"definition": "acme.Rock", "tenant": "globex", "right": "use"}
            ).status_code
            == 404
        )
        grant = {"definition": "Rock", "tenant": "globex", "right": "read"}
        assert acme.put("/v1/grants", json=grant).status_code == 204
        (entry,) = globex.get("/v1/feeds").json()["entries"]
        assert (entry["name"], entry["definition"]) == ("acme.Rock", "")
        problem_in(globex.delete("/v1/feeds/acme.Rock"), 422)
        problem_in(globex.post("/v1/sources/acme.News/items", json={"title": "x"}), 404)


# --- items ----------------------------------------------------------------------------------------


def test_items_are_read_by_position(home: Home, acme: httpx.Client) -> None:
    apply(acme, SCRIPT)
    problem_in(acme.get("/v1/feeds/Rock/items"), 503)  # there was no run yet
    log = home.make_log()
    number = home.catalog.definitions().number_of("acme.Rock")
    for n in range(7):
        feeds = (number,) if n % 2 else (10_000,)
        log.publish(news(f"n{n}", *feeds, source="acme.News"))
    log.publish(news("other", 10_000, source="globex.Secret"))

    def ids(page: dict[str, Any]) -> list[str]:
        return [each["id"] for each in page["items"]]

    assert ids(acme.get("/v1/feeds/Rock/items").json()) == ["n1", "n3", "n5"]
    assert ids(acme.get("/v1/feeds/Rock/items", params={"limit": 2}).json()) == ["n3", "n5"]
    page = acme.get("/v1/feeds/Rock/items", params={"since": 0, "limit": 2}).json()
    assert (ids(page), page["complete"]) == (["n1", "n3"], False)
    page = acme.get("/v1/feeds/Rock/items", params={"since": page["next"], "limit": 2}).json()
    assert (ids(page), page["complete"]) == (["n5"], True)
    assert ids(acme.get("/v1/feeds/Rock/items", params={"since": page["next"]}).json()) == []
    log.publish(news("late", number, source="acme.News"))
    page = acme.get("/v1/feeds/Rock/items", params={"since": page["next"]}).json()
    (item,) = page["items"]
    assert (item["id"], item["source"]) == ("late", "News")
    assert item["attributes"]["title"] == "title late"
    # A source has all of its own; nobody else's.
    assert len(ids(acme.get("/v1/feeds/News/items").json())) == 8
    with home.client("globex") as globex:
        problem_in(globex.get("/v1/feeds/acme.Rock/items"), 404)
        acme.put("/v1/grants", json={"definition": "Rock", "tenant": "*", "right": "read"})
        items = globex.get("/v1/feeds/acme.Rock/items").json()["items"]
        assert [each["id"] for each in items] == ["n1", "n3", "n5", "late"]
        assert all("source" not in each for each in items)  # it is not seen


# --- posting --------------------------------------------------------------------------------------

EVENTS = [{"title": f"t{n}", "n": n} for n in range(3)]


@pytest.mark.parametrize(
    ("content", "headers"),
    [
        (json.dumps(EVENTS).encode(), {}),
        ("\n".join(map(json.dumps, EVENTS)).encode(), {"content-type": "application/x-ndjson"}),
        (gzip.compress(json.dumps(EVENTS).encode()), {"content-encoding": "gzip"}),
    ],
    ids=["array", "lines", "gzipped"],
)
def test_events_are_posted_in_every_form(
    acme: httpx.Client, content: bytes, headers: dict[str, str]
) -> None:
    apply(acme, SCRIPT)
    first = acme.post("/v1/sources/News/items", content=content, headers=headers)
    assert first.status_code == 202
    assert first.json() | {"position": 0} == {
        "position": 0,
        "accepted": 3,
        "rejected": 0,
        "reasons": [],
    }
    one = acme.post("/v1/sources/News/items", json={"title": "x"}).json()
    assert one["accepted"] == 1
    assert one["position"] > first.json()["position"]


def test_events_that_do_not_fit_are_named_and_the_others_are_taken(acme: httpx.Client) -> None:
    apply(acme, SCRIPT)
    events = [{"n": 1}, {"n": "x"}, 3, {"n": 2}]
    posted = acme.post("/v1/sources/News/items", json=events).json()
    assert posted["accepted"] == 2
    assert [each["event"] for each in posted["reasons"]] == [2, 3]


def test_a_post_that_comes_again_with_its_key_is_accepted_once(acme: httpx.Client) -> None:
    apply(acme, SCRIPT)
    path = "/v1/sources/News/items"
    for events in ([{"n": 1}, {"n": "x"}], [{"title": "x" * 20_000}]):
        headers = {"idempotency-key": f"key {len(str(events))}"}
        first = acme.post(path, json=events, headers=headers)
        assert first.status_code == 202
        again = acme.post(path, json=events, headers=headers)
        assert (again.status_code, again.json()) == (202, first.json())
        other = problem_in(acme.post(path, json={"n": 7}, headers=headers), 422)
        assert "was used for other events" in str(other["detail"])
    assert acme.post(path, json=events).json()["position"] > first.json()["position"]
    problem_in(acme.post(path, json={}, headers={"idempotency-key": "x" * 201}), 422)


def test_posts_at_once_are_all_answered(home: Home, acme: httpx.Client) -> None:
    """Good and bad ones, which are written in groups: each gets its own answer."""
    apply(acme, SCRIPT)

    def post(n: int) -> tuple[int, object]:
        name = "News" if n % 3 else "Nobody"
        answer = acme.post(f"/v1/sources/{name}/items", json={"n": n if n % 5 else "x"})
        return answer.status_code, answer.json().get("accepted")

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(post, range(200)))
    assert answers == [(404, None) if n % 3 == 0 else (202, int(n % 5 != 0)) for n in range(200)]
    (folder,) = DataFolder(home.folder).sources.glob("post-*/spool")
    spool = Spool(folder)
    lines = [each.lines for each in spool.frames(spool.first(), spool.end())]
    assert sorted(json.loads(each)["n"] for each in lines) == [
        n for n in range(200) if n % 3 and n % 5
    ]


def test_bodies_that_are_no_events(acme: httpx.Client) -> None:
    apply(acme, SCRIPT)
    path = "/v1/sources/News/items"
    zipped = gzip.compress(b"[]" * 10)
    for content, headers, status in (
        (b"{", {}, 422),
        (b"[" * 100_000, {}, 422),
        (b"\xff", {}, 422),
        (b"x", {"content-encoding": "gzip"}, 400),
        (zipped[:-3], {"content-encoding": "gzip"}, 400),
        (zipped + b"x", {"content-encoding": "gzip"}, 400),
        (gzip.compress(b" " * 11_000_000), {"content-encoding": "gzip"}, 413),
        (b" " * 11_000_000, {}, 413),
        (b"{}", {"content-encoding": "br"}, 415),
    ):
        problem_in(acme.post(path, content=content, headers=headers), status)
    nobody = problem_in(acme.post("/v1/sources/Nobody/items", json={}), 404)
    assert nobody["detail"] == "there is no source 'Nobody'"
    feed = problem_in(acme.post("/v1/sources/Rock/items", json={}), 409)
    assert str(feed["detail"]).startswith("'Rock' takes no events")


# --- subscriptions --------------------------------------------------------------------------------


def test_subscriptions_are_made_renewed_and_ended(acme: httpx.Client) -> None:
    apply(acme, SCRIPT)
    new = {"feed": "Rock", "output": "webhook", "target": "https://a.b/x", "valid_for": "3 days"}
    answer = acme.post("/v1/subscriptions", json=new)
    assert answer.status_code == 201
    made = answer.json()
    assert made["secret"].startswith("whsec_")
    path = answer.headers["location"]
    entry = acme.get(path).json()
    assert (entry["feed"], entry["target"]) == ("Rock", "https://a.b/x")
    assert made["secret"] not in acme.get("/v1/subscriptions").text
    renewed = acme.post(f"{path}/renew", json={"valid_for": "30 days"}).json()
    assert renewed["expires_at"] > entry["expires_at"]
    assert acme.delete(path).status_code == 204
    problem_in(acme.get(path), 404)
    problem_in(acme.delete(path), 404)
    problem_in(acme.post("/v1/subscriptions", json=new | {"target": "ftp://x"}), 422)
    problem_in(acme.post("/v1/subscriptions", json=new | {"output": "pigeon"}), 422)
    problem_in(acme.post("/v1/subscriptions", json=new | {"valid_for": "3 moons"}), 422)
    machine = acme.post(
        "/v1/subscriptions", json={"feed": "Rock", "output": "file", "target": "x.atom"}
    )
    assert "may not write to the output file" in str(problem_in(machine, 422)["detail"])


# --- the service ----------------------------------------------------------------------------------


def test_health_needs_no_token(home: Home) -> None:
    assert httpx.get(f"{home.url}/livez").json() == {"ok": True}
    not_yet = httpx.get(f"{home.url}/readyz")
    assert not_yet.status_code == 503
    assert not_yet.json() == {
        "ok": False,
        "catalog": True,
        "log": False,
        "run": False,
        "delivery": True,
    }


def test_large_and_strange_requests(acme: httpx.Client) -> None:
    problem_in(apply(acme, " " * 1_000_001), 422)
    problem_in(acme.post("/v1/statements", content=b" " * 10_100_000), 413)
    problem_in(acme.post("/v1/statements", content=b"{"), 422)
    problem_in(acme.get("/v1/nothing"), 422)
    problem_in(acme.get("/v1/feeds/X/nothing"), 404)
    problem_in(acme.get("/v1/feeds", params={"limit": 10**30}), 422)
    problem_in(acme.get("/v1/feeds/" + "x" * 300), 422)
    problem_in(acme.patch("/v1/feeds"), 405)
    problem_in(acme.get("/v1/feeds/%00"), 404)
    assert acme.get("/nowhere").status_code == 404
