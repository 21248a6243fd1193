"""POSTs that come again under their key, by a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.service.test_api import PATIENCE_S, SCRIPT, Home, apply, problem_in

from headgate.catalog import kept_answers
from headgate.catalog.kept_answers import KeptAnswers
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.service.idempotency import takes_key


@pytest.fixture
def acme(home: Home) -> Iterator[httpx.Client]:
    with home.client("acme") as client:
        assert apply(client, SCRIPT).status_code == 200
        yield client


def post(client: httpx.Client, path: str, key: str, json: Any) -> httpx.Response:
    return client.post(path, json=json, headers={"Idempotency-Key": key})


WEBHOOK = {
    "feed": "Rock",
    "output": "webhook",
    "target": "https://a.example/",
    "valid_for": "1 day",
}
REQUESTS: list[tuple[str, dict[str, Any], str, str]] = [
    ("/v1/statements", {"script": "create feed New from News where n > 1;"}, "/v1/feeds", "feeds"),
    ("/v1/subscriptions", WEBHOOK, "/v1/subscriptions", "ticket"),
    ("/v1/feeds/Rock/links", {"comment": "phone"}, "/v1/links", "urls"),
    ("/v1/tokens", {"scopes": ["read"], "comment": "x"}, "/v1/tokens", "token"),
]


@pytest.mark.parametrize(("path", "body", "listed", "secret"), REQUESTS)
def test_a_request_is_made_once_and_answered_as_often_as_it_comes(
    acme: httpx.Client, path: str, body: dict[str, Any], listed: str, secret: str
) -> None:
    first = post(acme, path, "17", body)
    assert first.is_success, first.text
    before = acme.get(listed).json()
    for _ in range(3):
        again = post(acme, path, "17", body)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert again.headers["idempotency-replayed"] == "true"
        for name in ("content-type", "location"):
            assert again.headers.get(name) == first.headers.get(name)
    assert acme.get(listed).json() == before
    assert "idempotency-replayed" not in first.headers
    other = post(acme, path, "18", body)
    assert other.content != first.content or secret == "feeds"


def test_another_request_under_a_used_key_is_refused(home: Home, acme: httpx.Client) -> None:
    assert post(acme, "/v1/feeds/Rock/links", "k", {}).status_code == 201
    for path, body in (
        ("/v1/feeds/Rock/links", {"comment": "x"}),
        ("/v1/feeds/News/links", {}),
        ("/v1/feeds/Rock/links?x=y", {}),
        ("/v1/tokens", {"scopes": ["read"]}),
    ):
        found = problem_in(post(acme, path, "k", body), 422)
        assert found["detail"] == "this idempotency key was used for another request"
    with home.client("acme") as other, home.client("globex") as globex:
        assert post(other, "/v1/tokens", "k", {"scopes": ["read"]}).status_code == 201
        assert post(globex, "/v1/tokens", "k", {"scopes": ["read"]}).status_code == 201
    assert acme.get("/v1/links").json()["total"] == 1


def test_many_at_once_make_one(acme: httpx.Client) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(
            threads.map(lambda _: post(acme, "/v1/feeds/Rock/links", "k", {}), range(24))
        )
    codes = {each.status_code for each in answers}
    assert 201 in codes
    assert codes <= {201, 409}
    assert len({each.content for each in answers if each.status_code == 201}) == 1
    assert all("retry-after" in each.headers for each in answers if each.status_code == 409)
    assert acme.get("/v1/links").json()["total"] == 1


def test_one_that_is_being_made_is_said_to_be(
    acme: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = threading.Event(), threading.Event()
    real = TenantCatalog.create_link

    def slow(self: TenantCatalog, *args: Any, **options: Any) -> Any:
        begun.set()
        assert released.wait(PATIENCE_S)
        return real(self, *args, **options)

    monkeypatch.setattr(TenantCatalog, "create_link", slow)
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(post, acme, "/v1/feeds/Rock/links", "k", {})
        assert begun.wait(PATIENCE_S)
        busy = post(acme, "/v1/feeds/Rock/links", "k", {})
        problem_in(busy, 409)
        assert int(busy.headers["retry-after"]) >= 1
        released.set()
        made = first.result(PATIENCE_S)
    assert post(acme, "/v1/feeds/Rock/links", "k", {}).content == made.content


def test_a_refused_request_is_made_when_it_comes_again(acme: httpx.Client) -> None:
    problem_in(post(acme, "/v1/feeds/Nothing/links", "k", {}), 404)
    problem_in(post(acme, "/v1/statements", "k", {"script": "create feed;"}), 422)
    problem_in(post(acme, "/v1/statements", "k", {"nonsense": 1}), 422)
    assert post(acme, "/v1/feeds/Rock/links", "k", {}).status_code == 201


def test_an_answer_that_was_not_kept_is_said_to_be_lost(
    acme: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash between the change and the answer, when the time of the request is over."""
    with monkeypatch.context() as patch:
        patch.setattr(KeptAnswers, "keep", lambda *_: None)
        patch.setattr(kept_answers, "RUNNING", kept_answers.RUNNING * 0)
        assert post(acme, "/v1/feeds/Rock/links", "k", {}).status_code == 201
    lost = problem_in(post(acme, "/v1/feeds/Rock/links", "k", {}), 409)
    assert "its answer was not kept" in str(lost["detail"])
    assert acme.get("/v1/links").json()["total"] == 1


