"""`hg.open(url)`: a catalog, and the data folder of its runs, as one object.

    >>> import headgate as hg
    >>> h = hg.open("sqlite://")
    >>> _ = h.execute("register stream Tickets from json 'tickets/*.json' (price int, to text);"
    ...               "create feed Cheap from Tickets as $t where $t[price < 100];")
    >>> ticket = h.subscribe("Cheap", file="cheap.atom", every="10 minutes")
    >>> [each.name for each in h.show("feeds").entries]
    ['Cheap']
    >>> h.close()

What reads stored items (`tail`, `follow`, `why`, `stats`, `backtest`) needs the folder of a run.
What needs Spark or compiled kernels is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from headgate.api.arguments import duration_of, optional_duration
from headgate.api.explain import (
    Explained,
    explain_factorized,
    explain_feeds,
    explain_item,
    explain_program,
    explain_run,
)
from headgate.api.limits import LimitCalls
from headgate.api.receivers import IssuedTicket, ReceiverCalls
from headgate.api.running import MASTER_DEFAULT, RunOptions, started_run, starting_spark
from headgate.api.stored_items import FOLDER_DEFAULT, Note, StoredItems, no_note
from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import SOURCE_KINDS, DefinitionKind
from headgate.catalog.queries import Advertisement, Definition, SnapshotRecord, Subscription
from headgate.catalog.transaction import Outcome
from headgate.language.parse import parse_script
from headgate.language.statements import (
    Listing,
    Output,
    OutputKind,
    Renew,
    Statement,
    Subscribe,
    Unsubscribe,
)
from headgate.language.unparse import unparse
from headgate.model.errors import InvalidValue, LanguageError
from headgate.store.open_storage import checked_folder

if TYPE_CHECKING:
    from headgate.acquire.post import Posted
    from headgate.api.posting import PostBox
    from headgate.api.spark import DataFrame, SparkSession
    from headgate.pipeline.run import Run

Entry = Definition | Subscription | Advertisement | SnapshotRecord
PAGE_DEFAULT = 50


@dataclass(frozen=True, slots=True)
class Page:
    """One page of what is registered; the next one is `show(what, after=page.last)`."""

    entries: Sequence[Entry]
    total: int
    last: str


def open(
    url: str = "headgate.db",
    *,
    folder: str | Path = FOLDER_DEFAULT,
    log: str = "",
    state: str = "",
) -> Headgate:
    """Open a catalog: an SQLite file, `sqlite://` (in memory) or `postgresql://user@host/db`.

    A new catalog is created, an old one is upgraded. `folder` is where its runs keep their data;
    `log` is the address of their log (s3://bucket/prefix) if it is not in the folder, and `state`
    that of their delivery database.
    """
    return Headgate(Catalog.open(url), folder, log, state)


class Headgate(StoredItems, ReceiverCalls, LimitCalls):
    """Threads: one object may be used by several threads, except `follow`, whose iterator belongs
    to the thread that uses it, and catalogs in memory, which belong to one thread."""

    def close(self) -> None:
        self.catalog.close()

    def __enter__(self) -> Headgate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Headgate({self.catalog.name!r}, folder={str(self.folder)!r})"

    # --- statements ------------------------------------------------------------------------------

    def execute(self, script: str, *, dry_run: bool = False) -> list[Outcome]:
        """Apply all statements of a script or, if one is refused, none. An error has the line,
        the column and a hint. A dry run checks everything and changes nothing."""
        return self.apply(parse_script(script), text=script, dry_run=dry_run)

    def apply(
        self, statements: Sequence[Statement], *, text: str = "", dry_run: bool = False
    ) -> list[Outcome]:
        """`execute` for statements that are parsed already; `text` is what they were parsed from,
        for errors to point at."""
        try:
            return self.catalog.apply(statements, dry_run=dry_run)
        except LanguageError as error:
            raise (error.within(text) if text else error) from None

    def apply_statement(self, statement: Statement) -> Outcome:
        """Apply one statement that was built from objects."""
        text = unparse(statement)
        (outcome,) = self.execute(text)
        return outcome

    def subscribe(
        self,
        feed: str,
        *,
        file: str | None = None,
        mail: str | None = None,
        webhook: str | None = None,
        cloudevents: str | None = None,
        kafka: str | None = None,
        console: bool = False,
        every: str | None = None,
        for_: str | None = None,
        apply: str | None = None,
        site: str | None = None,
    ) -> IssuedTicket:
        """Subscribe to a feed or source with one output; returns the ticket, which is shown only
        here, with the secret of a webhook as its `secret`. `every` is the period of a digest,
        `for_` the validity (one day unless stated), `apply` a stylesheet."""
        outputs = [
            Output(kind, target)
            for kind, target in (
                (OutputKind.FILE, file),
                (OutputKind.MAIL, mail),
                (OutputKind.WEBHOOK, webhook),
                (OutputKind.CLOUDEVENTS, cloudevents),
                (OutputKind.KAFKA, kafka),
                (OutputKind.CONSOLE, "" if console else None),
            )
            if target is not None
        ]
        if len(outputs) != 1:
            raise InvalidValue(
                "a subscription has one output: file, mail, webhook, cloudevents, kafka or console"
            )
        outcome = self.apply_statement(
            Subscribe(
                feed,
                outputs[0],
                apply,
                optional_duration(every),
                optional_duration(for_),
                site,
            )
        )
        return IssuedTicket.of(outcome)

    def renew(self, ticket: str, for_: str | None = None) -> datetime:
        """Renew a subscription; returns when it expires now."""
        validity = None if for_ is None else duration_of(for_)
        (outcome,) = self.catalog.apply([Renew(ticket, validity)])
        assert outcome.expires_at is not None
        return outcome.expires_at

    def unsubscribe(self, ticket: str) -> None:
        self.catalog.apply([Unsubscribe(ticket)])

    # --- posting events --------------------------------------------------------------------------

    def post(
        self, source: str, events: Iterable[Mapping[str, object] | bytes], *, key: str = ""
    ) -> Posted:
        """Give events to a source that is registered `from post`: mappings, or lines of JSON. Those
        that fit its schema are on disk when this returns; the answer names the others. The run of
        the folder reads them, now or when it is started.

        Who does not know whether a post has succeeded posts again with the same `key`: the events
        are accepted once. A key is known for a day, as long as the events are in the spool."""
        return self.post_box.post(source, events, key=key)

    @cached_property
    def post_box(self) -> PostBox:
        from headgate.api.posting import PostBox  # noqa: PLC0415 - it loads Arrow

        return PostBox(self.catalog, self.folder)

    # --- what is registered ----------------------------------------------------------------------

    def show(self, what: str | Listing, *, limit: int = PAGE_DEFAULT, after: str = "") -> Page:
        """A page of sources, feeds, operators, subscriptions, advertisements or snapshots."""
        try:
            listing = Listing(what)
        except ValueError:
            known = ", ".join(Listing)
            raise InvalidValue(f"nothing is listed as '{what}': expected {known}") from None
        catalog = self.catalog
        match listing:
            case Listing.SUBSCRIPTIONS:
                subscriptions = catalog.list_subscriptions(after_id=_number(after), limit=limit)
                total = catalog.count_subscriptions()
                return Page(subscriptions, total, _last(subscriptions, "id"))
            case Listing.ADVERTISEMENTS:
                found = catalog.list_advertisements(after_id=_number(after), limit=limit)
                return Page(found, len(found), _last(found, "id"))
            case Listing.SNAPSHOTS:
                before = _number(after) if after else None
                snapshots = catalog.list_snapshots(before_version=before, limit=limit)
                return Page(snapshots, len(snapshots), _last(snapshots, "catalog_version"))
        kinds = _KINDS[listing]
        definitions = catalog.list_definitions(kinds, after=after, limit=limit)
        return Page(definitions, catalog.count_definitions(kinds), _last(definitions, "name"))

    def counts(self) -> dict[str, int]:
        """How many sources, feeds, operators and subscriptions there are, and the version."""
        catalog = self.catalog
        kinds = {str(listing): catalog.count_definitions(of) for listing, of in _KINDS.items()}
        return {
            **kinds,
            "subscriptions": catalog.count_subscriptions(),
            "version": catalog.version(),
        }

    # --- explanations ----------------------------------------------------------------------------

    def explain(self, *feeds: str) -> Explained:
        """The plans of these feeds, as written and in normal form, and their price; without names,
        the plans of all."""
        parts = explain_feeds(self.catalog.definitions(), feeds, self._feed_limits())
        if len(parts) == 1:
            return parts[0]
        return Explained("\n".join(each.text for each in parts), [each.data for each in parts])

    def explain_item(self, feed: str, item: Mapping[str, object], *, source: str = "") -> Explained:
        """Why an item with these attributes would be in the feed, or why not."""
        return explain_item(feed, item, self.catalog.definitions(), source=source)

    def explain_program(self, source: str) -> Explained:
        """The program of a source: all filters on it, compiled together."""
        return explain_program(source, self.catalog.definitions())

    def explain_factorized(self, source: str, *, method: str = "auto") -> Explained:
        """What the filters on a source share, what that costs, and which method was used."""
        measured = self.catalog.statistics(source)
        return explain_factorized(source, self.catalog.definitions(), measured, method=method)

    def explain_run(self, options: RunOptions | None = None) -> Explained:
        """How everything registered is run: queries, windows, indexes, orders, methods."""
        methods = (options or RunOptions(self.folder)).methods()
        return explain_run(self.catalog.definitions(), self.folder, methods=methods)

    # --- running ---------------------------------------------------------------------------------

    def run(
        self,
        *,
        folder: str | Path | None = None,
        log: str | None = None,
        state: str = "",
        spark: SparkSession | None = None,
        master: str = MASTER_DEFAULT,
        output: str | Path = "feeds",
        stylesheets: str | Path = ".",
        data: str | Path | None = None,
        allow: str = "",
        brokers: str = "",
        budget: int = 600,
        interval: str = "5 minutes",
        lateness: str = "1 minute",
        operators: Sequence[str] = (),
        operator_reads: Sequence[str] = (),
        operator_network: bool = False,
        factorize: str = "auto",
        operator_order: str = "adaptive",
        join_scheme: str = "",
        feed_share: float = 0.2,
        streams: Mapping[str, DataFrame] | None = None,
        console: TextIO | None = None,
        note: Note = no_note,
    ) -> AbstractContextManager[Run]:
        """Run everything registered: read the sources, match, deliver. It runs within the `with`
        statement, in threads of its own; statements that are executed meanwhile take effect.

        `spark` is a session of yours; without it one is made for `master` and stopped at the end.
        `state` is the URL of the delivery database, if it is not a file of the folder.
        Sources of files read below the folder `data`; without it they read nothing.
        Operators come from the modules in `operators`; besides the items they may read the files
        and folders in `operator_reads`, and open connections only with `operator_network`.
        A feed that takes more than `feed_share` of the cores is suspended; 0: none ever is.
        `streams` are streaming DataFrames by the name of the source whose items they carry.
        """
        if folder is not None:
            self.folder = checked_folder(folder)
        if log is not None:
            self.log = log
        options = RunOptions(
            folder=self.folder,
            log=self.log,
            state=state,
            output=Path(output),
            stylesheets=Path(stylesheets),
            data=None if data is None else Path(data),
            lateness_s=float(duration_of(lateness).seconds),
            operators=tuple(operators),
            operator_reads=tuple(operator_reads),
            operator_network=operator_network,
            sources={
                "allow": allow,
                "brokers": brokers,
                "budget": str(budget),
                "interval_min_s": str(duration_of(interval).seconds),
            },
            factorize=factorize,
            operator_order=operator_order,
            join_scheme=join_scheme,
            feed_share=feed_share,
        )
        return self._running(options, spark, master, streams, console, note)

    @contextmanager
    def _running(
        self,
        options: RunOptions,
        spark: SparkSession | None,
        master: str,
        streams: Mapping[str, DataFrame] | None,
        console: TextIO | None,
        note: Note,
    ) -> Iterator[Run]:
        from headgate.api.check_run import check_run  # noqa: PLC0415

        check_run(options, catalog=self.catalog.url)
        with ExitStack() as opened:
            session = spark
            if session is None:
                session = opened.enter_context(starting_spark(master)).result()
            run = started_run(
                self.catalog, session, options, console=console, note=note, streams=streams
            )
            yield opened.enter_context(run)


_KINDS: dict[Listing, Sequence[DefinitionKind]] = {
    Listing.SOURCES: tuple(SOURCE_KINDS),
    Listing.FEEDS: (DefinitionKind.FEED,),
    Listing.OPERATORS: (DefinitionKind.OPERATOR,),
}


def _number(after: str) -> int:
    if after and not after.isdecimal():
        raise InvalidValue(f"these are listed by number, not by '{after}'")
    return int(after or 0)


def _last(entries: Sequence[object], key: str) -> str:
    return str(getattr(entries[-1], key)) if entries else ""
