"""Links: made for what a tenant sees, proved by a hash, gone with what they are for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalog.test_tenants import acting, execute

from headgate.catalog import feed_links
from headgate.catalog.catalog import Catalog
from headgate.catalog.feed_links import CreatedLink
from headgate.catalog.principals import Scope
from headgate.catalog.tenants import Right
from headgate.model.errors import InvalidValue, NotAllowed, QuotaExceeded, UnknownName

SCRIPT = "register stream S from post (n int); create feed F from S where n > 3;"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 17, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def catalog(clock: Clock) -> Iterator[Catalog]:
    with Catalog.open("sqlite://", clock=clock) as opened:
        for tenant in ("acme", "globex"):
            opened.add_tenant(tenant)
        execute(acting(opened, "acme"), SCRIPT)
        yield opened


def named(catalog: Catalog, created: CreatedLink) -> str | None:
    """What the tenant calls what a link is for."""
    found = catalog.linked_feed(created.token)
    return None if found is None else found.name


def test_a_link_is_for_one_feed_of_a_tenant(catalog: Catalog) -> None:
    acme = acting(catalog, "acme")
    feed, source = acme.create_link("F", comment="phone"), acme.create_link("acme.S")
    assert (named(catalog, feed), named(catalog, source)) == ("F", "S")
    assert feed.token not in repr(feed)
    assert {each.feed: each.comment for each in acme.list_links()} == {"F": "phone", "S": ""}
    assert acting(catalog, "globex").list_links() == []
    assert catalog.principal_of_token(feed.token) is None  # it opens nothing else
    assert catalog.linked_feed(acme.issue_token([Scope.READ]).text) is None
    with pytest.raises(UnknownName):
        acting(catalog, "globex").revoke_link(feed.link.id)
    acme.revoke_link(feed.link.id)
    assert (named(catalog, feed), named(catalog, source)) == (None, "S")
    audit = [(each.action, each.subject, each.detail) for each in acme.list_audit(limit=5)]
    assert ("created link", feed.link.id, "F") in audit
    assert ("revoked link", feed.link.id, "") in audit
    assert feed.token not in repr(acme.list_audit())


def test_links_go_with_their_definition_and_their_tenant(catalog: Catalog) -> None:
    acme, globex = acting(catalog, "acme"), acting(catalog, "globex")
    acme.grant("F", "globex", Right.READ)
    own, others = acme.create_link("F"), globex.create_link("acme.F")
    assert named(catalog, others) == "acme.F"
    execute(acme, "drop feed F; create feed F from S where n > 3;")
    assert (named(catalog, own), named(catalog, others)) == (None, None)
    assert acme.list_links() == globex.list_links() == []
    acme.grant("F", "globex", Right.READ)
    globex.create_link("acme.F")
    catalog.remove_tenant("globex")
    assert acme.count_links() == 0


def test_a_link_is_valid_while_its_tenant_sees_the_feed(catalog: Catalog) -> None:
    acme, globex = acting(catalog, "acme"), acting(catalog, "globex")
    acme.grant("F", "*", Right.READ)
    link = globex.create_link("acme.F")
    acme.grant("F", "*", None)
    assert catalog.linked_feed(link.token) is None
    acme.grant("F", "globex", Right.USE)
    assert named(catalog, link) == "acme.F"


def test_what_is_not_seen_is_as_if_it_did_not_exist(catalog: Catalog) -> None:
    def error_of(name: str) -> str:
        with pytest.raises(UnknownName) as caught:
            acting(catalog, "globex").create_link(name)
        return str(caught.value)

    assert error_of("acme.F") == error_of("acne.F").replace("acne", "acme")
    # Who has the database makes links of the local tenant, which does not see it either.
    with pytest.raises(UnknownName):
        catalog.create_link("acme.F")
    execute(catalog, "register operator near(x text) from 'm:f';")
    with pytest.raises(UnknownName, match="is an operator"):
        catalog.create_link("near")


def test_scopes_comments_and_limits(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotAllowed):
        acting(catalog, "acme", Scope.READ).create_link("F")
    acme = acting(catalog, "acme", Scope.SUBSCRIBE)
    with pytest.raises(InvalidValue):
        acme.create_link("F", comment="x" * 201)
    with pytest.raises(InvalidValue):
        acme.create_link("F", comment="\x1b[2J")
    with pytest.raises(NotAllowed):
        acme.list_links()
    monkeypatch.setattr(feed_links, "LINKS_MAX", 2)
    for _ in range(2):
        acme.create_link("F")
    with pytest.raises(QuotaExceeded):
        acme.create_link("F")


def test_links_are_listed_in_pages(catalog: Catalog) -> None:
    acme = acting(catalog, "acme")
    made = sorted(acme.create_link("F").link.id for _ in range(5))
    seen: list[str] = []
    while page := acme.list_links(after=seen[-1] if seen else "", limit=2):
        seen += [each.id for each in page]
    assert seen == made
    assert acme.count_links() == 5


def test_the_last_use_is_noted_at_most_once_a_minute(catalog: Catalog, clock: Clock) -> None:
    acme = acting(catalog, "acme")
    link = acme.create_link("F")
    noted = []
    for _ in range(7):
        found = catalog.linked_feed(link.token)
        assert found is not None
        if found.is_use_due:
            catalog.note_link_uses([found.link_id])
        noted.append(acme.list_links()[0].last_used_at)
        clock.now += timedelta(seconds=20)
    began = noted[0]
    assert began is not None
    assert [each - began for each in noted if each] == [
        timedelta(minutes=m) for m in (0, 0, 0, 1, 1, 1, 2)
    ]


@settings(max_examples=30)
@given(st.data())
def test_no_other_text_is_a_link(data: st.DataObject) -> None:
    with Catalog.open("sqlite://") as catalog:
        execute(catalog, SCRIPT)
        token = catalog.create_link("F").token
        at = data.draw(st.integers(0, len(token) - 1))
        changed = token[:at] + data.draw(st.characters()) + token[at + 1 :]
        for wrong in (changed, token[:at], token + data.draw(st.characters()), token.upper()):
            assert (catalog.linked_feed(wrong) is None) == (wrong != token)