def test_a_bug_leaves_no_key_that_is_running(
    home: Home, acme: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(TenantCatalog, "create_link", broken)
        assert post(acme, "/v1/feeds/Rock/links", "k", {}).status_code == 500
    # By another connection: the server closes one on which a request has failed so.
    headers = {"authorization": acme.headers["authorization"]}
    with httpx.Client(base_url=home.url, headers=headers, timeout=PATIENCE_S) as again:
        assert post(again, "/v1/feeds/Rock/links", "k", {}).status_code == 201


def test_what_is_wrong_with_a_key_or_a_token_is_said(home: Home, acme: httpx.Client) -> None:
    problem_in(post(acme, "/v1/feeds/Rock/links", "x" * 201, {}), 422)
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    problem_in(acme.post("/v1/feeds/Rock/links", json={}, headers=twice), 422)
    assert acme.post("/v1/feeds/Rock/links", json={}, headers={"Idempotency-Key": ""}).is_success
    strange = {"Idempotency-Key": "\xe9 ' \" ; %00".encode("latin-1")}
    answers = [acme.post("/v1/feeds/Rock/links", json={}, headers=strange) for _ in range(2)]  # type: ignore[arg-type]
    assert answers[0].content == answers[1].content
    for wrong in ({}, {"authorization": "Bearer x"}, {"authorization": "Basic x"}):
        headers = {"Idempotency-Key": "k", **wrong}
        with httpx.Client(base_url=home.url, headers=headers, timeout=PATIENCE_S) as nobody:
            problem_in(nobody.post("/v1/feeds/Rock/links", json={}), 401)
    large = post(acme, "/v1/statements", "k", {"script": "x" * 11_000_000})
    problem_in(large, 413)


def test_the_description_has_the_header_where_it_holds(acme: httpx.Client) -> None:
    paths = acme.get("/v1/openapi.json").json()["paths"]
    described = {
        path
        for path, operations in paths.items()
        for each in operations.get("post", {}).get("parameters", [])
        if each["name"].lower() == "idempotency-key" and each["in"] == "header"
    }
    posts = {path for path, operations in paths.items() if "post" in operations}
    looking = {"/v1/check", "/v1/suggest", "/v1/why", "/v1/feeds/{name}/why"}
    looking |= {"/v1/sources/{name}/selectivity", "/v1/discover", "/v1/plan", "/v1/preview"}
    assert described == posts - looking
    assert {path for path in posts if takes_key(path)} == described - {"/v1/sources/{name}/items"}
