"""A run: everything that is registered, read, matched and delivered, until it is stopped.

    thread     does, again and again
    control    what has changed in the catalog? new snapshots, lists of sources, queries
    queries    Spark's: a micro-batch of a group (queries.py, run_batch.py)
    join       what the window joins can decide (join_runner.py)
    tables     which changes of tables their joins take next (table_join_runner.py)
    deliver    what is due in the outbox (deliver/)
    warm       a small task for each worker (warm.py)
    tidy       ends subscriptions whose time is over, and forgets what is old

One process runs a folder: it holds the outbox's lock. Killed at any moment, the next one goes on
where it was.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from headgate.acquire.rejected import RejectedCounts, remove_rejected
from headgate.catalog.catalog import Catalog
from headgate.deliver.deliverer import Deliverer
from headgate.deliver.outbox import Outbox
from headgate.deliver.records import PushSubscription, Transport
from headgate.deliver.settings import DeliverySettings
from headgate.deliver.transform import Transformer
from headgate.language.statements import MaterializeFeed
from headgate.pipeline.batch_stage import Stored
from headgate.pipeline.beside import Beside
from headgate.pipeline.deliveries import Dispatcher
from headgate.pipeline.groups import Grouped, grouped
from headgate.pipeline.join_runner import JoinRunner
from headgate.pipeline.journal import Journal
from headgate.pipeline.materialise import Materialiser
from headgate.pipeline.meters import Meters
from headgate.pipeline.operator_ledger import OperatorLedger
from headgate.pipeline.operator_stage import RULES, OperatorRules
from headgate.pipeline.planner import Merged, Planned, Planner
from headgate.pipeline.queries import Queries
from headgate.pipeline.run_batch import BatchRunner
from headgate.pipeline.session import is_alive
from headgate.pipeline.table_join_query import TableJoinQuery, has_state
from headgate.pipeline.table_join_runner import TableJoinRunner
from headgate.pipeline.warm import EVERY_S, warm
from headgate.pipeline.write_plans import write_plans_on
from headgate.store.data_folder import DataFolder
from headgate.store.item_files import remove_before, remove_messages
from headgate.store.maintenance import merge_days
from headgate.tables.join_progress import read_progress
from headgate.tables.result_tests import ResultTests
from headgate.tables.table_lots import lots_decided
from headgate.windows.stage import LATENESS_DEFAULT_S

CONTROL_S = 0.25
DELIVER_S = 0.25
JOIN_S = 0.5
WEIGH_S = 60.0
"""How often it is counted who wants what: feeds are fetched accordingly."""
TIDY_S = 3600.0


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What the operator decides about a run."""

    folder: Path
    deliver: DeliverySettings
    base: Path = field(default_factory=Path)
    """Files of sources are looked for below this folder."""
    options: Mapping[str, str] = field(default_factory=dict)
    """For the sources: allow, budget, interval_min_s, … (pipeline/sources/)."""
    store_days: int = 30
    lateness_s: float = LATENESS_DEFAULT_S
    """How long window joins wait for items that come late (windows/stage.py)."""
    operators: OperatorRules = RULES


