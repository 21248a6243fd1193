"""Dropping is refused while something uses the definition; the users are named."""

import pytest
from tests.catalog.conftest import ManualClock

from headgate.catalog.catalog import Catalog
from headgate.language.parse import parse_script
from headgate.model.errors import CatalogError, InUse, LanguageError, UnknownName

SCRIPT = """
register feed https://example.org/news as News;
register stream Tickets from json 'tickets/*.json' (price int);
register table Stocks (Symbol text key, PER float) from json 'stocks/*.json';
register documents Papers from xml 'papers/*.xml';
register operator near(area text) from 'city.operators:near';
create feed A from News;
create feed B from (News | A);
create feed C from A join last 3 days on News as $n with $a[title similar window.title];
create feed Near from Tickets as $t where $t[near('Bronx')];
register feed A apply 'x.xsl' as Stored;
advertise Tickets where price > 100;
""".replace("from A join", "from A as $a join")


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    catalog.apply(parse_script(SCRIPT))
    return catalog


def refused(catalog: Catalog, script: str, error: type[CatalogError]) -> str:
    version = catalog.version()
    with pytest.raises(error) as caught:
        catalog.apply(parse_script(script))
    assert catalog.version() == version
    return str(caught.value)


def test_the_users_are_named(filled: Catalog):
    assert refused(filled, "drop feed News;", InUse) == (
        "source 'News' is used by feeds A, B, C; drop what uses it first"
    )
    assert "feeds B, C, Stored;" in refused(filled, "drop feed A;", InUse)
    assert "operator 'near' is used by feed Near;" in refused(filled, "drop operator near;", InUse)
    filled.apply(parse_script("subscribe to A output console;" * 1_204))
    assert "by feeds B, C, Stored and 1,204 subscriptions;" in refused(
        filled, "drop feed A;", InUse
    )


def test_many_users_are_counted(filled: Catalog):
    filled.apply(parse_script("".join(f"create feed T{n:02} from Tickets;" for n in range(15))))
    message = refused(filled, "drop stream Tickets;", InUse)
    assert "by feeds Near, T00, T01, T02, T03, T04, T05, T06, T07, T08 and 6 more;" in message


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("drop feed Tickets;", "'Tickets' is a stream: write 'drop stream Tickets;'"),
        ("drop stream A;", "'A' is a feed: write 'drop feed A;'"),
        ("drop table Papers;", "drop documents Papers"),
        ("drop operator News;", "drop feed News"),
        ("drop feed near;", "'near' is an operator: write 'drop operator near;'"),
    ],
)
def test_the_kind_must_fit(filled: Catalog, script: str, message: str):
    assert message in refused(filled, script, CatalogError)


def test_an_unknown_name_has_a_nearest_one(filled: Catalog):
    message = refused(filled, "drop feed Nwes;", UnknownName)
    assert message == "there is no feed named 'Nwes'; did you mean 'News'?"
    with pytest.raises(UnknownName, match="nothing is named 'Ticket'; did you mean 'Tickets'"):
        filled.statement_of("Ticket")


def test_everything_can_be_dropped_from_the_top_down(filled: Catalog):
    script = """
        drop feed Stored; drop feed C; drop feed B; drop feed A; drop feed News; drop feed Near;
        drop operator near; drop stream Tickets; drop table Stocks; drop documents Papers;
    """
    outcomes = filled.apply(parse_script(script))
    assert outcomes[0].action == "dropped source Stored"
    assert (list(filled.definitions()), filled.version()) == ([], 2)
    assert filled.list_advertisements() == []
    filled.apply(parse_script(SCRIPT))


def test_a_dropped_name_is_unknown_to_later_statements(filled: Catalog):
    with pytest.raises(LanguageError, match="no source or feed 'B'"):
        filled.apply(parse_script("drop feed B; subscribe to B output console;"))


def test_a_drop_sees_what_its_own_script_has_made(filled: Catalog):
    message = refused(filled, "subscribe to B output console; drop feed B;", InUse)
    assert "is used by 1 subscription;" in message
    message = refused(filled, "create feed D from B; drop feed B;", InUse)
    assert "is used by feed D;" in message


def test_expired_subscriptions_do_not_prevent_a_drop(filled: Catalog, clock: ManualClock):
    filled.apply(parse_script("subscribe to B output console;"))
    clock.advance(days=2)
    filled.apply(parse_script("drop feed B;"))
    assert filled.expire() == 0
