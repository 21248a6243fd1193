"""Reading what the runs of a catalog have stored: `tail`, `follow`, `why`, `stats`, `backtest`.

What needs Spark or DuckDB is imported when it is called.
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
from headgate.language import parse
from headgate.language.statements import CreateFeed, Statement
from headgate.model.errors import InvalidValue, LanguageError, StateError
from headgate.store.data_folder import DataFolder

if TYPE_CHECKING:
    from headgate.api.why_stored import WhyStored
    from headgate.deliver.item_deliveries import DeadLetters
    from headgate.pipeline.jobs.backtest import Backtest
    from headgate.pipeline.jobs.measure import Measured
    from headgate.store.read_store import StoredRow, StoreReader
    from headgate.store.stats import Stats

Since = str | datetime | timedelta | None
Note = Callable[[str], None]
FOLDER_DEFAULT = "headgate-data"
POLL_S = 0.5


def no_note(_text: str) -> None:
    """Progress that nobody shows."""


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """What was read, matched and delivered."""

    stored: Stats
    feed_names: Mapping[int, str]
    deliveries: Mapping[str, int]
    """Deliveries by state."""
    dead_letters: Sequence[DeadLetters]


class StoredItems:
    """The items that runs of a catalog have stored in a folder."""

    def __init__(self, catalog: Catalog, folder: str | Path = FOLDER_DEFAULT) -> None:
        self.catalog = catalog
        self.folder = Path(folder)
        self.damaged: dict[Path, str] = {}
        """Stored files that could not be read and were left out, with the reason."""

    def tail(self, feed: str, lines: int = 10, *, since: Since = None) -> list[StoredRow]:
        """The last items of a feed or source, in order of arrival."""
        return next(self.follow_batches(feed, lines, since=since))

    def follow(
        self,
        feed: str,
        lines: int = 0,
        *,
        since: Since = None,
        stop: threading.Event | None = None,
    ) -> Iterator[StoredRow]:
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
    ) -> Iterator[list[StoredRow]]:
        """`follow`, a list at a time; it looks every half second and yields empty lists too."""
        from headgate.store.item_files import finished_batches  # noqa: PLC0415 - DuckDB
        from headgate.store.tail import Follower, selection_of, tail  # noqa: PLC0415

        stop = stop or threading.Event()
        instant = instant_of(since, datetime.now(UTC))
        with self.catalog.looking_up() as definitions:
            selection = selection_of(feed, definitions)
        with self._store() as reader:
            finished = finished_batches(reader.folder.batches)
            last = tail(reader, selection, lines=lines, since=instant, finished=finished)
            self.damaged |= reader.damaged
            yield last
            follower = Follower(reader, selection, finished)
            while not stop.is_set():
                rows = follower.poll()
                self.damaged |= reader.damaged
                yield rows
                stop.wait(POLL_S)

    def why(self, item: str, feed: str | int, *, source: str = "") -> WhyStored:
        """Why a stored item, by its id, is in a feed or not; with the number of a subscription,
        also whether it was delivered."""
        from headgate.api.why_stored import found_item, why_stored  # noqa: PLC0415 - DuckDB

        with self._store() as reader:
            return why_stored(
                reader, self.catalog, found_item(reader, item, source or None), str(feed)
            )

    def stats(self, since: Since = "7d", *, top: int = 10, note: Note = no_note) -> RunStatistics:
        """What came from each source and day, what feeds had of it, and what was delivered."""
        from headgate.deliver.item_deliveries import (  # noqa: PLC0415
            count_deliveries,
            dead_letters,
        )
        from headgate.store.stats import stats  # noqa: PLC0415 - DuckDB

        with self._store() as reader:
            stored = stats(reader, since=instant_of(since, datetime.now(UTC)), note=note)
            outbox = reader.folder.outbox
        return RunStatistics(
            stored=stored,
            feed_names=self.catalog.names_of_numbers(list(stored.feeds)),
            deliveries={str(state): count for state, count in count_deliveries(outbox).items()},
            dead_letters=dead_letters(outbox, limit=top),
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
        folder = self._data_folder()
        with self.catalog.looking_up() as definitions:
            try:
                query = backtest_query(_feed_of(statement, definitions), definitions)
            except LanguageError as error:
                raise error.within(statement) from None
        prepared = Backtester.prepare(query, folder, since=first, until=now, samples=samples)
        runner = choose_runner(prepared.files, master=master, local=local)
        result = prepared.run(runner, folder, note)
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
        folder = self._data_folder()
        asked = asked_of_all(self.catalog.definitions())
        prepared = Measurer.prepare(asked.by_source, folder, since=first)
        runner = choose_runner(prepared.files, master=master, local=local)
        result = prepared.run(runner, folder, note)
        note("writing to the catalog")
        kept = self.catalog.record_statistics(result.statistics)
        self.damaged |= result.damaged
        return replace(result, kept=kept, ran=runner.name, refused=asked.refused)

    @contextmanager
    def _store(self) -> Iterator[StoreReader]:
        from headgate.store.read_store import StoreReader  # noqa: PLC0415 - DuckDB

        with StoreReader(self._data_folder()) as reader:
            try:
                yield reader
            finally:
                self.damaged |= reader.damaged

    def _data_folder(self) -> DataFolder:
        if not self.folder.is_dir():
            raise StateError(f"there is no folder '{self.folder}': a run makes it")
        return DataFolder(self.folder)


def _feed_of(text: str, definitions: Mapping[str, Statement]) -> CreateFeed:
    if text.isidentifier() and isinstance(registered := definitions.get(text), CreateFeed):
        return registered
    statement = parse(text)
    if not isinstance(statement, CreateFeed):
        raise InvalidValue("a backtest is of a feed: 'create feed …'")
    return statement
