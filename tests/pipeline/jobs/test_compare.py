"""Two feeds are compared as the naive evaluator compares them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.jobs.test_backtest import HERE, LATER, STATEMENTS, batches, feed, filled
from tests.store.small_log import NOON, naive

from headgate.pipeline.jobs import backtest, backtest_job
from headgate.pipeline.jobs.backtest_query import backtest_query
from headgate.pipeline.jobs.compare import Comparer

ALL = [
    *STATEMENTS,
    "create feed X from Tickets as $t where $t[price < 50 or price = 50]",
    "create feed X from (Rock | Tickets)",
]


@settings(max_examples=30)
@given(batches, st.sampled_from(ALL), st.sampled_from(ALL))
def test_it_finds_the_first_difference(
    drawn: list[list[tuple[str, int, str]]], left: str, right: str
) -> None:
    with TemporaryDirectory() as path:
        store = filled(Path(path), drawn)
        queries = [backtest_query(feed(text), store.definitions) for text in (left, right)]
        view = store.view()
        since = NOON.replace(year=2026, month=1)
        comparer = Comparer.prepare(*queries, view, since=since, until=LATER)
        found = comparer.run(HERE, view, lambda _: None)
        has, has_too = (naive(query.plan, store.items) for query in queries)
        assert found.unknown == ""
        assert found.is_equal == (has == has_too)
        assert (found.only_left, found.only_right) == (len(has - has_too), len(has_too - has))
        assert (found.left.matched, found.right.matched) == (len(has), len(has_too))
        if has == has_too:
            assert found.first is None
            return
        assert found.first is not None
        first = found.first.source, found.first.id
        assert first in (has - has_too if found.is_first_left else has_too - has)
        # Positions are in the order of arrival, and within a batch in the order of the file.
        earlier = [row for row in _rows(store) if row.position < found.first.position]
        assert not (has ^ has_too) & {(row.source, row.id) for row in earlier}


def _rows(store):  # type: ignore[no-untyped-def]
    view = store.view()
    return view.read(view.places(list(range(view.index.next_position))))


def test_more_items_than_can_be_kept_are_not_compared(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    store = filled(tmp_path, [[("Tickets", n, "a") for n in range(5)]] * 3)
    monkeypatch.setattr("headgate.pipeline.jobs.compare.POSITIONS_MAX", 10)
    monkeypatch.setattr(backtest, "POSITIONS_MAX", 10)
    monkeypatch.setattr(backtest_job, "NEWEST_SLACK", 0)
    query = backtest_query(feed("create feed X from Tickets"), store.definitions)
    other = backtest_query(feed("create feed X from News"), store.definitions)
    view = store.view()
    comparer = Comparer.prepare(query, other, view, since=NOON.replace(month=1), until=LATER)
    found = comparer.run(HERE, view, lambda _: None)
    assert found.unknown == "left: it has more than 10 items"
    assert not found.is_equal
