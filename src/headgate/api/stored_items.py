"""Reading what the runs of a catalog have stored: `tail`, `follow`, `why`, `stats`, `backtest`.

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
from headgate.language.statements import CreateFeed, Statement
from headgate.model.errors import (
    InvalidValue,
    LanguageError,
    StateError,
    UnknownName,
    did_you_mean,
)
from headgate.store.data_folder import find_folder
from headgate.store.open_storage import checked_folder

if TYPE_CHECKING:
    from headgate.api.why_stored import WhyStored
    from headgate.deliver.delivery_database import DeliveryDatabase
    from headgate.deliver.delivery_status import DeadLetters
    from headgate.pipeline.jobs.backtest import Backtest
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
        self, catalog: Catalog, folder: str | Path = FOLDER_DEFAULT, log: str = ""
    ) -> None:
        """`log` is the address of the log, where the folder does not say it or is not here."""
        self.catalog = catalog
        self.folder = checked_folder(folder)
        self.log = log
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
            with self._deliveries() as database:
                return why_stored(view, self.catalog, found, str(feed), database)

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
        with self._deliveries() as database:
            if database is not None:
                counts, dead = count_deliveries(database), dead_letters(database, limit=top)
        return RunStatistics(
            stored=stored,
            feed_names=self.catalog.names_of_numbers(list(stored.feeds)),
            deliveries=counts.figures(),
            dead_letters=dead,
        )

    def backtest(
        self,
        statement: str,
        *,
        since: Since = "30d",
        samples: int = 5,
        master: str | None = None,
        local: bool = False,
        note: Note = no_note,
    ) -> Backtest:
        """What a feed ('create feed …', or the name of one) would have had of the stored items.
        Large stores are read by Spark, others in this process; the result is the same."""
        from headgate.pipeline.jobs.backtest import Backtester  # noqa: PLC0415 - Spark
        from headgate.pipeline.jobs.backtest_query import backtest_query  # noqa: PLC0415
        from headgate.pipeline.jobs.job import choose_runner  # noqa: PLC0415

        now = datetime.now(UTC)
        first = instant_of(since, now)
        if first is None:
            raise InvalidValue("a backtest needs a time since which it looks at items")
        with self.catalog.looking_up() as definitions:
            try:
                query = backtest_query(_feed_of(statement, definitions), definitions)
            except LanguageError as error:
                raise error.within(statement) from None
        with self._log() as view:
            tester = Backtester.prepare(query, view, since=first, until=now, samples=samples)
            runner = choose_runner(tester.ranges, master=master, local=local)
            result = tester.run(runner, view, note)
        result.ran = runner.name
        self.damaged |= result.damaged
        return result

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
    def _deliveries(self) -> Iterator[DeliveryDatabase | None]:
        """The delivery database of the folder; None if nothing was delivered from it yet."""
        from headgate.deliver.delivery_database import DeliveryDatabase  # noqa: PLC0415

        folder = find_folder(self.folder, self.log)
        if not folder.has_deliveries:
            yield None
            return
        with DeliveryDatabase(folder.delivery_database) as database:
            yield database


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
