"""Followed feeds, marks, stars and reader passwords, with SQLite and PostgreSQL."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from headgate.catalog import reader_tables
from headgate.catalog.catalog import Catalog
from headgate.catalog.principals import Principal, Scope
from headgate.catalog.reading import StarredItem
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.catalog.tenants import Right
from headgate.language.parse import parse_script
from headgate.model.errors import NotAllowed, UnknownName

pytestmark = pytest.mark.integration
SCRIPT = "register stream S from post (n int); create feed A from S where n > 1;"


def reader(catalog: Catalog, account: str, tenant: str) -> TenantCatalog:
    if tenant not in [each.name for each in catalog.list_tenants()]:
        catalog.add_tenant(tenant)
        owner = Principal(tenant, "the test", frozenset(Scope))
        catalog.acting_as(owner).apply(parse_script(SCRIPT))
    if account not in [each.name for each in catalog.accounts.list()]:
        catalog.accounts.add(account)
    catalog.accounts.join(account, tenant, Scope)
    return catalog.acting_as(Principal(tenant, f"account {account}", frozenset(Scope)))


def star(position: int, kept: str = "acme.A") -> StarredItem:
    return StarredItem(position, (1, 2), kept, 1_000 + position, bytes([position, 0, 255]))


def test_marks_and_watermarks(catalog: Catalog) -> None:
    ada = reader(catalog, "ada", "acme")
    bob = reader(catalog, "bob", "acme")
    feeds = {each.name: each for each in ada.followed_feeds()}
    assert {name: each.read_below for name, each in feeds.items()} == {"A": 0, "S": 0}
    for _ in range(2):
        ada.mark_items([3, 1, 3, 2**39], is_read=True)
        ada.mark_items([1], is_read=False)
    assert ada.reading_marks() == {1: False, 3: True, 2**39: True}
    assert bob.reading_marks() == {}
    ada.mark_items(range(1_200), is_read=True)
    assert len(ada.reading_marks()) == 1_201
    id_ = feeds["A"].feed_id
    ada.move_watermarks({id_: 500}, implied=range(0, 500), first_position=600)
    ada.move_watermarks({id_: 400}, implied=[], first_position=0)
    after = {each.name: each.read_below for each in ada.followed_feeds()}
    assert after == {"A": 500, "S": 0}, "a watermark never goes back"
    assert set(ada.reading_marks()) == {*range(600, 1_200), 2**39}
    ada.mark_items([700], is_read=False)
    ada.move_watermarks({}, implied=range(600, 1_200), first_position=0, keeps_unread=True)
    assert ada.reading_marks() == {700: False, 2**39: True}, "it was kept unread meanwhile"


def test_stars_keep_their_bytes(catalog: Catalog) -> None:
    ada = reader(catalog, "ada", "acme")
    globex = reader(catalog, "bob", "globex")
    for _ in range(2):
        ada.star_items([star(7), star(9), star(7)])
    assert ada.starred_items([7, 8]) == {7: star(7)}
    assert {p: (s.feed_ids, s.content) for p, s in ada.list_stars().items()} == {
        7: ((1, 2), b""),
        9: ((1, 2), b""),
    }
    assert globex.list_stars() == {}
    globex.star_items([star(7)])
    assert globex.list_stars() == {}, "it was not granted"
    owner = catalog.acting_as(Principal("acme", "the test", frozenset(Scope)))
    owner.grant("A", "globex", Right.READ)
    assert list(globex.list_stars()) == [7]
    owner.grant("A", "globex", None)
    owner.apply(parse_script("drop feed A;"))
    assert list(ada.list_stars()) == [7, 9], "a star of its own outlives the feed"
    assert globex.list_stars() == {}
    ada.unstar_items([7, 100])
    ada.unstar_items([7])
    assert list(ada.list_stars()) == [9]


def test_a_reader_is_made_once_by_many(catalog: Catalog) -> None:
    ada = reader(catalog, "ada", "acme")
    with ThreadPoolExecutor(6) as pool:
        ids = set(pool.map(lambda _: ada.reader_id(), range(12)))
        feeds = list(pool.map(lambda _: ada.followed_feeds(), range(12)))
        list(pool.map(lambda n: ada.mark_items([n % 3, 5], is_read=n % 2 == 0), range(24)))
    assert len(ids) == 1
    assert all(each == feeds[0] for each in feeds)
    assert set(ada.reading_marks()) == {0, 1, 2, 5}


def test_labels_are_one_line(catalog: Catalog) -> None:
    ada = reader(catalog, "ada", "acme")
    feed = ada.follow("A", label=" a\0b\n c ", title="\x07Ä")
    assert (feed.label, feed.title) == ("a b c", "Ä")
    assert ada.follow("A").label == "a b c"
    assert ada.follow("A", label="").label == ""
    assert ada.follow("A").title == "Ä"
    for wrong in ("a\0", "acme.X", "globex.A", "\ud83d\ude00"):
        with pytest.raises(UnknownName):
            ada.follow(wrong)
    ada.follow_all(["A", "S", "X", "globex.A", "\0"])
    assert [each.name for each in ada.followed_feeds()] == ["A", "S"]


def test_rows_go_with_their_account_and_tenant(catalog: Catalog) -> None:
    ada, bob = reader(catalog, "ada", "acme"), reader(catalog, "bob", "globex")
    for each in (ada, bob):
        each.follow("A")
        each.mark_items([1], is_read=True)
        each.star_items([star(1, f"{each.principal.tenant}.A")])
    catalog.reader_passwords.create("bob", "globex", actor="the test")
    catalog.accounts.remove("ada")
    owner = catalog.acting_as(Principal("globex", "the test", frozenset(Scope)))
    owner.apply(parse_script("drop feed A; drop stream S;"))
    catalog.remove_tenant("globex")
    with catalog._database.reading() as connection:
        for table in (
            reader_tables.readers,
            reader_tables.followed_feeds,
            reader_tables.reading_marks,
            reader_tables.starred_items,
            reader_tables.reader_passwords,
        ):
            assert connection.scalar(select(func.count()).select_from(table)) == 0, table.name
    with pytest.raises(NotAllowed):
        ada.mark_items([1], is_read=True)


# --- passwords ------------------------------------------------------------------------------------


def test_a_password_proves_an_account_in_a_tenant(catalog: Catalog) -> None:
    reader(catalog, "ada", "acme")
    reader(catalog, "ada", "globex")
    passwords = catalog.reader_passwords
    made = {t: passwords.create("ada", t, actor="the test").password for t in ("acme", "globex")}
    for tenant, password in made.items():
        assert password not in repr(passwords.get("ada", tenant))
        for login in ("ada", f"ada/{tenant}"):
            token = passwords.sign_in(login, password)
            assert token is not None
            principal = passwords.principal_of(token)
            assert principal == Principal(tenant, "account ada", frozenset(Scope))
            key = hashlib.md5(f"{login}:{password}".encode()).hexdigest()
            assert passwords.principal_of_fever(key) == principal
    other = {"acme": "globex", "globex": "acme"}
    for tenant, password in made.items():
        assert passwords.sign_in(f"ada/{other[tenant]}", password) is None
    for login in ("", "ada/", "Ada", "ada\0", "x" * 10_000, "\ud800"):
        found = passwords.sign_in(login, made["acme"])
        assert (found is not None) == (login == "ada/"), login
    for token in ("", "hgr_", f"hgr_{'a' * 12}_{'0' * 64}", "x" * 10_000, "\0"):
        assert passwords.principal_of(token) is None
        assert passwords.principal_of_fever(token) is None


def test_a_password_ends(catalog: Catalog) -> None:
    reader(catalog, "ada", "acme")
    passwords = catalog.reader_passwords
    first = passwords.create("ada", "acme", actor="the test").password
    token = passwords.sign_in("ada", first)
    assert token is not None
    second = passwords.create("ada", "acme", actor="the test").password
    assert passwords.principal_of(token) is None
    assert passwords.sign_in("ada", first) is None
    token = passwords.sign_in("ada", second)
    assert token is not None
    catalog.accounts.join("ada", "acme", [Scope.READ])
    principal = passwords.principal_of(token)
    assert principal is not None
    assert principal.scopes == {Scope.READ}
    catalog.accounts.join("ada", "acme", [])
    assert passwords.principal_of(token) is None, "it is no member any more"
    with pytest.raises(UnknownName, match="no member"):
        passwords.create("ada", "acme", actor="the test")
    passwords.revoke("ada", "acme", actor="the test")
    with pytest.raises(UnknownName, match="no reader password"):
        passwords.revoke("ada", "acme", actor="the test")
    owner = catalog.acting_as(Principal("acme", "the test", frozenset(Scope)))
    actions = [each.action for each in owner.list_audit()]
    assert actions.count("made a reader password") == 2
    assert actions.count("revoked the reader password") == 1
