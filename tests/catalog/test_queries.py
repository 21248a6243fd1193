"""Pages at one version, and lookups of many keys."""

from datetime import UTC, datetime, timedelta

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import SOURCE_KINDS, DefinitionKind, load_all
from headgate.language.parse import parse_script
from headgate.model.errors import CatalogError

NAMES = ["B", "_a", "Żółw", "a", "a1", "a10", "a2", "b", "é"]


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    script = "".join(f"register feed https://a.b/{n} as `{name}`;" for n, name in enumerate(NAMES))
    script += "create feed F from a; create feed G from b;"
    script += "subscribe to F output console; subscribe to G output console;" * 5
    script += "register stream T from json 'x' (price int);"
    script += "".join(f"advertise T where price > {n};" for n in range(5))
    catalog.apply(parse_script(script))
    return catalog


def test_definitions_by_name_and_code_point(filled: Catalog):
    found, after = [], None
    while page := filled.list_definitions(after=after, limit=4):
        found += [each.name for each in page]
        after = found[-1]
    assert found == sorted([*NAMES, "F", "G", "T"]) == list(filled.definitions())


def test_definitions_by_kind(filled: Catalog):
    assert [each.name for each in filled.list_definitions([DefinitionKind.FEED])] == ["F", "G"]
    assert filled.count_definitions([DefinitionKind.FEED]) == 2
    assert filled.count_definitions(SOURCE_KINDS) == len(NAMES) + 1
    assert filled.count_definitions() == len(NAMES) + 3
    assert filled.list_definitions([]) == []


def test_subscriptions_by_id(filled: Catalog):
    assert [each.id for each in filled.list_subscriptions(limit=3)] == [1, 2, 3]
    assert [each.id for each in filled.list_subscriptions(after_id=8)] == [9, 10]
    assert [each.id for each in filled.list_subscriptions("G", after_id=4, limit=2)] == [6, 8]
    assert (filled.count_subscriptions(), filled.count_subscriptions("F")) == (10, 5)
    assert filled.list_subscriptions("nothing") == []


def test_advertisements(filled: Catalog):
    found = filled.list_advertisements("T", limit=3)
    assert [each.definition for each in found] == [
        f"advertise T where price > {n};" for n in range(3)
    ]
    rest = filled.list_advertisements(after_id=found[-1].id)
    assert len(rest) == 2
    assert filled.list_advertisements("a") == []


def test_a_page_has_a_size(filled: Catalog):
    for limit in (0, -1, 1_000_000):
        with pytest.raises(CatalogError, match="a page has 1 to 10,000 entries"):
            filled.list_subscriptions(limit=limit)


def test_snapshots(catalog: Catalog):
    with pytest.raises(CatalogError, match="has not reached version 1 yet"):
        catalog.record_snapshot("ff", "snapshots/ff", catalog_version=1)
    catalog.apply(parse_script("register feed https://a.b/c as A;"))
    for hash_, version in (("aa", 0), ("bb", 1), ("bb", 1)):
        catalog.record_snapshot(hash_, f"snapshots/{hash_}", catalog_version=version)
    newest, oldest = catalog.list_snapshots()
    assert (newest.hash, newest.catalog_version, newest.path) == ("bb", 1, "snapshots/bb")
    assert catalog.list_snapshots(before_version=1) == [oldest]
    assert catalog.version() == 1


def test_definitions_are_of_one_version_and_stay_so(filled: Catalog):
    definitions = filled.definitions()
    filled.apply(parse_script("create feed H from F;"))
    assert definitions.version == 1
    assert "H" not in definitions
    assert definitions.get("H") is None
    assert len(definitions) == len(NAMES) + 3
    assert filled.definitions().version == 2
    with pytest.raises(KeyError):
        definitions["H"]


def test_a_reader_sees_one_version_while_others_write(filled: Catalog):
    with filled._database.reading() as connection:
        before = load_all(connection, version=1)
        filled.apply(parse_script("create feed H from F; drop feed H; create feed I from F;"))
        assert list(load_all(connection, version=1)) == list(before)
    assert "I" in filled.definitions()


# --- lookups of many keys -----------------------------------------------------------------------

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_active_subscribers_by_feed_and_by_id(catalog_url: str) -> None:
    now = NOON
    with Catalog.open(catalog_url, clock=lambda: now) as catalog:
        catalog.apply(
            parse_script(
                "register feed http://a.example/ as A; register feed http://b.example/ as B;"
                "create feed X from A; create feed Y from (X | B); create feed Z from B;"
                "subscribe to X output console; subscribe to Y output console for 2 days;"
                "subscribe to Y output file 'y.rss'; subscribe to B output console;"
            )
        )
        assert catalog.subscribers(["X", "Y", "Z", "none"]) == {
            "X": [(1, 1)],
            "Y": [(2, 1), (3, 1)],
        }
        assert catalog.demand() == {"X": 3, "Y": 2, "A": 3, "B": 3}
        assert sorted(catalog.subscribed()) == ["B", "X", "Y"]
        found = catalog.subscriptions_of_ids([1, 3, 99])
        assert [(id_, each.feed, each.target) for id_, each in found.items()] == [
            (1, "X", ""),
            (3, "Y", "y.rss"),
        ]
        now = NOON + timedelta(days=1, seconds=1)
        assert catalog.subscribers(["X", "Y", "B"]) == {"Y": [(2, 1)]}
        assert list(catalog.subscriptions_of_ids([1, 2, 3])) == [2]
        assert catalog.demand() == {"X": 1, "Y": 1, "A": 1, "B": 1}
        assert catalog.subscribed() == ["Y"]
