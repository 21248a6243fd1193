"""Signing in as a browser does, and as pages of other sites would like to."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from tests.service.test_api import PATIENCE_S, Home

from headgate.catalog.principals import Scope
from headgate.service import rate_limits
from headgate.service.sign_in import COOKIE

PASSWORD = "correct horse battery"
HERE = {"sec-fetch-site": "same-origin"}


@pytest.fixture
def browser(home: Home) -> Iterator[httpx.Client]:
    home.catalog.accounts.add("ada", PASSWORD)
    home.catalog.accounts.join("ada", "acme", [Scope.READ])
    with httpx.Client(base_url=home.url, timeout=PATIENCE_S, headers=HERE) as client:
        yield client


def cookie_of(answer: httpx.Response) -> dict[str, str]:
    """The header with the cookie that an answer sets; httpx sends no secure ones by http."""
    attributes = answer.headers["set-cookie"]
    for each in ("HttpOnly", "Secure", "Path=/", "SameSite=lax"):
        assert each in attributes
    assert "Domain" not in attributes
    (value,) = re.findall(rf"^{COOKIE}=([^;]+);", attributes)
    return {"cookie": f"{COOKIE}={value}"}


def sign_in(browser: httpx.Client, account: str, password: str) -> httpx.Response:
    return browser.post("/sign-in", data={"account": account, "password": password})


def test_a_password_opens_a_session_and_the_session_the_api(
    home: Home, browser: httpx.Client
) -> None:
    assert browser.get("/").headers["location"] == "/sign-in"
    page = browser.get("/sign-in")
    assert 'type="password"' in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    answer = sign_in(browser, "ada", PASSWORD)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = cookie_of(answer)
    who = browser.get("/session", headers=cookie).json()
    assert who == {"account": "ada", "tenants": {"acme": ["read"]}}
    issued = browser.post("/session/token", json={"tenant": "acme"}, headers=cookie).json()
    bearer = {"authorization": f"Bearer {issued['token']}"}
    me = httpx.get(f"{home.url}/v1/me", headers=bearer).json()
    assert me == {"tenant": "acme", "actor": "account ada", "scopes": ["read"]}
    other = browser.post("/session/token", json={"tenant": "globex"}, headers=cookie)
    assert other.status_code == 401
    assert httpx.get(f"{home.url}/v1/me", headers=cookie).status_code == 401, "never by cookie"
    assert browser.post("/sign-out", headers=cookie).status_code == 303
    assert browser.get("/", headers=cookie).headers["location"] == "/sign-in"
    assert (
        browser.post("/session/token", json={"tenant": "acme"}, headers=cookie).status_code == 401
    )


def test_signing_in_leads_to_the_page_that_was_asked_for(browser: httpx.Client) -> None:
    asked = browser.get("/feeds/Big%20news?at=1").headers["location"]
    assert asked == "/sign-in?next=/feeds/Big%2520news%3Fat%3D1"
    form = {"account": "ada", "password": PASSWORD}
    assert browser.post(asked, data=form).headers["location"] == "/feeds/Big%20news?at=1"
    for elsewhere in ("https://evil.example", "//evil.example/feeds", "/\\evil.example", "/v1/me"):
        answer = browser.post("/sign-in", params={"next": elsewhere}, data=form)
        assert answer.headers["location"] == "/"


def test_what_is_wrong_with_a_password_is_not_said(browser: httpx.Client) -> None:
    answers = [
        sign_in(browser, "ada", "wrong password"),
        sign_in(browser, "nobody", PASSWORD),
        sign_in(browser, "", ""),
        sign_in(browser, "ada" * 1_000, "x" * 10_000),
    ]
    assert {each.status_code for each in answers} == {403}
    assert len({each.text for each in answers}) == 1
    assert all("set-cookie" not in each.headers for each in answers)
    assert browser.post("/sign-in", content="&".join(["a=b"] * 20)).status_code == 400


def test_guessing_a_password_is_slowed_down(
    browser: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "GUESSES_AT_ONCE", 3.0)
    monkeypatch.setattr(rate_limits, "GUESSES_PER_S", 0.001)
    assert [sign_in(browser, "ada", f"guess number {n}").status_code for n in range(5)] == [
        403,
        403,
        403,
        429,
        429,
    ]
    assert sign_in(browser, "ada", PASSWORD).status_code == 429


def test_a_link_signs_in_once(home: Home, browser: httpx.Client) -> None:
    path = f"/enter/{home.catalog.accounts.make_link('ada')}"
    for _ in range(2):
        assert "signs you in once" in browser.get(path).text, "looking at it changes nothing"
    assert browser.get("/session", headers=cookie_of(browser.post(path))).json()["account"] == "ada"
    for method in ("GET", "POST"):
        assert browser.request(method, path).status_code == 404
        assert browser.request(method, "/enter/xyz").status_code == 404


def test_pages_of_other_sites_can_do_nothing(home: Home, browser: httpx.Client) -> None:
    cookie = cookie_of(sign_in(browser, "ada", PASSWORD))
    link = f"/enter/{home.catalog.accounts.make_link('ada')}"
    host = home.url.removeprefix("http://")
    bodies = {"/sign-in": b"account=ada", "/sign-out": b"", link: b"", "/session/token": b"{}"}
    strangers: list[dict[str, str]] = [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": home.url},
        {"origin": "https://evil.example"},
        {"origin": f"http://{host}.evil.example"},
        {"origin": "null"},
        {},
    ]
    with httpx.Client(base_url=home.url, timeout=PATIENCE_S) as client:
        for path, body in bodies.items():
            for stranger in strangers:
                headers = {**cookie, **stranger}
                assert client.post(path, content=body, headers=headers).status_code == 403
        assert client.get("/session", headers=cookie).json()["account"] == "ada"
        allowed = client.post("/sign-out", headers={**cookie, "origin": home.url})
        assert allowed.status_code == 303
