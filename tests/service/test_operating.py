"""`/readyz` and `/metrics` by a real server: what they say, to whom, and never a name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.deliver.log_world import news
from tests.pipeline.operated_folder import OperatedFolder
from tests.service.test_api import PATIENCE_S, SCRIPT, Home, apply, serving

from headgate.catalog.principals import Scope
from headgate.service import run_watch


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request looks at the folder."""
    monkeypatch.setattr(run_watch, "LOOK_S", 0.0)


@pytest.fixture
def operated(tmp_path: Path) -> Iterator[tuple[OperatedFolder, str]]:
    made = OperatedFolder(tmp_path)
    with serving(made.headgate) as url:
        yield made, url
    made.close()


def ready(url: str) -> tuple[int, dict[str, bool]]:
    answer = httpx.get(f"{url}/readyz", timeout=PATIENCE_S)
    return answer.status_code, answer.json()


def samples(text: str) -> dict[tuple[str, ...], float]:
    return {
        (each.name, *each.labels.values()): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


def scraped(url: str, **headers: str) -> httpx.Response:
    return httpx.get(f"{url}/metrics", headers=headers, timeout=PATIENCE_S)


# --- readiness ------------------------------------------------------------------------------------


def test_a_run_that_is_not_there_is_reported(operated: tuple[OperatedFolder, str]) -> None:
    made, url = operated
    made.world.publish(news("a"))
    well = {"ok": True, "catalog": True, "log": True, "run": False, "delivery": True}
    assert ready(url) == (200, well)
    made.beat(ended_s=made.now_s)
    assert ready(url) == (200, well)


def test_a_run_that_was_killed_makes_the_service_not_ready(
    operated: tuple[OperatedFolder, str],
) -> None:
    made, url = operated
    made.beat()
    assert ready(url)[1]["run"] is True
    made.beat(ago_s=60)
    assert ready(url) == (
        503,
        {"ok": False, "catalog": True, "log": True, "run": False, "delivery": True},
    )
    made.beat(ended_s=made.now_s, why_ended="Spark's JVM has ended")
    assert ready(url)[0] == 503
    made.beat()
    assert ready(url)[0] == 200


def test_delivery_that_stands_still_while_there_is_a_run(
    operated: tuple[OperatedFolder, str],
) -> None:
    made, url = operated
    made.pass_back(600)
    made.world.publish(news("a"))
    made.deliver(cursor=0)
    assert ready(url)[0] == 200, "nobody is expected to deliver"
    made.beat()
    assert ready(url) == (
        503,
        {"ok": False, "catalog": True, "log": True, "run": True, "delivery": False},
    )
    made.deliver(cursor=1)
    assert ready(url)[0] == 200


# --- metrics --------------------------------------------------------------------------------------


def test_requests_are_counted_by_template_and_never_by_path(home: Home) -> None:
    with home.client("acme") as acme:
        assert apply(acme, SCRIPT).status_code == 200
        acme.get("/v1/feeds/Rock")
        acme.get("/v1/feeds/Nobody_knows_this")
        acme.post("/v1/sources/News/items", json=[{"title": "a", "n": 1}, {"n": "?"}])
        acme.get("/confirm/secret-of-a-mail")
        acme.get("/nowhere/at/all")
        acme.request("PROPFIND", "/v1/feeds")
    text = scraped(home.url).text
    found = samples(text)
    count = "headgate_http_request_seconds_count"
    assert found[count, "GET", "/v1/{listed}/{name}", "2xx"] == 1
    assert found[count, "GET", "/v1/{listed}/{name}", "4xx"] == 1
    assert found[count, "POST", "/v1/sources/{name}/items", "2xx"] == 1
    assert found[count, "GET", "other", "4xx"] == 1
    assert found[count, "other", "/v1/{listed}", "4xx"] == 1, "a strange method"
    assert found["headgate_posts_accepted_total",] == 1
    assert found["headgate_posts_rejected_total",] == 1
    assert found["headgate_http_received_bytes_total",] > 100
    assert found["headgate_http_sent_bytes_total",] > 100
    assert found["headgate_stored_bytes", "spool"] > 0
    assert found["headgate_live_clients",] == 0
    for name in ("Rock", "News", "Nobody", "acme", "secret", "nowhere", "PROPFIND"):
        assert name not in text


def test_the_state_of_the_run_and_no_name(operated: tuple[OperatedFolder, str]) -> None:
    made, url = operated
    made.fetch("News", "HTTP 404")
    made.catalog.suspend("Rock", "noisy")
    assert samples(scraped(url).text)["headgate_run_state", "never"] == 1
    made.beat(queries={"News": False})
    text = scraped(url).text
    found = samples(text)
    assert found["headgate_run_state", "running"] == 1
    assert found["headgate_run_state", "lost"] == 0
    assert found["headgate_inactive_queries",] == 1
    assert found["headgate_broken_feeds",] == 1
    assert found["headgate_suspended_feeds",] == 1
    assert "News" not in text
    assert "Rock" not in text


def test_who_may_scrape(home: Home) -> None:
    assert scraped(home.url).headers["content-type"].startswith("text/plain")
    passed_on = {"x-forwarded-for": "203.0.113.7"}
    assert scraped(home.url, **passed_on).status_code == 401
    with serving(home.headgate, hosts=["news.example"]) as url:
        assert scraped(url, host="news.example").status_code == 401
    for tenant, scope, expected in (
        ("acme", Scope.ADMIN, 403),
        ("local", Scope.READ, 403),
        ("local", Scope.ADMIN, 200),
    ):
        token = home.token(tenant, scope)
        answer = scraped(home.url, authorization=f"Bearer {token}", **passed_on)
        assert answer.status_code == expected
        assert ("headgate_build_info" in answer.text) == (expected == 200)
    assert "/metrics" not in httpx.get(f"{home.url}/v1/openapi.json").json()["paths"]
