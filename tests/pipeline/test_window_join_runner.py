"""Window joins behind the log: whatever the batches and crashes, each output once and right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from bench.running.logged import logged_rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.catalog.catalog import Catalog
from headgate.deliver.item_encoding import decode_annotations, json_of_item
from headgate.language.parse import parse_script
from headgate.match.item_columns import group_of, items_to_arrow
from headgate.model.items import Item
from headgate.pipeline import window_join_stage
from headgate.pipeline.batch_stage import BatchTask, match_and_write
from headgate.pipeline.operator_stage import OperatorLedger
from headgate.pipeline.planner import Planner
from headgate.pipeline.run_context import RunContext
from headgate.pipeline.run_log import RunLog
from headgate.pipeline.window_join_runner import WindowJoinRunner
from headgate.store.data_folder import DataFolder
from headgate.store.log_state import Origin
from headgate.store.log_storage import FolderStorage
from headgate.windows.bucket_process import ProcessSettings
from headgate.windows.join_bucket import AdvanceAnswer, AdvanceRequest, JoinBucket
from headgate.windows.joined_writer import ItemJson

SCRIPT = """
register stream P from json 'p' (k int);
register stream W from json 'w' (k int);
create feed J from P as $p join last 1 hour on W with $p[k = window.k];
subscribe to J output console for 30 days;
"""


class InThisProcess:
    """A session whose jobs run here."""

    def __init__(self) -> None:
        self.sparkContext = self
        self.defaultParallelism, self.master = 2, "local[2]"

    def setLocalProperty(self, name: str, value: str) -> None:
        """There is no scheduler."""

    def parallelize(self, values: Iterable[int], parts: int) -> Partitions:
        assert parts > 0
        return Partitions([[value] for value in values])


@dataclass
class Partitions:
    parts: list[list[object]]

    def mapPartitions(self, work: Callable[[Iterable[object]], Iterable[object]]) -> Partitions:
        return Partitions([list(work(part)) for part in self.parts])

    def collect(self) -> list[object]:
        return [value for part in self.parts for value in part]


@pytest.fixture(autouse=True)
def buckets_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets have no processes of their own (tests/pipeline/test_window_join_stage.py has)."""
    buckets: dict[tuple[str, int], JoinBucket] = {}

    def ask(settings: ProcessSettings, request: AdvanceRequest) -> AdvanceAnswer:
        key = settings.run, settings.bucket.bucket
        if key not in buckets:
            storage = FolderStorage(Path(settings.root))
            json_form = ItemJson(json_of_item, decode_annotations)
            buckets[key] = JoinBucket(storage, settings.bucket, json_form)
        return buckets[key].advance(request)

    monkeypatch.setattr(window_join_stage, "ask", ask)


class Process:
    """What one process of a run has: it may be left at any moment, and the next one goes on."""

    def __init__(self, folder: DataFolder, catalog: Catalog) -> None:
        self.folder, self.catalog = folder, catalog
        self.planner = Planner(catalog, folder)
        self.planner.update()
        self.context = RunContext(
            folder=folder,
            catalog=catalog,
            planner=self.planner,
            log=RunLog(folder.storage),
            ledger=OperatorLedger(folder.operators),
        )
        self.joins = WindowJoinRunner(self.context, InThisProcess(), lateness_s=0.0)
        self.joins.follow_plans()

    def batch(self, number: int, items: Sequence[Item]) -> None:
        """As run_batch.run does it, but for Spark."""
        planned = self.planner.current
        rows = [items_to_arrow(items, planned.schemas["P"])]
        group = f"files-{group_of(planned.schemas['P'])}"
        summary = match_and_write(rows, BatchTask(self.folder, group, planned.path.name))
        assert summary is not None
        self.context.log.commit(Origin("files", "e", number), summary.files)

    def settle(self) -> None:
        """Decide all that has arrived: joins wait for time to pass, too."""
        for _ in range(3):
            self.joins.step()

    def change(self, statement: str) -> None:
        """What came before it is decided before it, and what comes after it after it."""
        self.settle()
        self.catalog.apply(parse_script(statement))
        self.planner.update()
        self.planner.merge()
        self.joins.step()

    def leave(self) -> None:
        self.joins.close()


class Cut(Exception):
    """The process dies here."""


Steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("batch"),
            st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=4),
        ),
        st.tuples(st.sampled_from(["step", "die", "die before", "die after"]), st.just([])),
    ),
    max_size=14,
)


