"""A run: reads, matches and delivers everything that is registered, until it is stopped.

    thread       repeats
    control      follow the catalog: new snapshots, source lists, queries
    queries      Spark's own threads: a micro-batch of a group (queries.py, run_batch.py)
    materialise  transform the new items of materialised feeds (materialise.py)
    windows      decide what the window joins can decide (window_join_runner.py)
    tables       make the next change batch for the table joins (table_join_runner.py)
    deliver      a worker that follows the log, mostly in a child process (delivery.py)
    wake         tell delivery that the log has something new
    warm         a small task for each worker (warm_workers.py)
    merge        merge small files of the log
    budget       suspend feeds that take too much CPU time (feed_budget.py)
    heartbeat    say in the folder that the run is alive, and how it is (heartbeat.py)
    tidy         forget subscriptions, dead letters and items that are older than the limit

One process runs a folder: it holds the folder's lock. A process that is killed at any instant loses
nothing; the next one resumes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from headgate.acquire.rejected import RejectedCounts, remove_rejected
from headgate.catalog.catalog import Catalog
from headgate.catalog.limits import Resource
from headgate.catalog.tenants import owner_of
from headgate.deliver.delivery_config import DeliveryConfig
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.deliver.delivery_status import DeliveryCounts, count_deliveries, prune
from headgate.model.errors import HeadgateError
from headgate.pipeline.delivery import DeliveryProcess, DeliveryThread
from headgate.pipeline.feed_budget import FeedBudget
from headgate.pipeline.heartbeat import BEAT_S, Moment, write_heartbeat
from headgate.pipeline.latest_matches import LatestMatches
from headgate.pipeline.log_format import RUN_LOGGER
from headgate.pipeline.materialise import MaterialiseStage
from headgate.pipeline.operator_stage import OperatorLedger
from headgate.pipeline.planner import BackgroundTask, CurrentPlans, MergedLayers, Planner
from headgate.pipeline.queries import Queries
from headgate.pipeline.run_batch import BatchRunner
from headgate.pipeline.run_context import RunContext, RunSettings
from headgate.pipeline.run_log import RunLog
from headgate.pipeline.session import LOST_SPARK, is_alive
from headgate.pipeline.source_groups import SourceGroups, group_sources
from headgate.pipeline.status import heartbeat_of
from headgate.pipeline.table_join_query import TableJoinQuery, has_state, require_shared_folder
from headgate.pipeline.table_join_runner import TableJoinRunner
from headgate.pipeline.warm_workers import EVERY_S, warm
from headgate.pipeline.window_join_runner import WindowJoinRunner
from headgate.pipeline.write_plans import write_plans_on
from headgate.store.data_folder import claim_folder
from headgate.store.log_state import LogPoint
from headgate.store.log_upkeep import LogUpkeep, remove_messages
from headgate.store.open_storage import checked_folder

log = logging.getLogger(RUN_LOGGER)
CONTROL_S = 0.25
JOIN_S = 0.5
ERROR_S = 1.0
"""The pause after an error."""
MERGE_S = 10.0
WAKE_S = 60.0
WEIGH_S = 60.0
"""How often the demand for each source is counted; feeds are fetched accordingly."""
TIDY_S = 1800.0
BUDGET_S = 2.0
"""How often feeds that take too much are looked for."""


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
        path = checked_folder(settings.folder).absolute()
        self.folder = claim_folder(path, settings.log, state=settings.state).make()
        self.errors: dict[str, str] = {}
        """The last error of each thread of the run that does not work at the moment."""
        self._threads: list[threading.Thread] = []
        self._merging: BackgroundTask[MergedLayers] | None = None
        self._is_folder_shared = False
        """Whether executors have been seen to have the folder; table joins need it."""
        self._weights: dict[str, float] = {}
        self._weigh_at = 0.0
        self._started_s: float | None = None
        self._history: tuple[Moment, ...] = ()
        self._woken_at = 0
        """The last entry of the log that delivery was told of."""
        self.source_groups = SourceGroups()
        self.rejected = RejectedCounts(self.folder.sources)
        with ExitStack() as opened:
            self._compose(opened, note, streams or {})
            self._opened = opened.pop_all()

    def _compose(
        self, opened: ExitStack, note: Callable[[str], None], streams: Mapping[str, DataFrame]
    ) -> None:
        """The one place where the stages of a run are put together. The lock comes first, so that
        no other process runs the same folder."""
        settings, folder = self.settings, self.folder
        opened.enter_context(folder.lock())
        folder.record_data_root(settings.base)
        self.delivery_database = opened.enter_context(DeliveryDatabase(folder.delivery_database))
        self.delivery = self._delivery()
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
        self.context = context = RunContext(
            folder=folder,
            catalog=self.catalog,
            planner=planner,
            log=RunLog(folder.storage),
            ledger=self.ledger,
            operators=settings.operator_rules,
            budget=FeedBudget(settings.budget, cores=self.session.sparkContext.defaultParallelism),
            note=note,
        )
        self.meters = context.meters
        self.upkeep = LogUpkeep(context.log.sequencer, folder.storage)
        self.latest = LatestMatches(context.log)
        self.batches = BatchRunner(context)
        self.materialise = MaterialiseStage(
            context, self.session, settings.deliver.stylesheet_folder, settings.deliver.transform
        )
        self.windows = WindowJoinRunner(context, self.session, lateness_s=settings.lateness_s)
        self.tables = TableJoinRunner(context, self.session, has_state=has_state(folder))
        self.table_query = TableJoinQuery(
            self.session, folder, self.tables.finish, scheme=settings.methods.scheme
        )
        self.queries = Queries(
            session=self.session,
            folder=folder,
            base=settings.base,
            options=settings.options,
            run_batch=self.batches.run,
            log=context.log,
            streams=streams,
            operators=settings.operator_rules,
        )

    def _delivery(self) -> DeliveryThread | DeliveryProcess | None:
        settings, folder = self.settings, self.folder
        if settings.deliver_in == "nowhere":
            return None
        if settings.deliver_in == "thread":
            return DeliveryThread(
                folder.storage, self.catalog, self.delivery_database, settings.deliver
            )
        config = DeliveryConfig.of(
            settings.deliver,
            catalog=settings.catalog_url,
            folder=folder.path,
            database=folder.delivery_database,
        )
        return DeliveryProcess(config, settings.deliver.console.write)

    def deliveries(self) -> DeliveryCounts:
        """What was delivered, and what is not yet."""
        return count_deliveries(self.delivery_database)

    @property
    def plans(self) -> CurrentPlans:
        return self.context.plans

    def start(self) -> None:
        """Returns when everything is planned and the queries have started."""
        context, log, stopping = self.context, self.context.log, self.context.stopping
        context.planner.update()
        self.windows.follow_plans()
        # Layers of an earlier run that were factorised by another method are planned again.
        self._merge_layers()
        context.note("starting queries")
        # Workers start while the queries do.
        self._repeat("warm", self._warm, partial(stopping.wait, EVERY_S))
        self._reconcile()
        self._repeat("control", self._control, partial(stopping.wait, CONTROL_S))
        self._repeat("budget", self._suspend, partial(stopping.wait, BUDGET_S))
        self._repeat("tidy", self._tidy, partial(stopping.wait, TIDY_S))
        self._repeat("merge", self._merge_files, partial(stopping.wait, MERGE_S))
        self._follow("materialise", self.materialise.step, lambda: self.materialise.follower.point)
        self._follow(
            "windows",
            self.windows.step,
            lambda: self.windows.follower.point,
            wait_s=self.windows.wait_s,
        )
        self._repeat("tables", self._join_tables, partial(self.tables.wait, JOIN_S))
        if self.delivery is not None:
            self.delivery.start()
            self._repeat("wake", self._wake_delivery, lambda: log.wait(self._woken_at, WAKE_S))
        self._started_s = time.time()
        self._repeat("heartbeat", self._beat, partial(stopping.wait, BEAT_S))

    def stop(self) -> None:
        """Work in progress is finished or left for the next run; nothing is lost."""
        self.context.stopping.set()
        self.context.log.wake()
        self.tables.wake.set()
        self.table_query.stop()
        self.queries.stop()
        for thread in self._threads:
            thread.join()
        if is_alive(self.session):
            self.windows.close()
        if self.delivery is not None:
            self.delivery.stop()
        with suppress(HeadgateError, OSError):
            self._beat(has_ended=True)
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
                        self._note_error(name, f"{type(error).__name__}: {error}")
                    stopping.wait(ERROR_S)
                wait()

        thread = threading.Thread(target=loop, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _note_error(self, name: str, error: str) -> None:
        if self.errors.get(name) != error:  # one that stays is logged once
            log.error("%s", error, extra={"stage": name})
        self.errors[name] = error

    def _follow(
        self,
        name: str,
        step: Callable[[], None],
        point: Callable[[], LogPoint],
        *,
        wait_s: Callable[[float], float] = lambda max_s: max_s,
    ) -> None:
        """A thread that runs a step of a stage when something was appended to the log."""
        log = self.context.log
        self._repeat(name, step, lambda: log.wait(point().seq, wait_s(JOIN_S)))

    @property
    def why_ended(self) -> str:
        """Why nothing is read any more: Spark's JVM has ended or was killed, or another process
        writes to the log; empty if the run goes on."""
        return self.context.log.fenced or ("" if is_alive(self.session) else LOST_SPARK)

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
        self.source_groups = group_sources(
            sources,
            plans.schemas,
            weights=self._weights,
            has_files=self.settings.base is not None,
        )
        self.queries.reconcile(self.source_groups.groups)

    def _join_tables(self) -> None:
        self.tables.step()
        if self.tables.is_needed:
            if not self._is_folder_shared:
                require_shared_folder(self.session, self.folder)
                self._is_folder_shared = True
            self.table_query.reconcile()

    def _wake_delivery(self) -> None:
        assert self.delivery is not None
        self._woken_at = self.context.log.state.seq
        self.delivery.wake()

    def _beat(self, *, has_ended: bool = False) -> None:
        if self._started_s is not None:
            beat = heartbeat_of(
                self, started_s=self._started_s, before=self._history, has_ended=has_ended
            )
            write_heartbeat(self.folder, beat)
            self._history = beat.history

    def _merge_files(self) -> None:
        """Below what every stage has read: they read items in the order of their positions."""
        read = [self.materialise.follower, self.windows.follower, self.tables.follower]
        self.upkeep.merge(min(each.point.position for each in read))

    def _warm(self) -> None:
        plans = self.plans
        warm(self.session, self.folder, plans.path.name, dict(plans.schemas))

    def _suspend(self) -> None:
        """Suspend feeds that take too much; the planner leaves them out of the next snapshot."""
        context = self.context
        quotas, names = self.catalog.quotas_for(Resource.CPU_PERCENT), self.plans.names
        over = context.budget.overspent(quotas, lambda feed: owner_of(names.get(feed, "")))
        for each in over:
            name = names.get(each.feed)
            if name is not None and self.catalog.suspend(name, each.reason):
                context.note(f"suspended {name}: {each.reason}")
                log.warning("suspended a feed: %s", each.reason, extra={"feed": name})
        context.budget.write(self.folder.feed_costs, self.plans.names)

    def _tidy(self) -> None:
        now = datetime.now(UTC)
        oldest = now - timedelta(days=self.settings.store_days)
        # Delivery may be behind: what had arrived before a subscription expired is still due.
        self.catalog.expire(oldest)
        dead_before = now - timedelta(seconds=self.settings.deliver.dead_kept_s)
        prune(self.delivery_database, dead_before_s=dead_before.timestamp())
        self.ledger.write()
        remove_messages(self.folder.messages, oldest.date())
        quota = self.catalog.quotas().get(Resource.STORED_BYTES)
        self.upkeep.trim(oldest, bytes_max=quota)
        self.upkeep.sweep(self.tables.files_in_work)
        remove_rejected(self.folder.sources.glob("*"), before_s=oldest.timestamp())
