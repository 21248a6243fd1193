"""The query of a backtest: a feed planned as if it were registered, and a replay of its joins.

    statement ──► check, compose, normalise ──► plan ──► source plans       BacktestQuery
    items that the leaves select, in order of arrival ──► join stage        JoinReplay

A *leaf* of a plan is a filter on a source. Items that a feed's leaves pass to joins, patterns or
operators are its *join inputs*.

The join stage is that of a run (windows/stage.py). Windows reach back to before the start of the
backtest, so their items are read from that time on. How far `last n items` reaches is not known in
advance; with such a window all items are read.

Memory: the positions of all join inputs, the items in windows, and the results. Rows are read in
chunks of ROWS_AT_ONCE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headgate.language.check import check
from headgate.language.schemas import schemas_of
from headgate.language.statements import CreateFeed, Statement
from headgate.match.item_columns import group_of, may_hold
from headgate.model.duration import ItemCount
from headgate.model.schema import Schema
from headgate.pipeline.jobs.stored_batches import columns_read
from headgate.pipeline.source_plan import SourcePlan, plan_sources
from headgate.plan.algebra import Plan, Window, bottom_up
from headgate.plan.leaves import leaves_by_source, untested
from headgate.plan.normalize import normalize
from headgate.plan.translate import compose
from headgate.store.log_items import LoggedItem
from headgate.store.log_view import LogView
from headgate.store.log_writer import JOINED
from headgate.windows.arrivals import Arrival, FeedOutput
from headgate.windows.stage import JoinStage

POSITIONS_MAX = 2_000_000
ROWS_AT_ONCE = 4_096
_FEED_NUMBER = 0
"""The number of the only feed in the plans."""
_STEP = timedelta(microseconds=1)

ItemKey = tuple[str, str]
"""The source and the id of an item."""


@dataclass(frozen=True, slots=True)
class BacktestQuery:
    feed: str
    plan: Plan
    plans: Mapping[str, SourcePlan]
    """The filters of the feed's leaves, by source."""
    attributes: frozenset[str]
    """All attributes that the filters use."""
    has_join_inputs: bool
    """Whether the plan has joins, patterns or operators above its leaves."""

    @property
    def schemas(self) -> dict[str, Schema]:
        return {source: plan.schema for source, plan in self.plans.items()}

    def may_be_in(self, group: str) -> bool:
        """Whether files of this group can hold items of the feed's sources."""
        groups = {group_of(schema) for schema in self.schemas.values()}
        # Results of joins are stored in addition to their items; they are no further items.
        return may_hold(group, groups) and not group.startswith(JOINED)


def backtest_query(feed: CreateFeed, definitions: Mapping[str, Statement]) -> BacktestQuery:
    """Checks and plans the feed. It replaces a registered feed of the same name."""
    name = str(feed.name)
    statements = _OverlaidDefinitions(name, check(feed, definitions), definitions)
    plan = normalize(compose(name, statements))
    leaves = untested(leaves_by_source({name: plan}))
    attributes = {
        attribute
        for source, filters in leaves.items()
        for attribute in columns_read(filters, next(iter(schemas_of(source, statements))))
    }
    return BacktestQuery(
        name,
        plan,
        plan_sources(leaves, statements, {name: _FEED_NUMBER}),
        frozenset(attributes),
        any(users.join_inputs for filters in leaves.values() for users in filters.values()),
    )


class _OverlaidDefinitions(Mapping[str, Statement]):
    """The registered definitions with one statement added or replaced. Statements are parsed only
    when they are read."""

    def __init__(self, name: str, statement: Statement, below: Mapping[str, Statement]) -> None:
        self._name, self._statement, self._below = name, statement, below

    def __getitem__(self, name: str) -> Statement:
        return self._statement if name == self._name else self._below[name]

    def __contains__(self, name: object) -> bool:
        return name == self._name or name in self._below

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([self._name, *self._below]))

    def __len__(self) -> int:
        return len(self._below) + (self._name not in self._below)


# The replay of joins


@dataclass(frozen=True, slots=True)
class JoinedItem:
    """An item that joins or patterns have put into the feed."""

    source: str
    decided_at: datetime
    position: int


class JoinReplay:
    """For one thread and one call of `run`."""

    def __init__(self, feed: str, plan: Plan, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._stage = JoinStage({feed: plan}, schemas)
        self.unsupported = self._stage.unsupported.get(feed, "")
        """Why the joins of this feed cannot be replayed, if they cannot."""
        leaves = leaves_by_source({feed: plan}).values()
        if any(users.tested for filters in leaves for users in filters.values()):
            self.unsupported = "it calls an operator, which a backtest does not do"
        windows = [node for node in bottom_up([plan]) if isinstance(node, Window)]
        self._counts_items = any(isinstance(window.size, ItemCount) for window in windows)

    def read_from(self, since: datetime) -> datetime | None:
        """The arrival time of the first item that can affect results since a time; None if any
        item can."""
        if self._counts_items:
            return None
        return min([since, *self._stage.horizon(since).values()])

    def run(
        self, positions: Sequence[int], until: datetime, view: LogView, note: Callable[[str], None]
    ) -> list[JoinedItem]:
        """All items that are decided until a time, each once, with its first decision."""
        ordered = sorted(positions)
        position_of: dict[ItemKey, int] = {}
        joined: dict[ItemKey, JoinedItem] = {}
        for start in range(0, len(ordered), ROWS_AT_ONCE):
            note(f"joining: {start:,} of {len(ordered):,} items")
            chunk = ordered[start : start + ROWS_AT_ONCE]
            arrivals = []
            for row in _read(view, chunk):
                position_of.setdefault((row.source, row.id), row.position)
                arrivals.append(Arrival(row.item(self._schemas[row.source]), row.arrived))
            self._stage.push(arrivals)
            if arrivals:
                # The next chunk may have further arrivals of the last instant.
                outputs = self._stage.advance(arrivals[-1].arrived - _STEP)
                _add_outputs(outputs, position_of, joined)
        _add_outputs(self._stage.advance(until), position_of, joined)
        return list(joined.values())


def _read(view: LogView, positions: Sequence[int]) -> list[LoggedItem]:
    return view.ask(lambda: view.read(view.places(positions)))


def _add_outputs(
    outputs: Sequence[FeedOutput],
    position_of: Mapping[ItemKey, int],
    joined: dict[ItemKey, JoinedItem],
) -> None:
    for output in outputs:
        source, decided_at = output.item.source, output.decided_at
        key = source, output.item.id
        joined.setdefault(key, JoinedItem(source, decided_at, position_of[key]))
