"""Plans with payloads split off output the same rows; where the rule must not fire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.execute import execute
from tests.plan.papers import defined
from tests.plan.strategies import START

from headgate.language.schemas import Definitions
from headgate.model.items import Item
from headgate.plan.algebra import Plan
from headgate.plan.explain import explain, explain_all
from headgate.plan.normalize import normalize
from headgate.plan.split_payload import Half, PayloadSplit, split_payload
from headgate.plan.translate import compose_all

TABLES = """
register table Stocks (Symbol text key, PER int, Date int, Logo text payload) from json 's/*.json';
register table Reviews (Id int key, Symbol text, Rating int, Report text payload)
  from json 'r/*.json';
register table Ratios (Symbol text key, PER int) from json 'p/*.json';
register table Odd (Symbol text key, Id int, Photo text payload) from json 'o/*.json';
register feed http://example.org/1 as News;
register operator slow() cost 40 from 'city.operators:slow';
create feed All from Stocks;
create feed Cheap from Stocks where PER between 1 and 3;
create feed Rated from Stocks as $s join Reviews as $r on Symbol
  where $s[PER > 1] and $r[Rating < 3];
create feed Best from Rated where PER < 3 or Rating < 1;
create feed Either from (Cheap | Ratios) where PER < 3;
create feed Both from Odd as $o join Reviews as $r on Symbol where $r[Rating < 3];
create feed Words from Stocks where contains 'logo';
create feed Slow from Stocks where slow();
create feed Plain from Ratios where PER < 3;
create feed Stream from News where title contains 'rock';
"""
DEFINITIONS = defined(TABLES)
Golden = Callable[[str, str], None]


def plan_of(feed: str) -> Plan:
    return normalize(compose_all([feed], DEFINITIONS)[feed])


def split(feed: str, definitions: Definitions = DEFINITIONS) -> PayloadSplit | None:
    return split_payload(plan_of(feed), definitions)


def test_what_explain_shows(golden: Golden) -> None:
    shown = [explain(feed, DEFINITIONS).text() for feed in ("Cheap", "Best", "Either", "Both")]
    golden("plan/explain_payload.txt", "\n".join(shown))
    assert "payload split" in explain_all(DEFINITIONS).text()
    assert '"payload_split"' in explain("Cheap", DEFINITIONS).json()


@pytest.mark.parametrize("feed", ["Words", "Slow", "Plain", "Stream"])
def test_the_rule_does_not_fire(feed: str) -> None:
    """A filter on the whole row, an operator, a table without payload, a stream."""
    assert split(feed) is None
    assert "payload split" not in explain(feed, DEFINITIONS).text()


def test_a_key_that_another_table_has_too_is_not_joined_on() -> None:
    """Reviews is identified by Id, and Odd has another Id: Odd alone is cut in two."""
    found = split("Both")
    assert found is not None
    assert set(found.halves) == {"Odd(Symbol, Id)", "Odd(Symbol, Photo)"}


small = st.integers(0, 4)
symbols = st.sampled_from(["ACME", "acme", "GOOG"])
rows = st.fixed_dictionaries(
    {
        "Stocks": st.dictionaries(
            symbols, st.fixed_dictionaries({"PER": small, "Date": small, "Logo": symbols})
        ),
        "Reviews": st.dictionaries(
            small, st.fixed_dictionaries({"Symbol": symbols, "Rating": small, "Report": symbols})
        ),
        "Ratios": st.dictionaries(symbols, st.fixed_dictionaries({"PER": small})),
        "Odd": st.dictionaries(symbols, st.fixed_dictionaries({"Id": small, "Photo": symbols})),
    }
)
KEYS = {"Stocks": "Symbol", "Reviews": "Id", "Ratios": "Symbol", "Odd": "Symbol"}


@given(rows=rows, feed=st.sampled_from(["All", "Cheap", "Rated", "Best", "Either", "Both"]))
def test_the_rows_are_the_same(rows: dict[str, dict[object, dict[str, object]]], feed: str) -> None:
    """Keys that are equal when folded stand for one row, so of these the first one is kept."""
    tables: dict[str, list[Item]] = {}
    for table, by_key in rows.items():
        folded = {str(key).casefold(): key for key in reversed(by_key)}
        tables[table] = [
            Item(str(key), table, START, {KEYS[table]: key, **by_key[key]})
            for key in folded.values()
        ]
    found = split(feed)
    assert found is not None
    halves = {
        name: [project(each, half) for each in tables[half.table]]
        for name, half in found.halves.items()
    }
    one = execute(plan_of(feed), tables)
    other = execute(found.plan, tables | halves)
    assert contents(one) == contents(other)


def project(item: Item, half: Half) -> Item:
    own = {name: item.attributes[name] for name in half.attributes if name in item.attributes}
    return Item(item.id, half.name, item.time, own)


def contents(items: frozenset[Item]) -> Counter[frozenset[tuple[str, object]]]:
    return Counter(frozenset(each.attributes.items()) for each in items)