@given(Steps)
@settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_histories(steps: list[tuple[str, list[tuple[bool, int]]]]) -> None:
    with TemporaryDirectory() as home, Catalog.open("sqlite://") as catalog:
        catalog.apply(parse_script(SCRIPT))
        folder = DataFolder(Path(home)).make()
        process = Process(folder, catalog)
        number, items = 0, []
        for kind, rows in steps:
            if kind == "batch":
                moment = datetime.now(UTC)
                fresh = [
                    Item(f"{number}-{at}", "P" if primary else "W", moment, {"k": k})
                    for at, (primary, k) in enumerate(rows)
                ]
                process.batch(number, fresh)
                items.append(fresh)
                number += 1
            elif kind == "step":
                process.joins.step()
            else:
                _die(process, kind)
                process = Process(folder, catalog)
        process.settle()
        assert _stored_outputs(folder) == Counter(_expected(items))
        process.leave()


Changes = st.lists(
    st.one_of(
        st.tuples(
            st.just("batch"),
            st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=4),
        ),
        st.tuples(st.sampled_from(["create", "create", "drop"]), st.integers(0, 11)),
        st.tuples(st.sampled_from(["step", "die", "die before", "die after"]), st.just(0)),
    ),
    max_size=20,
)


@given(Changes)
@settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_joins_that_come_and_go(steps: list[tuple[str, list[tuple[bool, int]] | int]]) -> None:
    """A join decides on what arrives while it is registered, whatever layers there are."""
    with TemporaryDirectory() as home, Catalog.open("sqlite://") as catalog:
        catalog.apply(parse_script(SCRIPT.partition("create")[0]))
        folder = DataFolder(Path(home)).make()
        process = Process(folder, catalog)
        number, keys = 0, set[int]()
        living: dict[int, int] = {}
        expected: Counter[tuple[int, str]] = Counter()
        for kind, more in steps:
            if isinstance(more, list):
                moment = datetime.now(UTC)
                rows = [(f"{number}-{at}", *each) for at, each in enumerate(more)]
                process.batch(
                    number,
                    [Item(id_, "P" if own else "W", moment, {"k": k}) for id_, own, k in rows],
                )
                number += 1
                keys |= {k for _, is_primary, k in rows if not is_primary}
                for bound, feed in living.items():
                    found = [id_ for id_, own, k in rows if own and k in keys and k >= bound % 3]
                    expected.update((feed, id_) for id_ in found)
            elif kind == "create" and more not in living:
                text = f"create feed J{more} from P as $p join last 1 hour on W "
                process.change(f"{text} with $p[k = window.k] where $p[k >= {more % 3}];")
                living[more] = catalog.definitions().number_of(f"J{more}")
            elif kind == "drop" and more in living:
                process.change(f"drop feed J{more};")
                del living[more]
            elif kind == "step":
                process.joins.step()
            elif kind.startswith("die"):
                _die(process, kind)
                process = Process(folder, catalog)
        process.settle()
        assert _stored_pairs(folder) == expected
        process.leave()


def _stored_pairs(folder: DataFolder) -> Counter[tuple[int, str]]:
    found: Counter[tuple[int, str]] = Counter()
    for row in logged_rows(folder.path):
        if row.group.startswith("joined."):
            found.update((feed, row.id) for feed in row.feeds)
    return found


def _die(process: Process, kind: str) -> None:
    """At once, or in the middle of a step: before or after its outputs are committed."""
    if kind != "die":
        commit = process.context.log.commit

        def cut(*arguments: object, **named: object) -> None:
            if kind == "die after":
                commit(*arguments, **named)
            raise Cut

        process.context.log.commit = cut
        with suppress(Cut):
            process.joins.step()
    process.leave()


def _expected(batches: list[list[Item]]) -> list[str]:
    """Items of a batch arrive at one moment: a primary sees all of its batch and those before."""
    keys: set[object] = set()
    found: list[str] = []
    for batch in batches:
        keys |= {each.attributes["k"] for each in batch if each.source == "W"}
        found += [each.id for each in batch if each.source == "P" and each.attributes["k"] in keys]
    return found


def _stored_outputs(folder: DataFolder) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in logged_rows(folder.path):
        if row.group.startswith("joined."):
            found[row.id] += 1
    return found


def test_a_new_join_sees_its_window_but_decides_only_on_what_comes() -> None:
    with TemporaryDirectory() as home, Catalog.open("sqlite://") as catalog:
        catalog.apply(parse_script(SCRIPT.partition("create")[0]))
        folder = DataFolder(Path(home)).make()
        process = Process(folder, catalog)
        past = datetime.now(UTC) - timedelta(minutes=1)
        process.batch(0, [Item("w", "W", past, {"k": 1}), Item("old", "P", past, {"k": 1})])
        process.joins.step()
        catalog.apply(parse_script("create" + SCRIPT.partition("create")[2]))
        process.planner.update()
        process.joins.step()
        process.batch(1, [Item("new", "P", datetime.now(UTC), {"k": 1})])
        process.joins.step()
        assert _stored_outputs(folder) == Counter({"new": 1})
        process.leave()
