"""A backtest counts what the naive evaluator counts: here, on Spark, and through joins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.small_log import NOON, SmallLog, naive, news, ticket

from headgate.language.parse import parse
from headgate.language.statements import CreateFeed
from headgate.match.item_columns import group_of, items_to_arrow
from headgate.model.errors import LanguageError
from headgate.model.items import Item
from headgate.pipeline.jobs import job as choosing
from headgate.pipeline.jobs.backtest import Backtest, Backtester
from headgate.pipeline.jobs.backtest_query import BacktestQuery, backtest_query
from headgate.pipeline.jobs.job import Runner, choose_runner, run_in_process
from headgate.store.file_ranges import ranges_since
from headgate.store.log_writer import LogFileWriter

HERE = Runner("here", run_in_process)
LATER = NOON + timedelta(days=1)
STATEMENTS = [
    "create feed X from Tickets as $t where $t[price < 50]",
    "create feed X from Tickets",
    "create feed X from (Tickets as $t | News as $n) where $t[price > 20] and $n[contains 'rock']",
    "create feed X from (News | Photos) as $n where $n[title contains 'rock' or contains 'b']",
    "create feed X from CheapParis as $c where $c[not price = 7]",
    "create feed X from News as $n join last 2 days on Photos with $n[title similar window.title]",
    "create feed X from (News | Photos) as $n join last 2 items on Photos as $p "
    "with $n[title similar window.title] where $p[title contains 'rock']",
    "create feed X from (Rock | Pictures)",
]
WORDS = ["rock", "pop", "concert", "a", "b"]
texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
rows = st.tuples(st.sampled_from(["Tickets", "News", "Photos"]), st.integers(0, 60), texts)
batches = st.lists(st.lists(rows, min_size=1, max_size=5), max_size=12)


def feed(text: str) -> CreateFeed:
    statement = parse(text)
    assert isinstance(statement, CreateFeed)
    return statement


def filled(path: Path, drawn: Sequence[Sequence[tuple[str, int, str]]]) -> SmallLog:
    """Items come in the order of their times, two hours apart, and are never late."""
    store = SmallLog(path)
    for number, batch in enumerate(drawn):
        hours = -2.0 * (len(drawn) - number)
        own = [
            ticket(f"{number}-{n}", price, text, hours=hours)
            if source == "Tickets"
            else news(f"{number}-{n}", text, source=source, hours=hours)
            for n, (source, price, text) in enumerate(batch)
        ]
        arrived = NOON + timedelta(hours=hours, seconds=1)
        for sources in (("Tickets",), ("News", "Photos")):
            some = [each for each in own if each.source in sources]
            if some:
                store.put(some, arrived=arrived)
                store.items += some
    return store


def run(
    store: SmallLog,
    question: BacktestQuery,
    *,
    runner: Runner = HERE,
    since: datetime = NOON - timedelta(days=30),
    samples: int = 3,
) -> Backtest:
    view = store.view()
    tester = Backtester.prepare(question, view, since=since, until=LATER, samples=samples)
    return tester.run(runner, view, lambda _: None)


@settings(max_examples=30)
@given(batches, st.sampled_from(STATEMENTS))
def test_it_counts_what_the_naive_evaluator_counts(
    drawn: list[list[tuple[str, int, str]]], text: str
) -> None:
    with TemporaryDirectory() as path:
        store = filled(Path(path), drawn)
        question = backtest_query(feed(text), store.definitions)
        found = run(store, question)
        expected = naive(question.plan, store.items)
        matched = {source: each.matched.total() for source, each in found.sources.items()}
        assert matched == {**dict.fromkeys(found.sources, 0), **_by_source(expected)}
        own = [each for each in store.items if each.source in question.plans]
        assert found.items == len(own)
        assert {(row.source, row.id) for row in found.samples} <= expected
        assert len(found.samples) == min(3, len(expected))
        assert not list(store.folder.path.glob(".backtest-*"))


def _by_source(found: set[tuple[str, str]]) -> dict[str, int]:
    return Counter(source for source, _ in found)


@pytest.fixture
def store(tmp_path: Path) -> SmallLog:
    made = SmallLog(tmp_path)
    for day in range(10):
        hours = -24.0 * (9 - day)
        items: list[Item] = [
            ticket(f"{day}-{n}", 10 * n, "Paris" if n % 2 else "Rome", hours=hours)
            for n in range(day + 1)
        ]
        made.put(items, arrived=NOON + timedelta(hours=hours))
        made.items += items
    return made


def test_days_and_samples(store: SmallLog) -> None:
    question = backtest_query(feed(STATEMENTS[0]), store.definitions)
    found = run(store, question, since=NOON - timedelta(days=4, hours=1))
    assert list(found.by_day.values()) == [5, 5, 5, 5, 5, 0]
    assert (found.matched, found.items) == (25, 6 + 7 + 8 + 9 + 10)
    assert [row.id for row in found.samples] == ["9-4", "9-3", "9-2"]
    assert found.only_leaves == ""


def test_the_first_day_counts_from_its_moment_on(store: SmallLog) -> None:
    question = backtest_query(feed("create feed X from Tickets"), store.definitions)
    assert run(store, question, since=NOON).items == 10
    assert run(store, question, since=NOON + timedelta(seconds=1)).items == 0


def test_windows_reach_back_before_the_first_moment(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([news("p", "rock concert", source="Photos", hours=-30)], arrived=hours(-30))
    store.put([news("n", "rock concert", hours=-1)], arrived=hours(-1))
    question = backtest_query(feed(STATEMENTS[5]), store.definitions)
    found = run(store, question, since=hours(-2))
    assert (found.matched, found.items) == (1, 1)
    assert [row.id for row in found.samples] == ["n"]


def test_what_a_leaf_and_a_join_have_found_is_counted_once(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    store.put([news("p", "rock", source="Photos")], arrived=hours(0.01))
    store.put([news("n", "rock", hours=1), news("m", "rock pop", hours=1)], arrived=hours(1.01))
    question = backtest_query(feed("create feed X from (Rock | Pictures)"), store.definitions)
    assert run(store, question).matched == len({"p", "n", "m"})


@pytest.mark.parametrize(
    ("script", "statement", "reason"),
    [
        (
            "register operator big(limit int) cost 5 from 'a:b';",
            "create feed X from Tickets as $t where $t[price > 5 and big(3)]",
            "operator",
        ),
        (
            "register table A (k int key, x int) from json 'a'; "
            "register table B (k int key, y int) from json 'b';",
            "create feed X from A as $a join B as $b on k where $a[x > 5]",
            "tables",
        ),
    ],
)
def test_what_the_store_cannot_tell(
    tmp_path: Path, script: str, statement: str, reason: str
) -> None:
    store = SmallLog(
        tmp_path,
        "register stream Tickets from json 't' (price int, destination text, sold int);" + script,
    )
    source = "Tickets" if reason == "operator" else "A"
    attributes = {"price": 7} if source == "Tickets" else {"k": 1, "x": 7}
    store.put([Item("1", source, NOON, attributes)], arrived=NOON)
    found = run(store, backtest_query(feed(statement), store.definitions))
    assert reason in found.only_leaves
    assert (found.matched, found.further, found.items) == (0, 1, 1)


def test_damaged_files_are_told_and_the_rest_is_counted(store: SmallLog) -> None:
    bad = [store.put([ticket("x", 1, "Rome")], arrived=NOON) for _ in range(3)]
    store.damage(bad[0].items, b"PAR1 rubbish")
    store.damage(bad[1].segment)
    store.storage.remove(bad[2].items)
    question = backtest_query(feed(STATEMENTS[1]), store.definitions)
    found = run(store, question)
    assert found.items == len(store.items)
    assert set(found.damaged) == {each.items for each in bad}


@pytest.mark.parametrize("text", [STATEMENTS[1], STATEMENTS[7]])
def test_what_is_merged_meanwhile_is_counted_once(tmp_path: Path, text: str) -> None:
    """All files that the job was given are gone; the first merged ones are gone too."""
    drawn = [[("News", n, "rock"), ("Photos", n, "rock"), ("Tickets", n, "a")] for n in range(8)]
    store = filled(tmp_path, drawn)
    question = backtest_query(feed(text), store.definitions)
    expected = run(store, question)
    view = store.view()
    since = NOON - timedelta(days=30)
    tester = Backtester.prepare(question, view, since=since, until=LATER, samples=3)
    store.merge(fan_in=2)
    found = tester.run(HERE, view, lambda _: None)
    assert not any((store.folder.path / each.file.items).exists() for each in tester.ranges)
    assert found.sources == expected.sources
    assert [row.id for row in found.samples] == [row.id for row in expected.samples]
    assert not found.damaged


def test_merged_files_are_read_in_parts(store: SmallLog, monkeypatch: pytest.MonkeyPatch) -> None:
    question = backtest_query(feed(STATEMENTS[0]), store.definitions)
    expected = run(store, question)
    store.merge(fan_in=10)
    monkeypatch.setattr(choosing, "PART_BYTES", 500)
    found = run(store, question)
    (file,) = store.view().files()
    assert len(choosing.parts_of(ranges_since(store.view(), 0))) > 3
    assert file.rows == len(store.items)
    assert (found.sources, found.by_day) == (expected.sources, expected.by_day)


def test_trimmed_items_are_not_counted(store: SmallLog) -> None:
    store.merge(fan_in=10)
    store.sequencer.trim(50)
    question = backtest_query(feed(STATEMENTS[1]), store.definitions)
    assert run(store, question).items == len(store.items) - 50


def test_batches_that_are_not_committed_are_left_out(store: SmallLog) -> None:
    writer = LogFileWriter(store.storage, f"files-{group_of(store.schema('Tickets'))}")
    writer.write(items_to_arrow([ticket("x", 1, "Rome")], store.schema("Tickets")), {})
    assert writer.close()
    question = backtest_query(feed(STATEMENTS[1]), store.definitions)
    assert run(store, question).items == len(store.items)


def test_an_empty_store(tmp_path: Path) -> None:
    store = SmallLog(tmp_path)
    found = run(store, backtest_query(feed(STATEMENTS[0]), store.definitions))
    assert (found.items, found.matched, found.samples) == (0, 0, [])


def test_a_registered_feed_may_be_tried_otherwise(store: SmallLog) -> None:
    text = "create feed Cheap from Tickets as $t where $t[price < 20]"
    found = run(store, backtest_query(feed(text), store.definitions))
    assert found.matched == len(naive_cheap(store, 20))
    over_it = "create feed Y from Cheap"
    assert run(store, backtest_query(feed(over_it), store.definitions)).matched == len(
        naive_cheap(store, 50)
    )


def naive_cheap(store: SmallLog, limit: int) -> list[Item]:
    prices = ((each, each.attributes.get("price")) for each in store.items)
    return [each for each, price in prices if isinstance(price, int) and price < limit]


def test_what_is_wrong_is_told(store: SmallLog) -> None:
    with pytest.raises(LanguageError, match="Ticktes"):
        backtest_query(feed("create feed X from Ticktes"), store.definitions)


def test_where_it_runs(store: SmallLog, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ranges_since(store.view(), 0)
    assert "fewer than 200,000 rows" in choose_runner(files).name
    assert choose_runner(files, local=True).name == "in this process"
    assert choose_runner(files, master="local[3]").name == "on Spark, local[3]"
    monkeypatch.setattr(choosing, "ROWS_FOR_SPARK", len(store.items))
    assert choose_runner(files).name == "on Spark, local[*]"
    monkeypatch.setattr(choosing.importlib.util, "find_spec", lambda _: None)
    assert "Spark is not installed" in choose_runner(files, master="local[3]").name


@pytest.mark.integration
@pytest.mark.parametrize("text", [STATEMENTS[0], STATEMENTS[2], STATEMENTS[5], STATEMENTS[7]])
def test_spark_gives_the_same(tmp_path: Path, text: str) -> None:
    from tests.pipeline.spark_session import spark

    from headgate.pipeline.jobs.job import run_on_spark

    source = ["Tickets", "News", "Photos"]
    drawn = [
        [(source[(n * 7 + m) % 3], (n * 13 + m * 5) % 60, WORDS[(n + m) % 5]) for m in range(6)]
        for n in range(20)
    ]
    store = filled(tmp_path, drawn)
    store.damage(store.put([ticket("bad", 1, "Rome")], arrived=NOON).items)
    question = backtest_query(feed(text), store.definitions)
    here = run(store, question)
    there = run(store, question, runner=Runner("", partial(run_on_spark, session=spark())))
    assert there.matched == here.matched > 0
    assert there.by_day == here.by_day
    assert {source: each.items for source, each in there.sources.items()} == {
        source: each.items for source, each in here.sources.items()
    }
    assert [row.id for row in there.samples] == [row.id for row in here.samples]
    assert there.damaged == here.damaged


def hours(count: float) -> datetime:
    return NOON + timedelta(hours=count)
