"""Statistics are stored by source and replaced as a whole."""

from __future__ import annotations

from tests.catalog.conftest import ManualClock

from headgate.catalog.catalog import Catalog
from headgate.catalog.statistics import SourceStatistics
from headgate.language.parse import parse_script

SCRIPT = """
register stream Tickets from json 't.json' (price int);
register stream Trips from json 'u.json' (price int);
create feed Cheap from Tickets as $t where $t[price < 50];
"""


def test_recorded_statistics_are_read_back(catalog: Catalog, clock: ManualClock) -> None:
    catalog.apply(parse_script(SCRIPT))
    version = catalog.version()
    measured = SourceStatistics("Tickets", 1_000, 60.5, {"price < 50": 20, "name = 'ä''b'": 0})
    assert catalog.record_statistics([measured]) == 1
    found = catalog.statistics("Tickets")
    assert found is not None
    assert (found.items, found.span_s, found.matched) == (1_000, 60.5, measured.matched)
    assert found.measured_at == clock.now
    assert found.selectivity("price < 50") == 0.02
    assert found.selectivity("price < 51") is None
    assert found.rate_per_s == 1_000 / 60.5
    assert catalog.version() == version
    assert catalog.statistics("Trips") is None


def test_a_new_measurement_replaces_the_old_one(catalog: Catalog) -> None:
    catalog.apply(parse_script(SCRIPT))
    catalog.record_statistics(
        [SourceStatistics("Tickets", 10, 1.0, {"a = 1": 1}), SourceStatistics("Trips", 5, 0.0)]
    )
    catalog.record_statistics([SourceStatistics("Tickets", 20, 2.0, {"b = 1": 2})])
    tickets, trips = catalog.statistics("Tickets"), catalog.statistics("Trips")
    assert tickets is not None
    assert (tickets.items, dict(tickets.matched)) == (20, {"b = 1": 2})
    assert trips is not None
    assert (trips.items, trips.rate_per_s) == (5, None)


def test_a_source_that_is_not_registered_is_left_out(catalog: Catalog) -> None:
    catalog.apply(parse_script(SCRIPT))
    both = [SourceStatistics("Gone", 1, 1.0), SourceStatistics("Trips", 1, 1.0)]
    assert catalog.record_statistics(both) == 1
    assert catalog.statistics("Gone") is None


def test_statistics_are_deleted_with_their_source(catalog: Catalog) -> None:
    catalog.apply(parse_script(SCRIPT))
    catalog.record_statistics([SourceStatistics("Trips", 1, 1.0, {"price < 5": 1})])
    catalog.apply(parse_script("drop stream Trips;"))
    catalog.apply(parse_script("register stream Trips from json 'u.json' (price int);"))
    assert catalog.statistics("Trips") is None


def test_names_of_numbers(catalog: Catalog, clock: ManualClock) -> None:
    catalog.apply(parse_script(SCRIPT))
    definitions = catalog.definitions()
    numbers = {definitions.number_of(name): name for name in definitions}
    assert catalog.names_of_numbers([*numbers, 9_999]) == numbers
    assert catalog.created_at("Cheap") == clock.now
    assert catalog.created_at("Dear") is None
    with catalog.looking_up() as few:
        assert few.number_of("Cheap") == definitions.number_of("Cheap")
        assert "Dear" not in few


def test_many_atoms(catalog: Catalog) -> None:
    catalog.apply(parse_script(SCRIPT))
    many = {f"price < {n}": n for n in range(25_000)}
    catalog.record_statistics([SourceStatistics("Tickets", 25_000, 1.0, many)])
    found = catalog.statistics("Tickets")
    assert found is not None
    assert found.matched == many
