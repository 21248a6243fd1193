"""Signing in by an OpenID provider that really signs, and attacks on each step of the way."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey
from tests.service.openid_provider import CLIENT, SECRET, Provider, openid_provider
from tests.service.test_api import PATIENCE_S, Home, serving
from tests.service.test_sign_in import cookie_of

from headgate.catalog.principals import Scope
from headgate.model.errors import HeadgateError, InvalidValue
from headgate.service import oidc_provider, oidc_states
from headgate.service.app import make_app
from headgate.service.oidc import COOKIE
from headgate.service.oidc_provider import OidcSettings, settings_of

PUBLIC = "https://news.example"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with openid_provider() as found:
        yield found


@pytest.fixture
def home(tmp_path: Path, provider: Provider) -> Iterator[Home]:
    home = Home(tmp_path)
    home.catalog.accounts.add("ada@a.example")
    home.catalog.accounts.join("ada@a.example", "acme", [Scope.READ])
    settings = OidcSettings(provider.issuer, CLIENT, SECRET, ("new.example",))
    with serving(home.headgate, PUBLIC, openid=settings) as home.url:
        yield home
    home.catalog.close()


class Browser:
    """It keeps the cookies that it is given, as by TLS."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cookies: dict[str, str] = {}

    def get(self, path: str) -> httpx.Response:
        sent = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = httpx.get(self.url + path, headers={"cookie": sent}, timeout=PATIENCE_S)
        for each in answer.headers.get_list("set-cookie"):
            name, _, value = each.partition(";")[0].partition("=")
            assert {"HttpOnly", "Secure", "Path=/"} <= set(re.split("; ?", each))
            if value.strip('"'):
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        return answer

    def begin(self) -> str:
        """Where the service sends the browser."""
        answer = self.get("/sign-in/oidc")
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def come_back(self, url: str) -> httpx.Response:
        assert url.startswith(f"{PUBLIC}/sign-in/oidc/callback?")
        return self.get(url.removeprefix(PUBLIC))

    def sign_in(self, provider: Provider) -> httpx.Response:
        return self.come_back(provider.authorize(self.begin()))

    @property
    def is_signed_in(self) -> bool:
        return self.get("/session").is_success


@pytest.fixture
def browser(home: Home) -> Browser:
    return Browser(home.url)


def refused(browser: Browser, answer: httpx.Response) -> bool:
    assert answer.status_code == 403, answer.text
    assert "You are not signed in" in answer.text
    assert COOKIE not in browser.cookies
    return not browser.is_signed_in


# --- the way --------------------------------------------------------------------------------------


def test_somebody_with_an_account_signs_in(
    home: Home, browser: Browser, provider: Provider
) -> None:
    page = browser.get("/sign-in").text
    assert '<a href="/sign-in/oidc">Sign in by 127.0.0.1</a>' in page
    assert 'type="password"' in page
    where = browser.begin()
    query = parse_qs(urlsplit(where).query)
    assert query["redirect_uri"] == [f"{PUBLIC}/sign-in/oidc/callback"]
    assert len(query["state"][0]) == len(query["nonce"][0]) == 43
    for secret in (*query["state"], *query["nonce"], SECRET):
        assert secret not in browser.cookies[COOKIE], "it is sealed"
    answer = browser.come_back(provider.authorize(where))
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert cookie_of(answer)
    assert COOKIE not in browser.cookies
    who = browser.get("/session").json()
    assert (who["account"], list(who["tenants"])) == ("ada@a.example", ["acme"])
    # From now on the subject counts, whatever the address is.
    provider.claims |= {"email": "other@a.example", "email_verified": False}
    again = Browser(home.url)
    again.sign_in(provider)
    assert again.get("/session").json()["account"] == "ada@a.example"
    audit = [each.action for each in home.catalog.list_audit()]
    assert audit.count("linked identity") == 1
    assert audit.count("signed in") == 2


