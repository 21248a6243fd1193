"""`tenant`, `token`, `link`, `grant` and `audit`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.headgate_command import Run

from headgate.catalog.catalog import Catalog
from headgate.catalog.principals import Scope


@pytest.fixture
def script() -> str:
    text = (
        "register stream News from post (t text); create feed Rock from News where t contains 'r';"
    )
    Path("script.feeds").write_text(text)
    return "script.feeds"


def test_tenants_are_added_listed_and_removed(headgate: Run, script: str) -> None:
    headgate("apply", script)
    assert headgate("tenant", "add", "acme")[1] == "added tenant acme\n"
    assert headgate("tenant", "add", "globex", "--machine")[0] == 0
    listed = headgate("tenant", "list")[1].splitlines()
    assert [line.split()[0] for line in listed[1:]] == ["acme", "globex", "local"]
    (local,) = [
        each for each in json.loads(headgate("tenant", "list", "--json")[1]) if each["machine"]
    ][1:]
    assert local["usage"]["statements"] == 2
    code, _, err = headgate("tenant", "add", "Acme")
    assert (code, "small letters" in err) == (3, True)
    assert headgate("tenant", "remove", "acme")[1] == "removed tenant acme\n"
    assert headgate("tenant", "remove", "acme")[0] == 3


def test_a_token_is_shown_once_and_revoked(headgate: Run) -> None:
    headgate("tenant", "add", "acme")
    issued = headgate(
        "token",
        "issue",
        "--tenant",
        "acme",
        "--scope",
        "read",
        "--scope",
        "post",
        "--comment",
        "till",
    )[1]
    token = issued.splitlines()[0]
    with Catalog.open("headgate.db") as catalog:
        principal = catalog.principal_of_token(token)
        assert principal is not None
        assert (principal.tenant, principal.scopes) == ("acme", {Scope.READ, Scope.POST})
        listed = headgate("token", "list", "--tenant", "acme")[1]
        assert "till" in listed
        assert token not in listed
        (entry,) = json.loads(headgate("token", "list", "--tenant", "acme", "--json")[1])
        assert headgate("token", "revoke", entry["id"])[0] == 3  # of the local tenant
        assert headgate("token", "revoke", entry["id"], "--tenant", "acme")[0] == 0
        assert catalog.principal_of_token(token) is None
    assert headgate("token", "issue", "--tenant", "nobody")[0] == 3


def test_a_link_is_shown_once_and_revoked(headgate: Run, script: str) -> None:
    headgate("apply", script)
    made = ("link", "create", "Rock", "--public-url", "https://news.example/", "--comment", "phone")
    lines = headgate(*made)[1].splitlines()
    assert [line.rpartition(".")[2] for line in lines[:4]] == ["atom", "rss", "json", "html"]
    assert lines[0].startswith("https://news.example/f/hl_")
    token = lines[0].removeprefix("https://news.example/f/").removesuffix(".atom")
    with Catalog.open("headgate.db") as catalog:
        found = catalog.linked_feed(token)
        assert found is not None
        assert (found.tenant, found.name) == ("local", "Rock")
        listed = headgate("link", "list")[1]
        assert "phone" in listed
        assert token not in listed
        (entry,) = json.loads(headgate("link", "list", "--json")[1])
        assert (entry["feed"], entry["comment"]) == ("Rock", "phone")
        other = json.loads(headgate("link", "create", "News", "--json")[1])
        assert other["urls"]["rss"].startswith("/f/hl_")
        assert "2 in all" in headgate("link", "list", "--limit", "1")[1]
        first, second = sorted([entry["id"], other["id"]])
        assert second in headgate("link", "list", "--after", first)[1]
        assert headgate("link", "revoke", entry["id"], "--tenant", "acme")[0] == 3
        assert headgate("link", "revoke", entry["id"])[1] == f"revoked link {entry['id']}\n"
        assert catalog.linked_feed(token) is None
    assert headgate("link", "create", "Nothing")[0] == 3
    assert headgate("link", "create", "Rock", "--public-url", "news")[0] == 2


def test_grants_and_the_audit(headgate: Run, script: str) -> None:
    headgate("apply", script)
    headgate("tenant", "add", "acme")
    out = headgate("grant", "Rock", "--to", "acme", "--right", "use")[1]
    assert out == "tenant acme may use Rock\n"
    assert headgate("grant", "Rock", "--to", "*")[1] == "every tenant may read Rock\n"
    assert headgate("grant", "Rock", "--to", "*", "--right", "none")[0] == 0
    assert headgate("grant", "Rock", "--to", "acme", "--right", "own")[0] == 2
    assert headgate("grant", "Nothing", "--to", "acme")[0] == 3
    lines = headgate("audit")[1].splitlines()
    assert "took back the grant of" in lines[1]
    assert "registered source" in lines[-1]
    assert [each["action"] for each in json.loads(headgate("audit", "--json")[1])][
        -1
    ] == "registered source"
    assert len(headgate("audit", "--tenant", "acme")[1].splitlines()) == 1
