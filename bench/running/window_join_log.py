"""The window joins as a stage of the log on Spark: items of the log in, files of the log out.

20,000 items are in a window of three months. Primary items come in ranges of equal size; each range
is one step: the resident processes read its entries, decide them and write the outputs, and the
driver commits them. The best of three ranges counts, as others use the machine too. The CPU time of
the slowest bucket says what an idle machine would do, without Spark's part (50 to 100 ms a step).

Feeds have keywords drawn by Zipf's law, as in `_many_feeds` of window_join.py. The first primary
items also go through `JoinStage`, in one thread, which must find the same feeds for the same items.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from bench import Row, Say, seconds
from bench.workloads.keywords import VOCABULARY, word
from headgate.match.item_columns import group_of, items_to_arrow
from headgate.model.atoms import Comparison, Contains, Relation, Similar, WindowAttribute
from headgate.model.duration import Duration, Unit
from headgate.model.filters import Filter
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.session import Session, start_session
from headgate.pipeline.window_join_stage import WindowJoinStage
from headgate.plan import algebra
from headgate.store.log import LogReader, Sequencer
from headgate.store.log_items import read_rows
from headgate.store.log_state import START as LOG_START
from headgate.store.log_state import LogState, Origin
from headgate.store.log_storage import FolderStorage
from headgate.store.log_writer import JOINED, LogFileWriter
from headgate.store.segment import open_segment
from headgate.windows.arrivals import Arrival
from headgate.windows.stage import JoinStage

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = Schema((Attribute("title", Type.TEXT), Attribute("category", Type.TEXT)))
SCHEMAS = {"News": SCHEMA, "Photos": SCHEMA}
WINDOW, RANGES, SAMPLE = 20_000, 3, 50
NAMES = [word(number) for number in range(VOCABULARY)]
EQUALITY = Comparison("title", Relation.EQUAL, WindowAttribute("title"))
CATEGORY = Comparison("category", Relation.EQUAL, WindowAttribute("category"))
SIMILAR = Similar("title", WindowAttribute("title"), 0.5)


def rows(*, quick: bool, say: Say) -> list[Row]:
    session = start_session("local[2]", name="bench", settings={"spark.driver.memory": "1g"})
    session.sparkContext.setLogLevel("OFF")
    try:
        found: list[Row] = []
        each = 2_000 if quick else 20_000
        say("10,000 feeds by equality, through the log")
        found += _measured(session, "title = window.title", EQUALITY, 10_000, each, 5_000, "37")
        say("100 feeds by similarity, through the log")
        similar = "title similar window.title"
        found += _measured(session, similar, SIMILAR, 100, 2 * each, 20_000, "7,752")
        if not quick:
            say("large sets of partners, through the log")
            equal = "category = window.category"
            found += _measured(session, equal, CATEGORY, 10_000, 1_000, None, "")
        return found
    finally:
        session.stop()


def _measured(
    session: Session,
    text: str,
    predicate: Filter,
    feeds: int,
    primaries: int,
    target: int | None,
    before: str,
) -> list[Row]:
    plans = _plans(predicate, feeds)
    rates: dict[int, float] = {}
    cpu_rates: dict[int, float] = {}
    today = 0.0
    for buckets in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            run = _Run(session, Path(folder), plans, buckets, exact=predicate == EQUALITY)
            rates[buckets], cpu_rates[buckets] = run.rates(primaries)
            if buckets == 2:
                today = run.check()
            run.stage.close()
    workload = f"{feeds:,} feeds, {WINDOW:,} in the window, {text}"
    known = f", {before} on an idle machine" if before else ""
    gain = rates[2] / rates[1]
    return [
        Row(
            "join through the log, two cores",
            workload,
            f"{rates[2]:,.0f} primary items/s, {rates[2] / today:,.0f} × faster",
            baseline=f"JoinStage, without the log: {today:,.0f}/s{known}",
            target="" if target is None else f"≥ {target:,}/s",
            met=None if target is None else rates[2] >= target,
        ),
        Row(
            "one core → two",
            workload,
            f"{rates[1]:,.0f} → {rates[2]:,.0f}/s, {gain:.2f} ×; by CPU time "
            f"{cpu_rates[1]:,.0f} → {cpu_rates[2]:,.0f}/s, {cpu_rates[2] / cpu_rates[1]:.2f} ×",
            target="≥ 1.7 ×",
            met=gain >= 1.7,
        ),
    ]


def _plans(predicate: Filter, feeds: int) -> dict[int, tuple[str, algebra.Plan]]:
    chance = np.random.default_rng(2026)
    weight = 1 / np.arange(1, VOCABULARY + 1)
    keywords = chance.choice(VOCABULARY, feeds, p=weight / weight.sum()).tolist()
    window = algebra.Window(Duration(3, Unit.MONTH), algebra.Source("Photos"))
    return {
        number: (
            f"F{number}",
            algebra.Join(
                f"F{number}#1",
                predicate,
                algebra.Filter(Contains("title", NAMES[keyword]), algebra.Source("News")),
                window,
            ),
        )
        for number, keyword in enumerate(keywords)
    }


@dataclass
class _Run:
    """One stage over a log of its own."""

    session: Session
    folder: Path
    plans: dict[int, tuple[str, algebra.Plan]]
    buckets: int
    exact: bool
    """Whether every other primary item has the title of an item of the window, or nearly so."""
    arrivals: list[Arrival] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = START
        self.storage = FolderStorage(self.folder)
        self.sequencer = Sequencer(self.storage, now=lambda: self.now)
        self.stage = WindowJoinStage(
            self.session, self.folder, self.folder / "plans", lateness_s=0, buckets=self.buckets
        )
        self.stage.set_plans(self.plans, SCHEMAS, LogState(arrived_us=-1))
        chance = np.random.default_rng([2026, 1, WINDOW])
        weight = 1 / np.arange(1, VOCABULARY + 1)
        self._weight = weight / weight.sum()
        self.window = chance.choice(VOCABULARY, (WINDOW, 10), p=self._weight)
        self._commit("Photos", self.window)
        self._step()

    def rates(self, primaries: int) -> tuple[float, float]:
        """Primary items per second of the fastest range, and by the CPU time of its buckets."""
        self._commit("News", self._primary_titles(SAMPLE, 0))
        self._step()
        best_s = cpu_s = float("inf")
        for number in range(RANGES):
            self._commit("News", self._primary_titles(primaries, number + 1))
            best_s = min(best_s, seconds(self._step))
            cpu_s = min(cpu_s, max(self.stage.counters.cpu_s))
        return primaries / best_s, primaries / cpu_s

    def check(self) -> float:
        """JoinStage finds the same for the first primary items; how many it has per second."""
        stage = JoinStage(dict(self.plans.values()), SCHEMAS, lateness_s=0)
        photos, news = self.arrivals[:WINDOW], self.arrivals[WINDOW : WINDOW + SAMPLE]
        stage.push(photos)
        stage.advance(photos[-1].arrived)
        stage.push(news)
        outputs: list[tuple[str, str]] = []
        took_s = seconds(
            lambda: outputs.extend(
                (feed, each.item.id)
                for each in stage.advance(news[-1].arrived)
                for feed in each.feeds
            )
        )
        ids = {each.item.id for each in news}
        names = {number: name for number, (name, _) in self.plans.items()}
        logged = [(names[feed], id_) for feed, id_ in self._logged() if id_ in ids]
        assert sorted(logged) == sorted(outputs), "the log has something else than JoinStage"
        assert outputs, "there is something to find"
        return SAMPLE / took_s

    def _logged(self) -> list[tuple[int, str]]:
        reader = LogReader(self.storage)
        reader.refresh()
        joined = [each for each in reader.state.files if each.group.startswith(JOINED)]
        found: list[tuple[int, str]] = []
        for file in joined[: self.buckets]:  # the sample is in the first outputs
            ids = read_rows(self.storage, file, None).column("@id").to_pylist()
            feeds, places = open_segment(self.storage.map(file.segment)).feeds.pairs()
            found += [(feed, ids[row]) for feed, row in zip(feeds, places, strict=True)]
        return found

    def _primary_titles(self, count: int, seed: int) -> np.ndarray:
        chance = np.random.default_rng([2026, 7, seed])
        drawn = chance.choice(VOCABULARY, (count, 10), p=self._weight)
        drawn[::2] = self.window[chance.integers(0, WINDOW, len(drawn[::2]))]
        if not self.exact:
            drawn[::2, 0] = chance.integers(0, VOCABULARY, len(drawn[::2]))
        return drawn

    def _commit(self, source: str, titles: np.ndarray) -> None:
        first = len(self.arrivals)
        items = [self._item(source, first + at, words) for at, words in enumerate(titles.tolist())]
        writer = LogFileWriter(self.storage, f"files-{group_of(SCHEMA)}")
        writer.write(items_to_arrow(items, SCHEMA), {})
        self.now = items[-1].time
        self.sequencer.commit(Origin("files", "e", first), writer.close())
        self.arrivals += [Arrival(item, self.now) for item in items]

    def _item(self, source: str, number: int, words: Sequence[int]) -> Item:
        title = " ".join(NAMES[each] for each in words)
        time = START + timedelta(seconds=number + 1)
        return Item(f"{number}", source, time, {"title": title, "category": f"{words[-1]}"})

    def _step(self) -> None:
        state = self.sequencer.state
        start = state.ends.get("windows", LOG_START)
        files = self.stage.step(start, state.point)
        self.sequencer.commit(Origin("windows", start=start, end=state.point), files)