def test_people_of_an_allowed_domain_get_an_account(
    home: Home, browser: Browser, provider: Provider
) -> None:
    provider.claims |= {"sub": "s-2", "email": "Grace@New.Example"}
    browser.sign_in(provider)
    assert browser.get("/session").json() == {"account": "grace@new.example", "tenants": {}}
    assert [each.name for each in home.catalog.accounts.list()] == [
        "ada@a.example",
        "grace@new.example",
    ]


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "stranger@b.example"},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email_verified": None},
        {"email": None},
        {"email": "x@new.example.evil.example"},
        {"email": "evil.example/x@new.example"},
        {"email": ["ada@a.example"]},
        {"email": "owner"},
        {"email": "ada@a.example\0"},
        {"email": "ada@a.example\n"},
        {"sub": ""},
        {"sub": "x" * 300},
        {"sub": 17},
        {"sub": None},
    ],
)
def test_who_has_no_account_is_not_signed_in(
    home: Home, browser: Browser, provider: Provider, claims: dict[str, Any]
) -> None:
    home.catalog.accounts.owner()
    provider.claims |= claims
    assert refused(browser, browser.sign_in(provider))
    assert len(home.catalog.accounts.list()) == 2


def test_an_address_that_was_given_to_somebody_else_opens_nothing(
    home: Home, browser: Browser, provider: Provider
) -> None:
    browser.sign_in(provider)
    provider.claims |= {"sub": "s-99"}
    second = Browser(home.url)
    assert refused(second, second.sign_in(provider))


def test_keys_may_be_changed_and_of_other_kinds(
    browser: Browser, home: Home, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.sign_in(provider)
    monkeypatch.setattr(oidc_provider, "KEYS_AGAIN_S", 0.0)
    provider.key, provider.algorithm = ECKey.generate_key("P-256", {"kid": "two"}), "ES256"
    provider.published = [provider.key]
    other = Browser(home.url)
    assert other.sign_in(provider).status_code == 303


# --- attacks --------------------------------------------------------------------------------------


def test_a_browser_that_has_not_begun_is_not_signed_in(
    home: Home, browser: Browser, provider: Provider
) -> None:
    """Somebody sends a victim the end of their own sign-in."""
    attacker = Browser(home.url)
    back = provider.authorize(attacker.begin())
    assert refused(browser, browser.come_back(back)), "without a cookie"
    browser.begin()
    assert refused(browser, browser.come_back(back)), "with the cookie of another sign-in"
    assert len(provider.codes) == 1, "the code was not even exchanged"
    assert attacker.come_back(back).status_code == 303


def test_a_state_is_used_once(home: Home, browser: Browser, provider: Provider) -> None:
    where = browser.begin()
    kept = dict(browser.cookies)
    assert browser.come_back(provider.authorize(where)).status_code == 303
    thief = Browser(home.url)
    thief.cookies = kept
    assert refused(thief, thief.come_back(provider.authorize(where)))


def test_a_state_is_valid_for_ten_minutes(
    browser: Browser, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc_states, "VALIDITY_S", -1)
    assert refused(browser, browser.sign_in(provider))


def test_cookies_and_parameters_of_others_are_refused(browser: Browser, provider: Provider) -> None:
    for cookie in ("", "x", "!" * 5_000, base64.urlsafe_b64encode(b"\x01" + b"x" * 80).decode()):
        back = provider.authorize(browser.begin())
        browser.cookies[COOKIE] = cookie
        assert refused(browser, browser.come_back(back))
    for change in (
        lambda url: url.replace("state=", "state=x"),
        lambda url: url.replace("state=", "nostate="),
        lambda url: url + "&state=x",
        lambda url: url + "&iss=https%3A%2F%2Fevil.example",
        lambda url: url.replace("code=", "error=access_denied&x="),
        lambda url: url.replace("code=", "code=x"),
        lambda url: url + "&code=y",
    ):
        assert refused(browser, browser.come_back(change(provider.authorize(browser.begin()))))


def test_no_parameter_leads_elsewhere(browser: Browser, provider: Provider) -> None:
    for more in ("next=https://evil.example", "redirect_uri=https://evil.example", "to=//evil"):
        where = browser.get(f"/sign-in/oidc?{more}").headers["location"]
        assert where.startswith(f"{provider.issuer}/authorize?")
        assert "evil" not in where
        answer = browser.come_back(f"{provider.authorize(where)}&{more}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


def no_signature(claims: dict[str, Any]) -> str:
    def part(found: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(found).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}."


@pytest.mark.parametrize(
    "lie",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another client"},
        {"aud": [CLIENT, "another client"]},
        {"aud": None},
        {"azp": "another client"},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"exp": 1},
        {"exp": None},
        {"exp": "tomorrow"},
        {"iat": 1},
        {"iat": None},
        {"iat": time.time() + 86_400},
        {"nbf": time.time() + 86_400},
    ],
)
def test_a_token_that_says_something_else_is_refused(
    browser: Browser, provider: Provider, lie: dict[str, Any]
) -> None:
    provider.claims |= lie
    assert refused(browser, browser.sign_in(provider))


