"""Window joins behind the store: whatever the batches and crashes, each output once and right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.catalog.catalog import Catalog
from headgate.deliver.outbox import Outbox
from headgate.deliver.transform import Transformer
from headgate.language import parse_script
from headgate.match.item_columns import items_to_arrow
from headgate.model.items import Item
from headgate.model.schema import Schema
from headgate.pipeline import window_join_runner as join_runner
from headgate.pipeline.batch_stage import batch_task, match_and_store
from headgate.pipeline.deliveries import Dispatcher
from headgate.pipeline.journal import BatchJournal
from headgate.pipeline.operator_stage import OperatorLedger
from headgate.pipeline.planner import Planner
from headgate.pipeline.run_batch import BatchRunner, Materialiser
from headgate.pipeline.run_context import RunContext
from headgate.pipeline.window_join_runner import Plans, WindowJoinLayers, WindowJoinRunner
from headgate.plan.algebra import Plan
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all
from headgate.store.data_folder import DataFolder
from headgate.store.item_files import stored_files
from headgate.windows.progress import read_progress
from headgate.windows.stage import JoinStage

SCRIPT = """
register stream P from json 'p' (k int);
register stream W from json 'w' (k int);
create feed J from P as $p join last 1 hour on W with $p[k = window.k];
subscribe to J output console for 30 days;
"""


class Process:
    """What one process of a run has: it may be left at any moment, and the next one goes on."""

    def __init__(self, folder: DataFolder, catalog: Catalog) -> None:
        self.folder, self.catalog = folder, catalog
        self.planner = Planner(catalog, folder)
        self.planner.update()
        self.outbox = Outbox.open(folder.outbox)
        self.context = RunContext(
            folder=folder,
            catalog=catalog,
            planner=self.planner,
            journal=BatchJournal(folder.batches, decided=read_progress(folder.joins).decided),
            outbox=self.outbox,
            ledger=OperatorLedger(folder.operators),
        )
        self.transformer = Transformer()
        self.runner = BatchRunner(
            self.context,
            Dispatcher(catalog, self.outbox),
            Materialiser(self.transformer, folder.path),
        )
        self.joins = WindowJoinRunner(self.context, self.runner, lateness_s=0.0)

    def batch(self, number: int, items: Sequence[Item]) -> None:
        """As run_batch.run does it, but for Spark."""
        planned, now = self.planner.current, datetime.now(UTC)
        record = self.context.journal.begin("g", number, planned.path.name, now)
        if not record.finished:
            rows = [items_to_arrow(items, planned.schemas["P"])]
            stored = match_and_store(rows, batch_task(self.folder, record), "0")
            assert stored is not None
            task = batch_task(self.folder, record)
            parts = self.runner.dispatch([stored], task, planned, now)
            self.context.announce(record.arrived, parts)
        self.context.journal.finish(record)

    def settle(self) -> None:
        """A lot that was cut off is ended by the first step, and holds up what came after it."""
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
        self.outbox.close()
        self.transformer.close()


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
@settings(deadline=None, max_examples=25)
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
        expected = _expected(items)
        with process.outbox.database.reading() as connection:
            found = connection.execute("SELECT item FROM deliveries").fetchall()
        assert Counter(row[0].decode() for row in found) == Counter(expected)
        assert _stored_outputs(folder) == Counter(expected)
        assert process.context.journal.pending() == set()
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
@settings(deadline=None, max_examples=25)
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
    for file in stored_files(folder.store):
        if file.group.startswith("joined."):
            for row in pq.read_table(file.path, partitioning=None).to_pylist():
                found.update((feed, row["@id"]) for feed in row["@feeds"])
    return found


def _die(process: Process, kind: str) -> None:
    """At once, or in the middle of a lot: before or after its progress is written."""
    if kind != "die":
        write = join_runner.write_progress

        def cut(path: Path, progress: join_runner.JoinProgress) -> None:
            if kind == "die after":
                write(path, progress)
            raise Cut

        join_runner.write_progress = cut
        try:
            process.joins.step()
        except Cut:
            pass
        finally:
            join_runner.write_progress = write
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
    for file in stored_files(folder.store):
        if file.group.startswith("joined."):
            found.update(pq.read_table(file.path, partitioning=None)["@id"].to_pylist())
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


# Which joins are made anew when joins come and go: few, and O(log n) times each.

COUNT = 100


def plans() -> tuple[dict[str, Plan], dict[str, Schema]]:
    from headgate.language.schemas import schemas_of

    with Catalog.open("sqlite://") as catalog:
        catalog.apply(parse_script("register stream P from json 'p' (k int);"))
        catalog.apply(parse_script("register stream W from json 'w' (k int);"))
        names = [f"J{n}" for n in range(COUNT)]
        joins = (
            f"create feed {name} from P as $p join last {n + 1} hours on W with $p[k = window.k];"
            for n, name in enumerate(names)
        )
        catalog.apply(parse_script("".join(joins)))
        definitions = catalog.definitions()
        schemas = {name: next(iter(schemas_of(name, definitions))) for name in ("P", "W")}
        return dict(normalize_all(compose_all(names, definitions))), schemas


def test_each_join_is_made_a_few_times_only() -> None:
    every, schemas = plans()
    made: Counter[str] = Counter()

    def make(own: Plans) -> JoinStage:
        made.update(list(own))
        return JoinStage(own, schemas)

    layers = WindowJoinLayers(make)
    known: dict[str, Plan] = {}
    for name, plan in every.items():
        known = {**known, name: plan}
        layers.follow(known)
        layers.follow(known)
        assert layers.sources == {"P", "W"}
    assert set(made) == set(every)
    # One after the other would be 100 times for the first, 50 times for all on average.
    assert max(made.values()) < 40
    assert made.total() < 12 * COUNT
    made.clear()
    layers.follow({**known, "Again": known["J0"]})
    assert made["Again"] == 1
    assert made.total() < COUNT / 8
    few = dict(list(known.items())[:10])
    layers.follow(few)
    assert set(few) <= set(made)
    layers.follow({})
    assert layers.sources == frozenset()
    assert layers.next_decision() is None
