"""Reading what the runs of a catalog have stored: `tail`, `follow`, `why`, `stats`, `status`,
`backtest`, `deliveries`; and `replay`.

What needs Spark or compiled kernels is imported when it is called.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.api.arguments import instant_of
from headgate.catalog.catalog import Catalog
from headgate.language.parse import parse
from headgate.language.schemas import schemas_of
from headgate.language.statements import CreateFeed, Statement
from headgate.model.errors import (
    InvalidValue,
    LanguageError,
    StateError,
    UnknownName,
    did_you_mean,
)
from headgate.store.data_folder import DataFolder, checked_state, find_folder
from headgate.store.open_storage import checked_folder

if TYPE_CHECKING:
    from headgate.api.deliveries import SubscriptionDeliveries
    from headgate.api.operating import OperatingStatus
    from headgate.api.value_rates import AttributeRates, SourceSample, ValueRate
    from headgate.api.why_stored import WhyStored
    from headgate.catalog.lookups import SubscriptionEntry
    from headgate.deliver.delivery_database import DeliveryDatabase
    from headgate.deliver.delivery_status import DeadLetters
    from headgate.deliver.replay import NumberedLetter, Replayed
    from headgate.model.schema import Schema
    from headgate.pipeline.folder_status import FolderReader
    from headgate.pipeline.jobs.backtest import Backtest
    from headgate.pipeline.jobs.backtest_query import BacktestQuery
    from headgate.pipeline.jobs.compare import FeedComparison
    from headgate.pipeline.jobs.measure import Measured
    from headgate.store.log_items import LoggedItem
    from headgate.store.log_view import LogView
    from headgate.store.stats import Stats

Since = str | datetime | timedelta | None
Note = Callable[[str], None]
FOLDER_DEFAULT = "headgate-data"
POLL_S = 0.25


def no_note(_text: str) -> None:
    """Progress that nobody shows."""


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """What was read, matched and delivered."""

    stored: Stats
    feed_names: Mapping[int, str]
    deliveries: Mapping[str, int]
    """Items delivered, subscriptions behind and halted, messages that are retried, dead letters."""
    dead_letters: Sequence[DeadLetters]


class StoredItems:
    """The items that runs of a catalog have stored in a folder."""

    def __init__(
        self,
        catalog: Catalog,
        folder: str | Path = FOLDER_DEFAULT,
        log: str = "",
        state: str = "",
    ) -> None:
        """`log` is the address of the log, and `state` that of the delivery database, where the
        folder does not say it or is not here."""
        self.catalog = catalog
        self.folder = checked_folder(folder)
        self.log, self.state = log, state
        self.damaged: dict[str, str] = {}
        """Files of the log that could not be read and were left out, with the reason."""

    def tail(self, feed: str, lines: int = 10, *, since: Since = None) -> list[LoggedItem]:
        """The last items of a feed or source, in order of arrival."""
        return next(self.follow_batches(feed, lines, since=since))

    def follow(
        self,
        feed: str,
        lines: int = 0,
        *,
        since: Since = None,
        stop: threading.Event | None = None,
    ) -> Iterator[LoggedItem]:
        """The last items of a feed or source, then every new one, until `stop` is set."""
        for rows in self.follow_batches(feed, lines, since=since, stop=stop):
            yield from rows

    def follow_batches(
        self,
        feed: str,
        lines: int = 0,
        *,
        since: Since = None,
        stop: threading.Event | None = None,
    ) -> Iterator[list[LoggedItem]]:
        """`follow`, a list at a time; it looks four times a second and yields empty lists too."""
        from headgate.store.tail import Follower, key_of, tail  # noqa: PLC0415 - kernels

        stop = stop or threading.Event()
        instant = instant_of(since, datetime.now(UTC))
        with self.catalog.looking_up() as definitions:
            key = key_of(feed, definitions)
        with self._log() as view:
            last = tail(view, key, lines=lines, since=instant)
            follower = Follower(view, key)
            self.damaged |= view.damaged
            yield last
            while not stop.is_set():
                rows = follower.poll()
                self.damaged |= view.damaged
                yield rows
                stop.wait(POLL_S)

    def why(
        self, item: str, feed: str | int, *, source: str = "", note: Note = no_note
    ) -> WhyStored:
        """Why a stored item, by its id, is in a feed or not; with the number of a subscription,
        also whether it was delivered."""
        from headgate.api.why_stored import found_item, why_stored  # noqa: PLC0415 - kernels

        with self._log() as view:
            found = found_item(view, self.catalog, item, source=source or None, note=note)
            with self.delivery_database() as database:
                return why_stored(view, self.catalog, found, str(feed), database)

    def deliveries(self, subscription: int) -> SubscriptionDeliveries:
        """How far the deliveries of a subscription are, and what keeps them."""
        from headgate.api.deliveries import SubscriptionDeliveries, count_waiting  # noqa: PLC0415
        from headgate.deliver.delivery_status import progress_of  # noqa: PLC0415 - kernels

        entry = self.subscription_entry(subscription)
        with self.delivery_database() as database, self._log() as view:
            progress = progress_of(_existing(database), entry)
            return SubscriptionDeliveries.of(
                entry, progress, count_waiting(view, entry, progress.cursor)
            )

    def dead_letters(
        self, subscription: int, *, after: int = 0, limit: int = 100
    ) -> list[NumberedLetter]:
        """What was given up of a subscription, by number."""
        from headgate.deliver.replay import dead_letters_of  # noqa: PLC0415

        self.subscription_entry(subscription)
        with self.delivery_database() as database:
            return dead_letters_of(_existing(database), subscription, after=after, limit=limit)

    def replay(
        self,
        subscription: int,
        *,
        letter: int | None = None,
        since: int | None = None,
        dry_run: bool = False,
    ) -> Replayed:
        """Send again, under the same ids: one dead letter, all of them, or all from a position on
        with everything that was sent since then. A dry run says how much that is."""
        from headgate.api.deliveries import replay_deliveries  # noqa: PLC0415 - kernels

        entry = self.subscription_entry(subscription)
        with self.delivery_database() as database, self._log() as view:
            letters = None if letter is None else [letter]
            return replay_deliveries(
                _existing(database), view, entry, letters=letters, since=since, dry_run=dry_run
            )

    def subscription_entry(self, subscription: int) -> SubscriptionEntry:
        """A subscription as delivery knows it."""
        found = self.catalog.subscription_entries(after_id=subscription - 1, limit=1)
        if not found or found[0].id != subscription:
            raise UnknownName(f"there is no subscription {subscription}")
        return found[0]

    def stats(self, since: Since = "7d", *, top: int = 10, note: Note = no_note) -> RunStatistics:
        """What came from each source and day, what feeds had of it, and what was delivered."""
        from headgate.deliver.delivery_status import (  # noqa: PLC0415
            NO_DELIVERIES,
            count_deliveries,
            dead_letters,
        )
        from headgate.store.stats import stats  # noqa: PLC0415 - kernels

        with self._log() as view:
            stored = stats(view, since=instant_of(since, datetime.now(UTC)), note=note)
        counts, dead = NO_DELIVERIES, list["DeadLetters"]()
        with self.delivery_database() as database:
            if database is not None:
                counts, dead = count_deliveries(database), dead_letters(database, limit=top)
        return RunStatistics(
            stored=stored,
            feed_names=self.catalog.names_of_numbers(list(stored.feeds)),
            deliveries=counts.figures(),
            dead_letters=dead,
        )

    def status(self) -> OperatingStatus:
        """How the run of the folder is, and what is wrong, during a run and after it."""
        from headgate.api.operating import operating_status  # noqa: PLC0415 - kernels

        with self.folder_reader() as reader:
            return operating_status(self.catalog, reader.look())

    def folder_reader(self) -> FolderReader:
        """What the folder says of its run, for those who look again and again."""
        from headgate.pipeline.folder_status import FolderReader  # noqa: PLC0415 - kernels

        return FolderReader(find_folder(self.folder.absolute(), self.log), self.catalog)

    def backtest(
        self,
        statement: str,
        *,
        at: datetime | None = None,
        since: Since = "30d",
        until: datetime | None = None,
        samples: int = 5,
        master: str | None = None,
        local: bool = False,
        note: Note = no_note,
    ) -> Backtest:
        """What a feed ('create feed …', or the name of one) would have had of the items that
        arrived since then and before `until`; with `at`, as it was defined at that instant. Large
        stores are read by Spark, others in this process; the result is the same."""
        from headgate.pipeline.jobs.backtest import Backtester  # noqa: PLC0415 - Spark
        from headgate.pipeline.jobs.job import choose_runner  # noqa: PLC0415

        query = self._backtest_query(statement, at)
        first, end = _stretch(since, until)
        with self._log() as view:
            tester = Backtester.prepare(query, view, since=first, until=end, samples=samples)
            runner = choose_runner(tester.ranges, master=master, local=local)
            result = tester.run(runner, view, note)
        result.ran = runner.name
        self.damaged |= result.damaged
        return result

    def value_rates(
        self, source: str, attribute: str = "", *, prefix: str = "", limit: int = 10
    ) -> list[AttributeRates]:
        """The most frequent values and words of the newest items of a source, with their rates."""
        from headgate.api.value_rates import rate_values  # noqa: PLC0415 - kernels

        schema, sample = self._sample(source)
        names = [attribute] if attribute else [str(each.name) for each in schema.attributes]
        return rate_values(sample, schema, names, prefix=prefix, limit=limit)

    def condition_rates(self, source: str, filter: str) -> list[ValueRate]:
        """How often a filter holds for the newest items of a source, and each of its conditions;
        the filter is the first one."""
        from headgate.api.value_rates import rate_conditions  # noqa: PLC0415 - kernels

        schema, sample = self._sample(source)
        return rate_conditions(sample, schema, filter)

    def _sample(self, source: str) -> tuple[Schema, SourceSample]:
        from headgate.api.value_rates import sample_of  # noqa: PLC0415 - kernels
        from headgate.store.tail import key_of  # noqa: PLC0415

        with self.catalog.looking_up() as definitions:
            key = key_of(source, definitions)
            schemas = list(schemas_of(source, definitions))
        if not isinstance(key, str) or len(schemas) != 1:
            raise InvalidValue(f"'{source}' is a feed: name one of its sources")
        with self._log() as view:
            return schemas[0], sample_of(view, key, datetime.now(UTC))

    def compare(
        self,
        left: str,
        right: str,
        *,
        left_at: datetime | None = None,
        right_at: datetime | None = None,
        since: Since = "30d",
        until: datetime | None = None,
        master: str | None = None,
        local: bool = False,
        note: Note = no_note,
    ) -> FeedComparison:
        """Whether two feeds would have had the same items of a stretch of the log, or the first
        item on which they differ. Feeds and instants are as in `backtest`, so a feed can be
        compared with itself of last week."""
        from headgate.pipeline.jobs.compare import Comparer  # noqa: PLC0415 - Spark
        from headgate.pipeline.jobs.job import choose_runner  # noqa: PLC0415

        queries = self._backtest_query(left, left_at), self._backtest_query(right, right_at)
        first, end = _stretch(since, until)
        with self._log() as view:
            comparer = Comparer.prepare(*queries, view, since=first, until=end)
            runner = choose_runner(comparer.ranges, master=master, local=local)
            return comparer.run(runner, view, note)

    def _backtest_query(self, statement: str, at: datetime | None) -> BacktestQuery:
        from headgate.pipeline.jobs.backtest_query import backtest_query  # noqa: PLC0415 - kernels

        catalog = self.catalog
        looking_up = catalog.looking_up() if at is None else catalog.looking_up_at(at)
        with looking_up as definitions:
            try:
                return backtest_query(_feed_of(statement, definitions), definitions)
            except LanguageError as error:
                raise error.within(statement) from None

    def measure(
        self,
        *,
        since: Since = "30d",
        master: str | None = None,
        local: bool = False,
        note: Note = no_note,
    ) -> Measured:
        """Measure how much comes from each source and how often each atom is true, and keep it in
        the catalog for the optimisers."""
        from headgate.pipeline.jobs.job import choose_runner  # noqa: PLC0415 - Spark
        from headgate.pipeline.jobs.measure import Measurer, asked_of_all  # noqa: PLC0415

        first = instant_of(since, datetime.now(UTC))
        if first is None:
            raise InvalidValue("measuring needs a time since which it looks at items")
        asked = asked_of_all(self.catalog.definitions())
        with self._log() as view:
            measurer = Measurer.prepare(asked.by_source, view, since=first)
            runner = choose_runner(measurer.ranges, master=master, local=local)
            result = measurer.run(runner, view, note)
        note("writing to the catalog")
        kept = self.catalog.record_statistics(result.statistics)
        self.damaged |= result.damaged
        return replace(result, kept=kept, ran=runner.name, refused=asked.refused)

    @contextmanager
    def _log(self) -> Iterator[LogView]:
        from headgate.store.log_view import LogView  # noqa: PLC0415 - kernels

        if not self.log and not self.folder.is_dir():
            raise StateError(f"there is no folder '{self.folder}': a run makes it")
        view = LogView(find_folder(self.folder, self.log))
        try:
            yield view
        finally:
            self.damaged |= view.damaged

    @contextmanager
    def delivery_database(self) -> Iterator[DeliveryDatabase | None]:
        """The delivery database of the folder; None if nothing was delivered from it yet."""
        from headgate.deliver.delivery_database import DeliveryDatabase  # noqa: PLC0415

        folder = DataFolder(self.folder, self.log, checked_state(self.folder, self.state))
        if not folder.has_deliveries:
            yield None
            return
        with DeliveryDatabase(folder.delivery_database) as database:
            yield database


def _existing(database: DeliveryDatabase | None) -> DeliveryDatabase:
    if database is None:
        raise StateError("nothing was delivered from this folder yet")
    return database


def _stretch(since: Since, until: datetime | None) -> tuple[datetime, datetime]:
    now = datetime.now(UTC)
    first = instant_of(since, now)
    if first is None:
        raise InvalidValue("a backtest needs a time since which it looks at items")
    return first, now if until is None else until


def _feed_of(text: str, definitions: Mapping[str, Statement]) -> CreateFeed:
    if text.isidentifier():
        registered = definitions.get(text)
        if isinstance(registered, CreateFeed):
            return registered
        hint = did_you_mean(text, definitions)
        what = f"there is no feed '{text}'" if registered is None else f"'{text}' is no feed"
        raise UnknownName(what + (f"; {hint}" if hint and registered is None else ""))
    statement = parse(text)
    if not isinstance(statement, CreateFeed):
        raise InvalidValue("a backtest is of a feed: 'create feed …'")
    return statement