def test_tokens_that_the_provider_has_not_signed_are_refused(
    browser: Browser, provider: Provider
) -> None:
    stranger = RSAKey.generate_key(2048, {"kid": "one"})
    public = provider.key.as_pem(private=False)
    header = {"alg": "HS256", "kid": "one"}

    def confused(claims: dict[str, Any]) -> str:
        """The public key of the provider as the secret of an HMAC."""
        body = [
            base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=")
            for each in (header, claims)
        ]
        made = hmac.new(public, b".".join(body), hashlib.sha256).digest()
        return b".".join([*body, base64.urlsafe_b64encode(made).rstrip(b"=")]).decode()

    def by_secret(claims: dict[str, Any]) -> str:
        return jwt.encode(header, claims, OctKey.import_key(SECRET), algorithms=["HS256"])

    def brought_along(claims: dict[str, Any]) -> str:
        own = {"alg": "RS256", "jwk": stranger.as_dict(private=False)}
        return jwt.encode(own, claims, stranger, algorithms=["RS256"])

    forged = [
        no_signature,
        lambda claims: no_signature(claims).replace("bm9uZ", "Tm9uZ"),
        confused,
        by_secret,
        brought_along,
        lambda claims: jwt.encode({"alg": "RS256", "kid": "one"}, claims, stranger),
        lambda claims: jwt.encode({"alg": "RS256", "kid": "?"}, claims, stranger),
        lambda claims: provider.signed(claims)[:-8] + "AAAAAAAA",
        lambda claims: ".".join(provider.signed(claims).split(".")[:2]) + ".",
        lambda _: "",
        lambda _: "x.y.z",
        lambda _: "..",
        lambda _: "x" * 2_000_000,
    ]
    for each in forged:
        provider.make_token = each
        assert refused(browser, browser.sign_in(provider))
    provider.make_token = provider.signed
    assert browser.sign_in(provider).status_code == 303


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": None},
        {"token_endpoint": ["https://a.example"]},
        {"filler": "x" * 2_000_000},
    ],
)
def test_the_configuration_of_another_issuer_is_refused(
    browser: Browser, provider: Provider, change: dict[str, Any]
) -> None:
    provider.configuration = change
    assert refused(browser, browser.get("/sign-in/oidc"))


def test_a_provider_that_is_away_shuts_only_its_own_way(home: Home, provider: Provider) -> None:
    provider.configuration = {"issuer": ""}
    browser = Browser(home.url)
    assert refused(browser, browser.get("/sign-in/oidc"))
    assert browser.get("/sign-in").status_code == 200
    assert browser.get("/livez").status_code == 200


# --- settings -------------------------------------------------------------------------------------


def test_settings_are_checked(home: Home) -> None:
    assert settings_of("", "", "", "") is None
    found = settings_of("https://login.example", "id", "secret", "A.example, b.example")
    assert found is not None
    assert found.domains == ("a.example", "b.example")
    assert "secret'" not in repr(found)
    for issuer in ("http://login.example", "login.example", "https://u:p@a.example", "ftp://a"):
        with pytest.raises(InvalidValue, match="is no issuer"):
            settings_of(issuer, "id", "secret", "")
    for client, secret in (("", "x"), ("x", "")):
        with pytest.raises(InvalidValue, match="HEADGATE_OIDC_SECRET"):
            settings_of("https://login.example", client, secret, "")
    with pytest.raises(HeadgateError, match="need an --oidc-issuer"):
        settings_of("", "id", "", "")
    with pytest.raises(InvalidValue, match="--public-url"):
        make_app(home.headgate, openid=found)


def test_without_a_provider_there_is_no_way(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with serving(home.headgate) as home.url:
        browser = Browser(home.url)
        assert "oidc" not in browser.get("/sign-in").text
        for path in ("/sign-in/oidc", "/sign-in/oidc/callback?state=x&code=y"):
            assert browser.get(path).status_code == 404
    home.catalog.close()
