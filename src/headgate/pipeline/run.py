"""A run: reads, matches and delivers everything that is registered, until it is stopped.

    thread     repeats
    control    follow the catalog: new snapshots, source lists, queries
    queries    Spark's own threads: a micro-batch of a group (queries.py, run_batch.py)
    windows    decide what the window joins can decide (window_join_runner.py)
    tables     make the next change batch for the table joins (table_join_runner.py)
    deliver    send what is due in the outbox (deliver/)
    warm       a small task for each worker (warm_workers.py)
    tidy       expire subscriptions, prune the outbox, merge and remove old files

One process runs a folder: it holds the outbox's lock. A process that is killed at any instant loses
nothing; the next one resumes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from headgate.acquire.rejected import RejectedCounts, remove_rejected
from headgate.catalog.catalog import Catalog
from headgate.deliver.deliverer import Deliverer
from headgate.deliver.outbox import Outbox
from headgate.deliver.records import PushSubscription, Transport
from headgate.deliver.transform import Transformer
from headgate.pipeline.deliveries import Dispatcher
from headgate.pipeline.journal import BatchJournal
from headgate.pipeline.operator_stage import OperatorLedger
from headgate.pipeline.planner import BackgroundTask, CurrentPlans, MergedLayers, Planner
from headgate.pipeline.queries import Queries
from headgate.pipeline.run_batch import BatchRunner, Materialiser
from headgate.pipeline.run_context import RunContext, RunSettings
from headgate.pipeline.session import is_alive
from headgate.pipeline.source_groups import SourceGroups, group_sources
from headgate.pipeline.table_join_query import TableJoinQuery, has_state
from headgate.pipeline.table_join_runner import TableJoinRunner
from headgate.pipeline.warm_workers import EVERY_S, warm
from headgate.pipeline.window_join_runner import WindowJoinRunner
from headgate.pipeline.write_plans import write_plans_on
from headgate.store.data_folder import DataFolder
from headgate.store.maintenance import merge_days, remove_before, remove_messages
from headgate.tables.change_batches import changes_complete_until
from headgate.tables.results import ResidualFilters
from headgate.windows.progress import read_progress

CONTROL_S = 0.25
DELIVER_S = 0.25
JOIN_S = 0.5
WEIGH_S = 60.0
"""How often the demand for each source is counted; feeds are fetched accordingly."""
TIDY_S = 3600.0


class Run:
    """`start`, then `stop`; everything else may be called by any thread in between.

    `streams` are streaming DataFrames by the name of the registered source whose items they carry,
    with the columns of `match/item_columns.py`. Such a source is not read in any other way.
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
        self.folder = DataFolder(settings.folder.absolute()).make()
        self.errors: dict[str, str] = {}
        """The last error of each thread of the run that does not work at the moment."""
        self._threads: list[threading.Thread] = []
        self._merging: BackgroundTask[MergedLayers] | None = None
        self._weights: dict[str, float] = {}
        self._weigh_at = 0.0
        self.source_groups = SourceGroups()
        self.rejected = RejectedCounts(self.folder.sources)
        with ExitStack() as opened:
            self._compose(opened, note, streams or {})
            self._opened = opened.pop_all()

    def _compose(
        self, opened: ExitStack, note: Callable[[str], None], streams: Mapping[str, DataFrame]
    ) -> None:
        """The one place where the stages of a run are put together. The outbox comes first: it is
        locked, so that no other process runs the same folder."""
        settings, folder = self.settings, self.folder
        outbox = opened.enter_context(Outbox.open(folder.outbox))
        transformer = opened.enter_context(Transformer(settings.deliver.transform))
        deliverer = Deliverer(outbox, settings.deliver, self._subscriptions)
        self.deliverer = opened.enter_context(deliverer)
        self.ledger = OperatorLedger(folder.operators)
        opened.callback(self.ledger.write)
        planner = Planner(
            self.catalog,
            folder,
            note=note,
            allowed=settings.operators.allowed,
            write=partial(write_plans_on, self.session),
            factorize=settings.methods.factorize,
        )
        decided = max(read_progress(folder.joins).decided, changes_complete_until(folder.tables))
        self.context = context = RunContext(
            folder=folder,
            catalog=self.catalog,
            planner=planner,
            journal=BatchJournal(folder.batches, decided=decided),
            outbox=outbox,
            ledger=self.ledger,
            operators=settings.operator_rules,
            note=note,
        )
        self.meters, self.outbox = context.meters, outbox
        materialiser = Materialiser(transformer, settings.deliver.stylesheet_folder)
        self.batches = BatchRunner(context, Dispatcher(self.catalog, outbox), materialiser)
        self.windows = WindowJoinRunner(context, self.batches, lateness_s=settings.lateness_s)
        self.tables = TableJoinRunner(
            context,
            self.batches,
            tests=ResidualFilters(planner.plans_of),
            has_state=has_state(folder),
        )
        self.table_query = TableJoinQuery(
            self.session, folder, self.tables.finish, scheme=settings.methods.scheme
        )
        self.queries = Queries(
            session=self.session,
            folder=folder,
            base=settings.base,
            options=settings.options,
            run_batch=self.batches.run,
            streams=streams,
            operators=settings.operator_rules,
        )

    @property
    def plans(self) -> CurrentPlans:
        return self.context.plans

    def start(self) -> None:
        """Returns when everything is planned and the queries have started."""
        context, stopping = self.context, self.context.stopping
        context.planner.update()
        # Layers of an earlier run that were factorised by another method are planned again.
        self._merge_layers()
        context.note("starting queries")
        # Workers start while the queries do.
        self._repeat("warm", self._warm, partial(stopping.wait, EVERY_S))
        self._reconcile()
        self._repeat("control", self._control, partial(stopping.wait, CONTROL_S))
        self._repeat("tidy", self._tidy, partial(stopping.wait, TIDY_S))
        self._repeat("windows", self.windows.step, self._wait_for_items)
        self._repeat("tables", self._join_tables, partial(self.tables.wake.wait, JOIN_S))
        self._repeat("deliver", self._deliver, partial(context.outbox_filled.wait, DELIVER_S))

    def stop(self) -> None:
        """Work in progress is finished or left for the next run; nothing is lost."""
        self.context.stopping.set()
        self.context.outbox_filled.set()
        self.windows.wake.set()
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
        """A thread that repeats this work. An error is kept in `errors`, and the work repeated."""
        stopping = self.context.stopping

        def loop() -> None:
            while not stopping.is_set():
                try:
                    work()
                    self.errors.pop(name, None)
                except Exception as error:  # whatever it is, the run goes on
                    if not stopping.is_set():
                        self.errors[name] = f"{type(error).__name__}: {error}"
                wait()

        thread = threading.Thread(target=loop, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    @property
    def has_lost_spark(self) -> bool:
        """Whether Spark's JVM has ended or was killed: then nothing is read any more."""
        return not is_alive(self.session)

    def _control(self) -> None:
        before = self.plans
        self.context.planner.update()
        if self._merging is not None and self._merging.is_done:
            self._merge_layers()
        if self.plans is not before or time.monotonic() >= self._weigh_at:
            self._reconcile()
            self._merge_layers()
        else:
            self.queries.reconcile(self.source_groups.groups)

    def _merge_layers(self) -> None:
        """Layers are merged in a thread of their own, and adopted when they are ready."""
        planner = self.context.planner
        if self._merging is None and (merge := planner.to_merge()) is not None:
            self._merging = BackgroundTask(merge.run)
        elif self._merging is not None and self._merging.is_done:
            merging, self._merging = self._merging, None
            planner.adopt(merging.result())

    def _reconcile(self) -> None:
        """Bring source lists and queries in line with what is registered."""
        plans = self.plans
        self.ledger.follow(plans.snapshot.operators)
        if time.monotonic() >= self._weigh_at:
            self._weigh_at = time.monotonic() + WEIGH_S
            self._weights = {name: 1.0 + count for name, count in self.catalog.demand().items()}
        streams = self.queries.streams
        sources = {name: each for name, each in plans.sources.items() if name not in streams}
        self.source_groups = group_sources(sources, plans.schemas, weights=self._weights)
        self.queries.reconcile(self.source_groups.groups)

    def _deliver(self) -> None:
        filled = self.context.outbox_filled
        filled.clear()
        report = self.deliverer.run_due(datetime.now(UTC))
        if report.sent or report.failed or report.dead:
            self.meters.add(sent=report.sent, failed=report.failed + report.dead)
        if report.unfinished:
            filled.set()

    def _join_tables(self) -> None:
        self.tables.step()
        if self.tables.is_needed:
            self.table_query.reconcile()

    def _wait_for_items(self) -> None:
        self.windows.wake.wait(self.windows.wait_s(JOIN_S))

    def _warm(self) -> None:
        plans = self.plans
        warm(self.session, str(plans.path), dict(plans.schemas))

    def _tidy(self) -> None:
        now = datetime.now(UTC)
        self.catalog.expire(now)
        self.deliverer.prune(now=now)
        self.ledger.write()
        oldest = now - timedelta(days=self.settings.store_days)
        self._tidy_store(oldest.date())
        remove_rejected(self.folder.sources.glob("*"), before_s=oldest.timestamp())

    def _tidy_store(self, oldest: date) -> None:
        remove_messages(self.folder.messages, oldest)
        with self.tables.files:
            if not self.tables.reads_history:
                remove_before(self.folder.store, oldest)
                decided = min(self.windows.decided, self.tables.decided)
                merge_days(self.folder.store, before=decided.date())

    def _subscriptions(self, ids: Iterable[int]) -> dict[int, PushSubscription]:
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
