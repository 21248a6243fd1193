"""Selectivities are those that the naive evaluator counts, wherever they are counted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from tests.match.drawn import drawn
from tests.match.strategies import NOON, SCHEMA, filters, items
from tests.pipeline.jobs.test_backtest import batches, filled
from tests.store.small_log import SmallLog, news, ticket

from headgate.catalog.statistics import SourceStatistics
from headgate.language.unparse import unparse_filter
from headgate.model.evaluate import matches
from headgate.model.filters import Filter, atoms_of
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.pipeline.jobs.job import LogJob, Note, Runner, run_in_process
from headgate.pipeline.jobs.measure import Measured, Measurer, SourceAtoms, asked_of_all
from headgate.plan.leaves import leaves_by_source
from headgate.store.file_ranges import FileRange

HERE = Runner("here", run_in_process)
EARLY = NOON - timedelta(days=365)


def measured(store: SmallLog, runner: Runner = HERE) -> Measured:
    asked = asked_of_all(store.definitions)
    assert not asked.refused
    view = store.view()
    return Measurer.prepare(asked.by_source, view, since=EARLY).run(runner, view, lambda _: None)


def naive(store: SmallLog) -> dict[str, tuple[int, dict[str, int]]]:
    found: dict[str, tuple[int, dict[str, int]]] = {}
    asked = leaves_by_source(store.plans)
    for source in {each.source for each in store.items}:
        own = [each for each in store.items if each.source == source]
        atoms = (atom for filter_ in asked.get(source, {}) for atom in atoms_of(filter_))
        counts = {unparse_filter(each): _count(each, own) for each in atoms}
        found[source] = len(own), counts
    return found


def _count(filter_: Filter, some: Sequence[Item]) -> int:
    return sum(matches(filter_, item) for item in some)


def told(found: Sequence[SourceStatistics]) -> dict[str, tuple[int, dict[str, int]]]:
    return {each.source: (each.items, dict(each.matched)) for each in found}


@settings(max_examples=15)
@given(batches)
def test_counts_are_those_of_the_naive_evaluator(rows: list[list[tuple[str, int, str]]]) -> None:
    with TemporaryDirectory() as path:
        store = filled(Path(path), rows)
        assert told(measured(store).statistics) == naive(store)
        assert not list(store.folder.path.glob(".measure-*"))


def test_atoms_of_all_kinds(tmp_path: Path) -> None:
    """As a part of the job alone: the filters and items of the match stage's own tests."""
    some = [Item(str(at), "s", NOON, each.attributes) for at, each in enumerate(drawn(items, 200))]
    asked = SourceAtoms(SCHEMA)
    asked.add(dict.fromkeys(drawn(filters, 60)))
    store = _OneSource(tmp_path, some)
    found = store.measure({"s": asked})
    expected = {unparse_filter(atom): _count(atom, some) for atom in asked.atoms}
    assert found.items == len(some)
    assert {text: found.matched[text] for text in expected} == expected
    assert found.matched.keys() == asked.texts.keys()


class _OneSource(SmallLog):
    """Items of the match tests' schema, which no statement can declare."""

    def __init__(self, path: Path, some: Sequence[Item]) -> None:
        super().__init__(path, "")
        self.put(some, arrived=NOON)

    def schema(self, source: str) -> Schema:  # noqa: ARG002
        return SCHEMA

    def measure(self, asked: dict[str, SourceAtoms]) -> SourceStatistics:
        view = self.view()
        prepared = Measurer.prepare(asked, view, since=EARLY)
        (found,) = prepared.run(HERE, view, lambda _: None).statistics
        return found


def test_spans_and_rates(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([ticket("1", 10, "Rome"), ticket("2", 60, "Rome")], arrived=NOON)
    store.put([ticket("3", None, "Rome")], arrived=NOON + timedelta(seconds=30))
    store.put([news("1", "rock")], arrived=NOON + timedelta(seconds=100))
    found = {each.source: each for each in measured(store).statistics}
    assert found["Tickets"].rate_per_s == 3 / 100
    assert found["Tickets"].selectivity("price < 50") == 1 / 3
    assert (found["News"].items, found["News"].span_s, found["News"].rate_per_s) == (1, 0, None)
    assert "Photos" not in found


def test_both_spellings_are_found(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([ticket("1", 10, "Paris"), ticket("2", 60, "Rome")], arrived=NOON)
    (found,) = measured(store).statistics
    for text in ("destination contains 'Paris'", "destination contains 'paris'"):
        assert found.selectivity(text) == 0.5


def test_what_joins_have_found_is_not_counted_again(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put_joined(news("1", "rock"), "Pictures", arrived=NOON)
    assert measured(store).statistics == []


def test_damaged_files_are_told(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([ticket("1", 10, "Rome")], arrived=NOON)
    bad = store.put([ticket("2", 10, "Rome")], arrived=NOON)
    store.damage(bad.items)
    found = measured(store)
    assert [each.items for each in found.statistics] == [1]
    assert set(found.damaged) == {bad.items}


def test_how_rows_are_cut_does_not_matter(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    for second in range(20):
        arrived = NOON + timedelta(seconds=second)
        store.put([ticket(f"{second}", second * 5, "Rome")], arrived=arrived)
    asked = asked_of_all(store.definitions)
    view = store.view()
    prepared = Measurer.prepare(asked.by_source, view, since=EARLY)

    def one_by_one(job: LogJob, ranges: Sequence[FileRange], _: Note) -> pa.Table:
        rows = [row for each in ranges for row in job.run((each,))]
        return pa.Table.from_batches(rows, job.result)

    apart = prepared.run(Runner("", one_by_one), view, lambda _: None)
    assert apart == prepared.run(HERE, view, lambda _: None)
    store.merge()
    assert apart == prepared.run(HERE, view, lambda _: None), "its files are gone"
    assert apart == measured(store)


@pytest.mark.integration
def test_spark_gives_the_same(tmp_path: Path) -> None:
    from tests.pipeline.spark_session import spark

    from headgate.pipeline.jobs.job import run_on_spark

    rows = [
        [(["Tickets", "News", "Photos"][m % 3], n * 5 % 60, "rock paris") for m in range(5)]
        for n in range(12)
    ]
    store = filled(tmp_path, rows)
    there = measured(store, Runner("", partial(run_on_spark, session=spark())))
    assert told(there.statistics) == naive(store)
    assert there == measured(store)
