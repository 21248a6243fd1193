"""Values, words and conditions of a source are counted as anybody would count them."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.small_log import NOON, SmallLog, ticket

from headgate.api import value_rates
from headgate.api.value_rates import ValueRate, rate_conditions, rate_values, sample_of
from headgate.language.parse import FilterParser
from headgate.model.errors import InvalidValue, LanguageError, UnknownName
from headgate.model.evaluate import matches
from headgate.model.filters import atoms_of

PLACES = ["Paris", "paris Orly", "Rome", "東京 Rome", ""]
drawn_items = st.lists(
    st.tuples(st.none() | st.integers(0, 60), st.sampled_from(PLACES), st.integers(1, 40)),
    max_size=20,
)


def filled(path: Path, drawn: list[tuple[int | None, str, int]]) -> SmallLog:
    store = SmallLog(path)
    ordered = sorted(drawn, key=lambda each: -each[2])
    for number, (price, place, hours_ago) in enumerate(ordered):
        item = ticket(str(number), price, place, hours=-hours_ago)
        store.put([item], arrived=NOON - timedelta(hours=hours_ago))
        store.items.append(item)
    return store


def counts(rates: list[ValueRate]) -> dict[str, int]:
    return {each.text: each.items for each in rates}


@settings(max_examples=40)
@given(drawn_items)
def test_values_and_words(drawn: list[tuple[int | None, str, int]]) -> None:
    with TemporaryDirectory() as path:
        store = filled(Path(path), drawn)
        sample = sample_of(store.view(), "Tickets", NOON)
        # An item that arrived exactly a day ago is of the last day.
        recent = [each for each in store.items if each.time >= NOON - timedelta(days=1)]
        looked_at = recent or store.items
        assert sample.per_day == (len(recent) or None)
        assert [each.id for each in sample.items] == [each.id for each in looked_at]
        schema = store.schema("Tickets")
        price, place = rate_values(sample, schema, ["price", "destination"], limit=100)
        known = [each.attributes for each in looked_at]
        assert counts(list(price.values)) == Counter(
            str(each["price"]) for each in known if "price" in each
        )
        assert price.present.items == sum("price" in each for each in known)
        assert not price.words
        assert counts(list(place.values)) == Counter(str(each["destination"]) for each in known)
        expected = Counter(
            word
            for each in known
            for word in {"東" if "東" in x else x for x in str(each["destination"]).lower().split()}
        )
        found = counts(list(place.words))
        assert {word: n for word, n in found.items() if word != "京"} == expected
        for each in (*place.words, *price.values):
            assert each.share == each.items / len(looked_at)
            assert each.per_day == (each.share * len(recent) if recent else None)


FILTERS = [
    "price < 30",
    "price < 30 and destination contains 'paris'",
    "not (price between 10 and 20) or destination contains 'rome'",
    "destination contains '東京' or price is present",
]


@settings(max_examples=40)
@given(drawn_items, st.sampled_from(FILTERS))
def test_conditions(drawn: list[tuple[int | None, str, int]], text: str) -> None:
    with TemporaryDirectory() as path:
        store = filled(Path(path), drawn)
        sample, schema = sample_of(store.view(), "Tickets", NOON), store.schema("Tickets")
        filter_ = FilterParser(schema).parse(text)
        parts = [filter_, *dict.fromkeys(atoms_of(filter_))]
        ids = {each.id for each in sample.items}
        items = [each for each in store.items if each.id in ids]
        expected = [sum(matches(part, item) for item in items) for part in parts]
        rates = rate_conditions(sample, schema, text)
        assert rates[0].text == text
        # A filter that is one condition is listed once.
        assert [each.items for each in rates] == expected[: len(rates)]
        assert len(rates) in (len(parts), len(parts) - 1)


def test_a_prefix_and_a_limit(tmp_path: Path) -> None:
    store = filled(tmp_path, [(1, "Paris", 1), (2, "paris Orly", 1), (3, "Rome", 1)])
    sample, schema = sample_of(store.view(), "Tickets", NOON), store.schema("Tickets")
    (place,) = rate_values(sample, schema, ["destination"], prefix="PA", limit=1)
    assert counts(list(place.values)) == {"Paris": 1}
    assert counts(list(place.words)) == {"paris": 2}


def test_only_the_newest_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_rates, "SAMPLE_MAX", 2)
    store = filled(tmp_path, [(n, "Rome", 3) for n in range(5)])
    sample = sample_of(store.view(), "Tickets", NOON)
    assert [each.id for each in sample.items] == ["3", "4"]
    (rate,) = rate_conditions(sample, store.schema("Tickets"), "price >= 4")
    assert (rate.items, rate.sample, rate.per_day) == (1, 2, 2.5)


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    store = filled(tmp_path, [(1, "Rome", 1)])
    sample, schema = sample_of(store.view(), "Tickets", NOON), store.schema("Tickets")
    with pytest.raises(UnknownName, match="did you mean 'price'"):
        rate_values(sample, schema, ["prise"], limit=3)
    with pytest.raises(LanguageError):
        rate_conditions(sample, schema, "price <")
    with pytest.raises(InvalidValue, match="more than 100"):
        rate_conditions(sample, schema, " or ".join(f"price = {n}" for n in range(150)))
