"""Scripts are applied in any order, whole or not at all, and repeatedly."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.catalog.apply import order
from headgate.catalog.catalog import Catalog
from headgate.catalog.dependencies import BRANCHES_MAX, DEPTH_MAX
from headgate.language.parse import parse, parse_script
from headgate.language.statements import CreateFeed, Drop, NameKind, Statement, StreamRef
from headgate.language.unparse import unparse
from headgate.model.errors import (
    CatalogError,
    FeedCycle,
    HeadgateError,
    LanguageError,
    NameTaken,
    UnknownName,
)

SCRIPT = """
create feed Top from (Rock as $r | News) as $all where $r[title contains 'muse'];
create feed Rock from Events as $e where $e[title contains 'rock' and published > '2026-01-01'];
register feed https://example.org/news as News;
register feed https://example.org/events as Events;
register feed Top apply 'photos.xsl' as Photos;
create feed Near from Tickets as $t where $t[near('Bronx') and price > 150];
register stream Tickets from json 'tickets/*.json' (price int, time timestamp);
register operator near(area text) cost 40 from 'city.operators:near';
advertise Tickets where price > 100;
subscribe to Top output mail 'me@example.org' every 3 hours;
show feeds;
explain feed Top;
"""
DEFINITIONS = {"Top", "Rock", "News", "Events", "Photos", "Near", "Tickets", "near"}


def refuse(catalog: Catalog, script: str, error: type[HeadgateError]) -> HeadgateError:
    """The script is refused and leaves nothing."""
    before = (catalog.version(), list(catalog.list_definitions()), catalog.list_subscriptions())
    with pytest.raises(error) as caught:
        catalog.apply(parse_script(script))
    after = (catalog.version(), list(catalog.list_definitions()), catalog.list_subscriptions())
    assert after == before
    return caught.value


def test_a_script_in_any_order(catalog: Catalog):
    statements = parse_script(SCRIPT)
    outcomes = catalog.apply(statements)
    assert [who(outcome.statement) for outcome in outcomes] == list(map(who, statements))
    assert [outcome.action for outcome in outcomes] == [
        "created feed Top",
        "created feed Rock",
        "registered source News",
        "registered source Events",
        "registered source Photos",
        "created feed Near",
        "registered source Tickets",
        "registered operator near",
        "advertised Tickets",
        "subscribed to Top",
        "",
        "",
    ]
    assert set(catalog.definitions()) == DEFINITIONS
    assert catalog.version() == 1


def test_stored_text_parses_to_the_checked_statement(catalog: Catalog):
    catalog.apply(parse_script(SCRIPT))
    definitions = catalog.definitions()
    for name, statement in definitions.items():
        assert parse(unparse(statement)) == statement
        assert catalog.statement_of(name) == statement
    assert "timestamp '2026-01-01T00:00:00+00:00'" in unparse(definitions["Rock"])


def test_the_same_script_again_changes_nothing_but_its_subscriptions(catalog: Catalog):
    statements = parse_script(SCRIPT)
    catalog.apply(statements)
    before = catalog.list_definitions()
    again = catalog.apply([each for each in statements if type(each).__name__ != "Subscribe"])
    assert not any(outcome.changed for outcome in again)
    assert again[0].action == "feed Top is unchanged"
    assert (catalog.version(), catalog.list_definitions()) == (1, before)
    assert len(catalog.list_advertisements()) == 1
    catalog.apply(statements)
    assert (catalog.version(), len(catalog.list_subscriptions())) == (2, 2)


def who(statement: Statement) -> tuple[type, object]:
    """Which statement it is, before and after it is checked."""
    return type(statement), getattr(statement, "name", None)


def registered(statements: Sequence[Statement]) -> dict[str, tuple[str, int, int]]:
    with Catalog.open("sqlite://") as catalog:
        outcomes = catalog.apply(statements)
        assert [who(outcome.statement) for outcome in outcomes] == list(map(who, statements))
        found = catalog.list_definitions()
    return {each.name: (each.definition, each.depth, each.branches) for each in found}


@settings(max_examples=30)
@given(order=st.permutations(parse_script(SCRIPT)))
def test_every_order_of_a_script_registers_the_same(order: list[Statement]):
    assert registered(order) == registered(parse_script(SCRIPT))


def test_a_dry_run_checks_everything_and_changes_nothing(catalog: Catalog):
    outcomes = catalog.apply(parse_script(SCRIPT), dry_run=True)
    assert outcomes[0].changed
    assert all(outcome.ticket is None for outcome in outcomes)
    assert (catalog.version(), len(catalog.definitions())) == (0, 0)
    with pytest.raises(LanguageError):
        catalog.apply(parse_script("create feed A from Nowhere;"), dry_run=True)
    catalog.apply(parse_script(SCRIPT))
    assert catalog.version() == 1


@pytest.mark.parametrize(
    ("script", "error", "number", "message"),
    [
        ("register feed https://a.b/c as A; create feed B from Aa;", LanguageError, 2, "'A'"),
        ("subscribe to Nothing output console;", LanguageError, 1, "no source or feed 'Nothing'"),
        (
            "register feed https://a.b/c as A; create feed A from News;",
            NameTaken,
            2,
            "the name 'A' is taken by a registered feed with another definition; "
            "choose another name, or write 'drop feed A;' before",
        ),
        (
            "create feed near from News;",
            NameTaken,
            1,
            "by an operator with another definition; "
            "choose another name, or write 'drop operator near;' before",
        ),
        ("create feed A from A;", FeedCycle, 1, "feed cycle: A → A;"),
        (
            "register feed https://a.b/c as S; create feed C from A; create feed A from (S | B);"
            " create feed X from A; create feed B from C;",
            FeedCycle,
            2,
            "feed cycle: C → A → B → C;",
        ),
        (
            "create feed A from B; register feed A apply 'x.xsl' as B;",
            FeedCycle,
            1,
            "feed cycle: A → B → A;",
        ),
        ("create feed N from News; drop feed Newz;", UnknownName, 2, "did you mean 'News'?"),
        ("create feed N from News; renew '1-x';", CatalogError, 2, "no active subscription"),
        ("create feed `N` from (src1 | ... | srcN);", LanguageError, 1, "nothing from 'src1'"),
    ],
)
def test_a_script_that_is_refused_leaves_nothing(catalog, script, error, number, message):
    catalog.apply(parse_script(SCRIPT))
    refused = refuse(catalog, script, error)
    assert message in str(refused)
    assert refused.statement_number == number


def test_an_error_has_the_number_of_its_statement(catalog: Catalog):
    refused = refuse(
        catalog, "register feed https://a.b/c as A;\ncreate feed B\n from Nope;", LanguageError
    )
    assert isinstance(refused, LanguageError)
    assert (refused.line, refused.column, refused.statement_number) == (3, 7, 2)


def test_the_first_of_two_definitions_is_the_one_that_counts(catalog: Catalog):
    script = """
        create feed A from B;
        create feed A from C;
        register feed https://a.b/b as B;
        register feed https://a.b/c as C;
    """
    assert refuse(catalog, script, NameTaken).statement_number == 2


def test_a_feed_is_replaced_by_dropping_and_creating_it(catalog: Catalog):
    catalog.apply(parse_script(SCRIPT))
    outcomes = catalog.apply(
        parse_script("drop feed Near; create feed Near from Tickets as $t where $t[price > 7];")
    )
    assert [outcome.action for outcome in outcomes] == ["dropped feed Near", "created feed Near"]
    assert "price > 7" in unparse(catalog.statement_of("Near"))
    assert catalog.version() == 2


def test_statements_before_a_drop_do_not_see_later_ones(catalog: Catalog):
    catalog.apply(parse_script("register feed https://a.b/c as S; create feed Old from S;"))
    script = "create feed A from B; drop feed Old; create feed B from S;"
    assert "no source or feed 'B'" in str(refuse(catalog, script, LanguageError))


def test_ranges_are_applied_after_the_sources_in_them(catalog: Catalog):
    sources = [f"register feed https://a.b/{n} as src{n};" for n in range(1, 13)]
    ranges = [
        "create feed Some from (src3 | ... | src5);",
        "create feed All from (src10 | ... | srcN);",
    ]
    catalog.apply(parse_script("".join(ranges + sources)))
    definitions = catalog.definitions()
    assert "(src3 | src4 | src5)" in unparse(definitions["Some"])
    assert "(src10 | src11 | src12)" in unparse(definitions["All"])
    assert {each.name: each.branches for each in catalog.list_definitions()}["All"] == 3


def test_a_range_that_is_too_long_to_be_stored_is_refused(catalog: Catalog):
    sources = [f"register feed https://a.b/{n} as src{n};" for n in range(3_000)]
    catalog.apply(parse_script("".join(sources)))
    refused = refuse(catalog, "create feed All from (src0 | ... | srcN);", CatalogError)
    assert "with its ranges expanded" in str(refused)


def test_feeds_nest_to_a_limit(catalog: Catalog):
    chain = ["register feed https://a.b/c as F0;"]
    chain += [f"create feed F{n} from F{n - 1};" for n in range(1, DEPTH_MAX + 1)]
    catalog.apply(parse_script("".join(reversed(chain))))
    refused = refuse(catalog, f"create feed Over from F{DEPTH_MAX};", CatalogError)
    assert str(refused).startswith("feed 'Over' would lie 65 feeds deep; at most 64 are allowed")


def test_feeds_branch_to_a_limit(catalog: Catalog):
    script = "register feed https://a.b/c as F0;"
    for level in range(1, 5):
        script += f"create feed F{level} from ({' | '.join([f'F{level - 1}'] * 10)});"
    catalog.apply(parse_script(script))
    assert catalog.list_definitions(after="F3")[0].branches == BRANCHES_MAX
    refused = refuse(catalog, "create feed Over from (F4 | F0);", CatalogError)
    assert "would read 10,001 sources; at most 10,000 are allowed" in str(refused)
    # What is materialised is read as one source, however large it is.
    catalog.apply(parse_script("register feed F4 apply 'x.xsl' as M; create feed B from (M | F0);"))
    assert {each.name: each.branches for each in catalog.list_definitions()}["B"] == 2


def test_names_and_texts_of_every_script_come_back(catalog: Catalog):
    script = """
        register feed https://example.org/ü as `Żółw 亀 😀`;
        create feed `a "b"` from `Żółw 亀 😀` as $x where $x[title contains 'É''😀'];
        subscribe to `a "b"` apply 'größe.xsl' output file 'ö.rss' at site `São Paulo`;
    """
    statements = parse_script(script)
    catalog.apply(statements)
    assert catalog.statement_of("Żółw 亀 😀") == statements[0]
    assert catalog.statement_of('a "b"') == statements[1]
    (subscription,) = catalog.list_subscriptions()
    assert parse(subscription.definition) == statements[2]
    assert (subscription.target, subscription.site) == ("ö.rss", "São Paulo")


# --- the order of a script, and its cycles ------------------------------------------------------

NAMES = [f"F{number}" for number in range(8)]
feeds = st.builds(
    CreateFeed, st.sampled_from(NAMES), st.builds(StreamRef, st.sampled_from([*NAMES, "S"]))
)
drops = st.builds(Drop, st.just(NameKind.FEED), st.sampled_from(NAMES))
scripts = st.lists(feeds | drops, max_size=12)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", []),
        ("create feed A from S; create feed B from A; create feed C from S;", [0, 1, 2]),
        ("create feed A from C; create feed B from S; create feed C from S;", [1, 2, 0]),
        ("subscribe to A output console; create feed A from S; show feeds;", [1, 0, 2]),
        ("create feed A from B; drop feed X; create feed B from A;", [0, 1, 2]),
        ("create feed A from S; create feed A from B; create feed B from S;", [0, 2, 1]),
    ],
)
def test_definitions_come_before_their_users_and_keep_the_order_otherwise(
    script: str, expected: list[int]
):
    assert list(order(parse_script(script))) == expected


@given(scripts)
def test_an_order_is_a_permutation_that_respects_needs_and_drops(script: list[Statement]):
    try:
        found = list(order(script))
    except FeedCycle as cycle:
        _assert_is_cycle(cycle, script)
        return
    assert sorted(found) == list(range(len(script)))
    for index, statement in enumerate(script):
        place = found.index(index)
        if isinstance(statement, Drop):
            assert place == index
            continue
        segment = _segment(script, index)
        definers = [i for i in segment if script[i].name == statement.from_clause.name]
        assert not definers or found.index(definers[0]) < place


def _assert_is_cycle(cycle: FeedCycle, script: list[Statement]) -> None:
    names = str(cycle).removeprefix("feed cycle: ").partition(";")[0].split(" → ")
    assert names[0] == names[-1]
    uses = {(each.name, each.from_clause.name) for each in script if isinstance(each, CreateFeed)}
    assert set(pairwise(names)) <= uses
    assert script[cycle.statement_number - 1].name == names[0]


def _segment(script: list[Statement], index: int) -> range:
    """The indices between the drops around this one."""
    first = max((i + 1 for i in range(index) if isinstance(script[i], Drop)), default=0)
    after = (i for i in range(index, len(script)) if isinstance(script[i], Drop))
    return range(first, next(after, len(script)))


def test_a_long_cycle_is_abbreviated():
    ring = [CreateFeed(f"F{n}", StreamRef(f"F{(n + 1) % 5000}")) for n in range(5000)]
    with pytest.raises(FeedCycle) as caught:
        list(order(ring))
    message = str(caught.value)
    assert message.startswith("feed cycle: F0 → F1 → ")
    assert "→ … 4,981 more … →" in message
    assert message.endswith("F4999 → F0; a feed cannot be defined through itself")
