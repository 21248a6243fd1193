"""A matcher answers as the oracle does, whatever was added, removed, compacted and saved."""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.match.strategies import SCHEMA, filters, items

import headgate as hg
from headgate.api import matcher as matcher_module
from headgate.api.frames import item_of
from headgate.language.parse import parse_filter
from headgate.language.unparse import unparse_filter
from headgate.match import living
from headgate.match import matcher as program_matcher
from headgate.match.item_columns import items_to_arrow
from headgate.model.atoms import Comparison, IsPresent, Relation
from headgate.model.errors import (
    InvalidValue,
    LanguageError,
    NameTaken,
    SnapshotError,
    UnknownName,
)
from headgate.model.evaluate import matches
from headgate.model.filters import And, Filter, Not, Or, atoms_of
from headgate.model.items import Item

PLAIN = {"price": "float", "to": "text", "stops": "int", "new": "bool", "at": "timestamp"}


def tickets(**filters_: str) -> hg.Matcher:
    matcher = hg.Matcher(PLAIN)
    matcher.add_many(filters_)
    return matcher


def writable(filter_: Filter) -> bool:
    """Whether the language can say it: no unknown attribute, no constant as a part, right types."""
    inner = isinstance(filter_, And | Or | Not)
    if inner and not all(_has_atoms(part) for part in _parts(filter_)):
        return False
    try:
        parse_filter(unparse_filter(filter_), SCHEMA)
    except (LanguageError, InvalidValue):
        return False
    return True


def _parts(filter_: Filter) -> tuple[Filter, ...]:
    return (filter_.part,) if isinstance(filter_, Not) else filter_.parts  # type: ignore[union-attr]


def _has_atoms(filter_: Filter) -> bool:
    return next(iter(atoms_of(filter_)), None) is not None


@st.composite
def _written(draw: st.DrawFn) -> Filter:
    return draw(filters.filter(writable))


written = _written()


names = st.text("abc é", max_size=2)