class Run:
    """`start`, then `stop`; everything else may be called by any thread in between.

    `streams` are streaming DataFrames of Spark's, by the name of the registered source whose items
    they are, with the columns of `match/item_columns.py`. The source is then not read otherwise.
    """

    def __init__(
        self,
        catalog: Catalog,
        session: SparkSession,
        settings: RunSettings,
        *,
        note: Callable[[str], None] = lambda _: None,
        streams: Mapping[str, DataFrame] | None = None,
    ) -> None:
        self.catalog, self.session, self.settings = catalog, session, settings
        self.meters = Meters()
        self.folder = DataFolder(settings.folder.absolute()).make()
        self.errors: dict[str, str] = {}
        """What last went wrong in a thread of the run, by its name."""
        self._note = note
        self._stop, self._put = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        with ExitStack() as opened:
            self._open(opened, streams or {})
            self._opened = opened.pop_all()

    def _open(self, opened: ExitStack, streams: Mapping[str, DataFrame]) -> None:
        """The outbox first: it is locked, so that no other process runs the same folder."""
        catalog, settings, note = self.catalog, self.settings, self._note
        self.outbox = opened.enter_context(Outbox.open(self.folder.outbox))
        transformer = opened.enter_context(Transformer(settings.deliver.transform))
        deliverer = Deliverer(self.outbox, settings.deliver, self._find)
        self.deliverer = opened.enter_context(deliverer)
        decided = read_progress(self.folder.joins).decided
        decided = max(decided, lots_decided(self.folder.tables))
        self.journal = Journal(self.folder.batches, decided=decided)
        self._planner = Planner(
            catalog,
            self.folder,
            note=note,
            allowed=settings.operators.allowed,
            write=partial(write_plans_on, self.session),
        )
        self._merging: Beside[Merged] | None = None
        self.operators = OperatorLedger(self.folder.operators)
        opened.callback(self.operators.write)
        self.grouped = Grouped()
        self.rejected = RejectedCounts(self.folder.sources)
        self._weights: dict[str, float] = {}
        self._weigh_at = 0.0
        self._subscribed: Sequence[str] = ()
        self._subscribed_at = -1, 0.0
        self.runner = BatchRunner(
            folder=self.folder,
            journal=self.journal,
            dispatcher=Dispatcher(catalog, self.outbox),
            materialiser=Materialiser(transformer, settings.deliver.stylesheet_folder),
            meters=self.meters,
            planned=lambda: self.planned,
            put=self._put.set,
            ended=lambda record, parts: self._ended(record.arrived, parts),
            operators=settings.operators,
            reported=self.operators.add,
        )
        self.joins = JoinRunner(
            self.runner, lambda: self.planned, lateness_s=settings.lateness_s, note=note
        )
        self.tables = TableJoinRunner(
            self.runner,
            lambda: self.planned,
            wanted=self._wanted,
            tests=ResultTests(self._planner.plans_of),
            has_state=has_state(self.folder),
            note=note,
        )
        self.table_query = TableJoinQuery(self.session, self.folder, self.tables.finish)
        self.queries = Queries(
            session=self.session,
            folder=self.folder,
            base=settings.base,
            options=settings.options,
            run_batch=self.runner.run,
            streams=streams,
            operators=settings.operators,
        )

    @property
    def planned(self) -> Planned:
        return self._planner.planned

    def start(self) -> None:
        """Returns when everything is planned and the queries have begun."""
        self._planner.update()
        self._note("starting queries")
        # Workers start while the queries do.
        self._repeat("warm", self._warm, partial(self._stop.wait, EVERY_S))
        self._look()
        self._repeat("control", self._control, partial(self._stop.wait, CONTROL_S))
        self._repeat("tidy", self._tidy, partial(self._stop.wait, TIDY_S))
        self._repeat("join", self.joins.step, self._wait_for_items)
        self._repeat("tables", self._join_tables, partial(self.tables.wake.wait, JOIN_S))
        self._repeat("deliver", self._deliver, partial(self._put.wait, DELIVER_S))

    def stop(self) -> None:
        """What is being done is ended or left for the next run; nothing is lost."""
        self._stop.set()
        self._put.set()
        self.joins.wake.set()
        self.tables.wake.set()
        self.deliverer.stop()
        self.table_query.stop()
        self.queries.stop()
        for thread in self._threads:
            thread.join()
        self._opened.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _repeat(self, name: str, work: Callable[[], None], wait: Callable[[], object]) -> None:
        """A thread that does this again and again; what goes wrong is told, and tried again."""

        def loop() -> None:
            while not self._stop.is_set():
                try:
                    work()
                    self.errors.pop(name, None)
                except Exception as error:  # whatever it is, the run goes on
                    if not self._stop.is_set():
                        self.errors[name] = f"{type(error).__name__}: {error}"
                wait()

        thread = threading.Thread(target=loop, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    @property
    def has_lost_spark(self) -> bool:
        """Whether Spark's JVM has ended by itself, or was killed: then nothing is read any more."""
        return not is_alive(self.session)

    def _control(self) -> None:
        before = self.planned
        self._planner.update()
        if self._merging is not None and self._merging.is_done:
            self._merge_beside()
        if self.planned is not before or time.monotonic() >= self._weigh_at:
            self._look()
            self._merge_beside()
        else:
            self.queries.look(self.grouped.groups)

    def _merge_beside(self) -> None:
        """Layers are merged in a thread of their own, and taken over when they are ready."""
        if self._merging is None and (task := self._planner.to_merge()) is not None:
            self._merging = Beside(task.run)
        elif self._merging is not None and self._merging.is_done:
            merging, self._merging = self._merging, None
            self._planner.adopt(merging.result())

    def _look(self) -> None:
        planned = self.planned
        self.operators.follow(planned.snapshot.operators)
        if time.monotonic() >= self._weigh_at:
            self._weigh_at = time.monotonic() + WEIGH_S
            self._weights = {name: 1.0 + count for name, count in self.catalog.demand().items()}
        sources = {n: each for n, each in planned.sources.items() if n not in self.queries.streams}
        self.grouped = grouped(sources, planned.schemas, weights=self._weights)
        self.queries.look(self.grouped.groups)

    def _deliver(self) -> None:
        self._put.clear()
        report = self.deliverer.run_due(datetime.now(UTC))
        if report.sent or report.failed or report.dead:
            self.meters.add(sent=report.sent, failed=report.failed + report.dead)
        if report.unfinished:
            self._put.set()

    def _ended(self, arrived: datetime, parts: Sequence[Stored]) -> None:
        self.joins.ended(arrived, parts)
        self.tables.ended(arrived, parts)

    def _join_tables(self) -> None:
        self.tables.step()
        if self.tables.is_needed:
            self.table_query.look()

    def _wanted(self) -> Sequence[str]:
        """Feeds that somebody is subscribed to, and those that become sources: the same object
        while nothing has changed in the catalog, and for no longer than a while."""
        version, now = self.catalog.version(), time.monotonic()
        if version != self._subscribed_at[0] or now > self._subscribed_at[1] + WEIGH_S:
            sources = self.planned.sources.items()
            made = [name for name, each in sources if isinstance(each, MaterializeFeed)]
            self._subscribed = [*self.catalog.subscribed(), *made]
            self._subscribed_at = version, now
        return self._subscribed

    def _wait_for_items(self) -> None:
        self.joins.wake.wait(self.joins.wait_s(JOIN_S))

    def _warm(self) -> None:
        planned = self.planned
        warm(self.session, str(planned.path), dict(planned.schemas))

    def _tidy(self) -> None:
        now = datetime.now(UTC)
        self.catalog.expire(now)
        self.deliverer.prune(now=now)
        self.operators.write()
        oldest = now - timedelta(days=self.settings.store_days)
        self._tidy_store(oldest.date())
        remove_rejected(self.folder.sources.glob("*"), before_s=oldest.timestamp())

    def _tidy_store(self, oldest: date) -> None:
        remove_messages(self.folder.messages, oldest)
        with self.tables.files:
            if not self.tables.reads_history:
                remove_before(self.folder.store, oldest)
                decided = min(self.joins.decided, self.tables.decided)
                merge_days(self.folder.store, before=decided.date())

    def _find(self, ids: Iterable[int]) -> dict[int, PushSubscription]:
        return {
            id_: PushSubscription(
                id=id_,
                version=each.version,
                feed=each.feed,
                kind=Transport(each.output_kind.value),
                target=each.target,
                stylesheet=each.stylesheet,
                period_s=each.period_s,
            )
            for id_, each in self.catalog.subscriptions_of_ids(list(ids)).items()
        }
