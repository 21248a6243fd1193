"""Suspended feeds and quotas, in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.limits import Resource
from headgate.language.parse import parse_script
from headgate.model.errors import CatalogError, InvalidValue, QuotaExceeded, UnknownName

SCRIPT = """
register stream S from post (a int, b text);
create feed A from S where a > 1;
create feed B from A where a > 2;
"""
DEAR = "create feed Dear from S where b matches '[a-h][^u-z]{90}z';"


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog.open(catalog_url) as opened:
        opened.apply(parse_script(SCRIPT))
        yield opened


def test_a_suspended_feed_stays_registered_until_it_is_resumed(catalog: Catalog) -> None:
    before = catalog.version()
    assert catalog.suspend("A", "too dear")
    assert not catalog.suspend("A", "again")
    assert catalog.version() == before + 1
    assert {name: each.reason for name, each in catalog.suspended().items()} == {"A": "too dear"}
    assert "A" in catalog.definitions()
    with catalog.looking_up() as definitions:
        assert definitions.suspended() == {definitions.number_of("A")}
    assert catalog.resume("A")
    assert not catalog.resume("A")
    assert catalog.version() == before + 2
    assert catalog.suspended() == {}


def test_only_feeds_can_be_suspended(catalog: Catalog) -> None:
    with pytest.raises(UnknownName, match="no feed named 'X'"):
        catalog.suspend("X", "")
    with pytest.raises(CatalogError, match="only feeds"):
        catalog.suspend("S", "")
    assert catalog.suspended() == {}


def test_a_dropped_feed_is_not_suspended_when_its_name_comes_back(catalog: Catalog) -> None:
    catalog.suspend("B", "too dear")
    catalog.apply(parse_script("drop feed B; create feed B from A where a > 2;"))
    assert catalog.suspended() == {}


def test_a_quota_refuses_what_is_added_and_nothing_else(catalog: Catalog) -> None:
    catalog.set_quotas({Resource.STATEMENTS: 3, Resource.SUBSCRIPTIONS: 1})
    subscribe = "subscribe to A output console;"
    catalog.apply(parse_script(subscribe))
    with pytest.raises(QuotaExceeded, match="3 statements"):
        catalog.apply(parse_script("create feed C from S where a > 3;"))
    with pytest.raises(QuotaExceeded, match="1 subscriptions"):
        catalog.apply(parse_script(subscribe))
    assert catalog.usage()[Resource.STATEMENTS] == 3
    # What was there before the quota stays, and can be replaced.
    catalog.set_quotas({Resource.STATEMENTS: 2})
    catalog.apply(parse_script("drop feed B;"))
    catalog.set_quotas({Resource.STATEMENTS: None})
    catalog.apply(parse_script("create feed C from S where a > 3;"))
    assert catalog.quotas() == {Resource.SUBSCRIPTIONS: 1}


def test_a_dry_run_is_refused_too(catalog: Catalog) -> None:
    catalog.set_quotas({Resource.STATEMENTS: 3})
    with pytest.raises(QuotaExceeded):
        catalog.apply(parse_script("create feed C from S where a > 3;"), dry_run=True)


def test_the_price_of_feeds_counts(catalog: Catalog) -> None:
    assert catalog.usage()[Resource.CPU_US] < 0.01
    catalog.set_quotas({Resource.CPU_US: 100})
    with pytest.raises(QuotaExceeded, match="100 cpu-us"):
        catalog.apply(parse_script(DEAR))
    catalog.set_quotas({Resource.CPU_US: 10_000})
    catalog.apply(parse_script(DEAR))
    assert catalog.usage()[Resource.CPU_US] > 100


def test_a_quota_is_not_negative(catalog: Catalog) -> None:
    with pytest.raises(InvalidValue, match="at least 0"):
        catalog.set_quotas({Resource.STATEMENTS: -1})