@pytest.fixture
def _small_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiers, batches and bulks so small that a short history passes through all of them."""
    monkeypatch.setattr(living, "TIER_ROOMS", (2, 4))
    monkeypatch.setattr(matcher_module, "BULK", 3)
    monkeypatch.setattr(program_matcher, "BATCH_ROWS", 3)
    monkeypatch.setattr(program_matcher, "LARGE_BATCH_ROWS", 5)
    monkeypatch.setattr(program_matcher, "FEW_MATCHES", 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data(), st.lists(items, min_size=1, max_size=8))
@pytest.mark.usefixtures("_small_tiers")
def test_any_history_matches_as_the_oracle(data: st.DataObject, pool: list[Item]) -> None:
    matcher, known = hg.Matcher(SCHEMA), dict[str, Filter]()
    for _ in range(data.draw(st.integers(1, 6))):
        match data.draw(st.sampled_from(["add", "add", "add many", "remove", "compact", "save"])):
            case "add" | "add many" as step:
                some = data.draw(
                    st.dictionaries(names, written, max_size=1 if step == "add" else 6)
                )
                if some.keys() & known.keys():
                    with pytest.raises(NameTaken):
                        matcher.add_many(some)
                    continue
                if step == "add":
                    for name, filter_ in some.items():
                        matcher.add(name, filter_)
                else:
                    matcher.add_many(some.items())
                known |= some
            case "remove" if known:
                name = data.draw(st.sampled_from(sorted(known)))
                matcher.remove(name)
                del known[name]
            case "compact":
                matcher.compact()
            case "save":
                with tempfile.TemporaryDirectory() as folder:
                    matcher.save(Path(folder) / "file")
                    matcher = hg.Matcher.open(str(Path(folder) / "file"), verify="full")
        agree(matcher, known, pool)


def agree(matcher: hg.Matcher, known: dict[str, Filter], pool: list[Item]) -> None:
    """match == match_frame == count_frame == explain == the naive evaluator."""
    frame = items_to_arrow(pool, SCHEMA)
    assert (list(matcher), len(matcher)) == (list(known), len(known))
    expected = [[name for name in known if matches(known[name], item)] for item in pool]
    assert [matcher.match(each.attributes) for each in pool] == expected
    found = matcher.match_frame(frame)
    assert found["row"].to_pylist() == sorted(found["row"].to_pylist())
    pairs = Counter(zip(found["row"].to_pylist(), found["name"].to_pylist(), strict=True))
    assert pairs == Counter((row, name) for row, some in enumerate(expected) for name in some)
    assert matcher.count_frame(frame)["count"].to_pylist() == [len(some) for some in expected]
    by_name = matcher.count_frame(frame, by="name")
    total = Counter(name for some in expected for name in some)
    assert by_name["name"].to_pylist() == list(known)
    assert by_name["count"].to_pylist() == [total[name] for name in known]
    for name in known:
        assert name in matcher
        assert bool(matcher.explain(name, pool[0].attributes)) == (name in expected[0])


columns = st.fixed_dictionaries(
    {
        "price": st.lists(st.none() | st.floats(0, 200), min_size=3, max_size=3),
        "to": st.lists(st.none() | st.sampled_from(["Paris", "Rome", ""]), min_size=3, max_size=3),
        "new": st.lists(st.none() | st.booleans(), min_size=3, max_size=3),
    }
)


@given(columns)
def test_pandas_polars_and_arrow_give_the_same(values: dict[str, list[object]]) -> None:
    matcher = tickets(
        cheap="price < 100", paris="to contains 'paris'", new="new", no="price is not present"
    )
    schema = pa.schema([("price", pa.float64()), ("to", pa.string()), ("new", pa.bool_())])
    table = pa.table(values, schema=schema)
    expected = matcher.match_frame(table)
    coded = table.set_column(1, "to", table["to"].dictionary_encode())
    views = table.cast(pa.schema([schema[0], ("to", pa.string_view()), schema[2]]))
    others = [
        table.to_pandas(),
        table.to_pandas(types_mapper=pd.ArrowDtype),
        pl.DataFrame(table),
        pl.DataFrame(table).with_columns(pl.col("to").cast(pl.Categorical)),
        table.to_reader(max_chunksize=2),
        table.combine_chunks().to_batches()[0],
        coded,
        views,
    ]
    for frame in others:
        found = matcher.match_frame(frame)
        assert found.schema == expected.schema
        assert found.to_pylist() == expected.to_pylist(), type(frame)
        if not isinstance(frame, pa.RecordBatchReader):  # it can be read once
            assert matcher.count_frame(frame).equals(matcher.count_frame(table))
    for row, item in enumerate(table.to_pylist()):
        names = [each["name"] for each in expected.to_pylist() if each["row"] == row]
        assert sorted(matcher.match(item)) == sorted(names)


def test_the_result_is_a_frame_for_others() -> None:
    found = tickets(cheap="price < 100", all="true").match_frame(pa.table({"price": [1, 200]}))
    assert pl.DataFrame(found).rows() == [(0, "cheap"), (0, "all"), (1, "all")] or (
        sorted(pl.DataFrame(found).rows()) == [(0, "all"), (0, "cheap"), (1, "all")]
    )
    assert found.to_pandas()["row"].tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("column", "type_", "filter_", "expected"),
    [
        (pa.array([1, None], pa.int8()), "int", "x = 1", [0]),
        (pa.array([1, 2**63 - 1], pa.uint64()), "int", "x > 5", [1]),
        (pa.array([1.0, float("nan"), None]), "int", "x is present", [0]),
        (pa.array(["1.5", "2"]).cast(pa.decimal128(5, 2)), "float", "x = 1.5", [0]),
        (pa.array([1.5, 2], pa.float32()), "float", "x = 1.5", [0]),
        (pa.array([1.5, 2], pa.float16()), "float", "x = 1.5", [0]),
        (pa.array([20_000], pa.date32()), "timestamp", "x.date = '2024-10-04'", [0]),
        (pa.array([1_700_000_000], pa.timestamp("s")), "timestamp", "x.year = 2023", [0]),
        (pa.array([1], pa.timestamp("ms", "Europe/Paris")), "timestamp", "x.hour = 0", [0]),
        (pa.array(["a"], pa.large_string()), "text", "x = 'A'", [0]),
        (pa.array(["https://a.org/x"]), "link", "x extends 'a.org'", [0]),
        (pa.array([b"ab"], pa.binary(2)), "bytes", "x = bytes '6162'", [0]),
        (pa.array([b"ab"], pa.large_binary()), "bytes", "x = bytes '6162'", [0]),
        (pa.array([b"ab"], pa.binary_view()), "bytes", "x = bytes '6162'", [0]),
        (pa.nulls(3), "bool", "not x", [0, 1, 2]),
    ],
)
def test_arrow_types_that_fit(
    column: pa.Array, type_: str, filter_: str, expected: list[int]
) -> None:
    matcher = hg.Matcher({"x": type_})
    matcher.add("f", filter_)
    assert matcher.match_frame(pa.table({"x": column}))["row"].to_pylist() == expected
    if type_ != "link" and not pa.types.is_null(column.type):
        inferred = str(hg.Matcher.from_frame(pa.table({"x": column})).schema.attributes[0].type)
        assert inferred in (type_, "float")


@pytest.mark.parametrize(
    ("column", "type_", "message"),
    [
        (pa.array([1]), "text", "column 'x' of int64 does not fit text"),
        (pa.array(["a"]), "float", "column 'x' of string does not fit float"),
        (pa.array(["a"]), "bytes", "column 'x' of string does not fit bytes"),
        (pa.array([True]), "int", "column 'x' of bool does not fit int"),
        (pa.array([1.5]), "int", "column 'x' of double does not fit int"),
        (pa.array([2**63], pa.uint64()), "int", "column 'x' of uint64 does not fit int"),
        (pa.array([[1]]), "int", "column 'x' of list<.*> does not fit int"),
    ],
)
def test_arrow_types_that_do_not_fit(column: pa.Array, type_: str, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        hg.Matcher({"x": type_}).match_frame(pa.table({"x": column}))


def test_a_frame_without_any_attribute_is_an_error() -> None:
    matcher = tickets(cheap="price < 100")
    for frame in (pa.table({"prise": [1]}), pd.DataFrame({"prise": [1]}), pl.DataFrame({"y": [1]})):
        with pytest.raises(InvalidValue, match="none of the attributes price, to"):
            matcher.match_frame(frame)
    with pytest.raises(InvalidValue, match="dict is no frame"):
        matcher.match_frame({"price": [1]})
    twice = pa.table([[1.0], [2.0]], names=["price", "price"])
    with pytest.raises(InvalidValue, match="2 columns 'price'"):
        matcher.match_frame(twice)


def test_other_columns_of_pandas_may_hold_anything() -> None:
    frame = pd.DataFrame({"price": [1, 200], "odd": [object(), {1}]}, index=["a", "b"])
    assert tickets(cheap="price < 100").match_frame(frame).to_pylist() == [
        {"row": 0, "name": "cheap"}
    ]


def test_schemas() -> None:
    frame = pd.DataFrame({"a": [1], "b": [1.5], "c": ["x"], "d": pd.to_datetime(["2026-01-01"])})
    assert repr(hg.Matcher.from_frame(frame)) == (
        "Matcher({'a': 'int', 'b': 'float', 'c': 'text', 'd': 'timestamp'}, 0 filters)"
    )
    assert hg.Matcher(SCHEMA).schema == SCHEMA
    with pytest.raises(InvalidValue, match="'a' has no type 'integer'; did you mean 'int'"):
        hg.Matcher({"a": "integer"})
    with pytest.raises(InvalidValue, match=r"column 'a' of list<.*> fits no type"):
        hg.Matcher.from_frame(pa.table({"a": [[1]]}))
    with pytest.raises(InvalidValue, match="is no name of an attribute"):
        hg.Matcher({"a`b": "int"})
    with pytest.raises(InvalidValue, match=r"Matcher\.from_frame"):
        hg.Matcher(frame)  # type: ignore[arg-type]


def test_items_may_lack_attributes_and_have_others() -> None:
    matcher = tickets(cheap="price < 100", none="price is not present", whole="stops = 2")
    assert matcher.match({}) == ["none"]
    assert matcher.match({"price": None, "color": "red", "stops": 2.0}) == ["none", "whole"]
    assert matcher.match({"price": float("nan")}) == ["none"]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"price": "cheap"}, "attribute 'price': expected a float, found the text 'cheap'"),
        ({"stops": 2.5}, "attribute 'stops': expected an int, found the number 2.5"),
        ({"stops": True}, "attribute 'stops': expected an int, found true"),
        ({"stops": 2**63}, "attribute 'stops': an integer has at most 64 bits"),
        ({"new": 1}, "attribute 'new': expected a bool, found the number 1"),
        ({"to": b"x"}, "attribute 'to': expected a text, found bytes"),
        ({"to": ["x"]}, "attribute 'to': expected a text, found a value of <class 'list'>"),
        ({"at": "soon"}, "attribute 'at': 'soon' is not a timestamp"),
    ],
)
def test_values_that_do_not_fit_are_refused(item: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        tickets().match(item)


def test_values_of_other_libraries_are_taken() -> None:
    from datetime import date, datetime, timedelta, timezone
    from decimal import Decimal

    import numpy as np

    east = timezone(timedelta(hours=3))
    given_ = {"price": Decimal("1.5"), "stops": np.int64(2), "new": np.bool_(True)}
    assert item_of(given_, hg.Matcher(PLAIN).schema).attributes == {
        "price": 1.5,
        "stops": 2,
        "new": True,
    }
    matcher = tickets(hour="at.hour = 21", day="at = '2026-11-16'")
    assert matcher.match({"at": datetime(2026, 11, 17, 0, 30, tzinfo=east)}) == ["hour"]
    assert matcher.match({"at": date(2026, 11, 16)}) == ["day"]
    assert matcher.match({"at": pd.Timestamp("2026-11-16T21:00")}) == ["hour"]


def test_a_bad_filter_changes_nothing_and_says_which_it_is() -> None:
    matcher = tickets(cheap="price < 100")
    with pytest.raises(LanguageError, match="filter 'b': there is no attribute 'prise'") as caught:
        matcher.add_many({"a": "price > 1", "b": "price > 1 and\n prise < 2"})
    assert (caught.value.line, caught.value.column, caught.value.source) == (2, 2, " prise < 2")
    assert list(matcher) == ["cheap"]
    with pytest.raises(NameTaken, match="two of the filters are called 'a'"):
        matcher.add_many([("a", "true"), ("a", "false")])
    with pytest.raises(UnknownName, match="did you mean 'cheap'"):
        matcher.remove("cheep")
    with pytest.raises(UnknownName):
        matcher["nothing"]
    with pytest.raises(InvalidValue, match="a filter's name is a text"):
        matcher.add(5, "true")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="no valid Unicode"):
        matcher.add("\ud800", "true")


def test_filters_may_be_objects() -> None:
    matcher = hg.Matcher(PLAIN)
    matcher.add("f", And((Comparison("price", Relation.LESS, 5), Not(IsPresent("to")))))
    assert matcher["f"] == "price < 5 and not `to` is present"
    assert matcher.match({"price": 4}) == ["f"]
    with pytest.raises(LanguageError):
        matcher.add("g", Comparison("price", Relation.LESS, float("inf")))


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.headgate"
    with pytest.raises(SnapshotError):
        hg.Matcher.open(path)
    matcher = tickets(cheap="price < 100", paris="to contains 'Paris'")
    matcher.save(path)
    content = bytearray(path.read_bytes())
    for place in range(0, len(content), 97):
        changed = bytearray(content)
        changed[place] ^= 1
        other = tmp_path / "changed"
        other.write_bytes(changed)
        try:
            opened = hg.Matcher.open(other, verify="full")
        except SnapshotError:
            continue
        assert list(opened) == ["cheap", "paris"], "only padding may be changed unnoticed"
    path.chmod(0o644)
    matcher.add("new", "new")
    matcher.save(path)
    assert hg.Matcher.open(path).match({"new": True}) == ["new"]


def test_threads_that_add_remove_and_match_at_once() -> None:
    """Pairs of filters come and go together: a match sees both of a pair, or neither."""
    matcher = hg.Matcher({"x": "int"})
    matcher.add("always", "x is present")
    done, errors = threading.Event(), []
    frame = pa.table({"x": [1, 2, None]})

    def change(worker: int) -> None:
        for n in range(400):
            pair = {f"{worker} {n} a": "x < 2", f"{worker} {n} b": "x < 2"}
            matcher.add_many(pair)
            if n % 3 == 0:
                matcher.remove(f"{worker} {n} b")
                matcher.remove(f"{worker} {n} a")

    def look() -> None:
        while not done.is_set():
            names = matcher.match({"x": 1})
            rows = matcher.match_frame(frame)
            seen = [name for name in rows["name"].to_pylist() if name != "always"]
            for found in (names[1:], seen):
                firsts = {name[:-2] for name in found if name.endswith("a")}
                seconds = {name[:-2] for name in found if name.endswith("b")}
                missing = {name for name in firsts ^ seconds if int(name.split()[1]) % 3}
                # The second of a pair is removed first, so it is never seen alone.
                if missing or seconds - firsts or names[0] != "always":
                    errors.append((missing, seconds - firsts))

    def compact() -> None:
        while not done.is_set():
            matcher.compact()

    def guarded(work, *arguments) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            errors.append(error)

    changers = [threading.Thread(target=guarded, args=(change, n)) for n in range(3)]
    lookers = [threading.Thread(target=guarded, args=(work,)) for work in (look, look, compact)]
    for thread in changers + lookers:
        thread.start()
    for thread in changers:
        thread.join()
    done.set()
    for thread in lookers:
        thread.join()
    assert not errors
    kept = {f"{w} {n} {side}" for w in range(3) for n in range(400) if n % 3 for side in "ab"}
    assert set(matcher) == kept | {"always"}
    assert set(matcher.match({"x": 1})) == kept | {"always"}
