"""What a backtest asks: a feed that may not be registered, planned beside what is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

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
from headgate.store.item_files import JOINED
from headgate.store.read_store import RowLocation, read_rows
from headgate.windows.arrivals import Arrival, FeedOutput
from headgate.windows.stage import JoinStage

_NUMBER = 0
"""Of the only feed that is asked for."""


@dataclass(frozen=True, slots=True)
class BacktestQuery:
    feed: str
    plan: Plan
    plans: Mapping[str, SourcePlan]
    """What is asked of each source."""
    attributes: frozenset[str]
    """All that the filters look at."""
    looks_further: bool
    """Whether something stands above the leaves: joins, patterns, operators."""

    @property
    def schemas(self) -> dict[str, Schema]:
        return {source: each.schema for source, each in self.plans.items()}

    def may_be_in(self, group: str) -> bool:
        schemas = {group_of(each) for each in self.schemas.values()}
        # What joins have found is there a second time; it is no further item.
        return may_hold(group, schemas) and not group.startswith(JOINED)


def backtest_query(feed: CreateFeed, definitions: Mapping[str, Statement]) -> BacktestQuery:
    """Checks and plans the feed; a registered one of the same name is not looked at."""
    name = str(feed.name)
    known = _Overlaid(name, check(feed, definitions), definitions)
    plan = normalize(compose(name, known))
    leaves = untested(leaves_by_source({name: plan}))
    attributes = {
        attribute
        for source, own in leaves.items()
        for attribute in columns_read(own, next(iter(schemas_of(source, known))))
    }
    return BacktestQuery(
        name,
        plan,
        plan_sources(leaves, known, {name: _NUMBER}),
        frozenset(attributes),
        any(users.join_inputs for own in leaves.values() for users in own.values()),
    )


class _Overlaid(Mapping[str, Statement]):
    """What is registered, and one statement before it; nothing is parsed that nobody looks at."""

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


# === part: headgate.pipeline.jobs.backtest_query
# What joins and patterns would have made of what the leaves let through, in order of arrival.
#
# The join stage is that of a run (windows/stage.py). Windows reach back before the first instant of
# the backtest, so their items are read from there on; how far `last n items` reach is not known
# before they are read, so with those everything is read.
#
# Rows are read some thousands at a time; in memory are the places of all of them, what is in
# windows,
# and what was found.

PLACES_MAX = 2_000_000
ROWS_AT_ONCE = 4_096
_STEP = timedelta(microseconds=1)

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Joined:
    """An item that the feed has because of what stands above its leaves."""

    source: str
    decided_at: datetime
    place: RowLocation


class Replay:
    """For one thread, and once."""

    def __init__(self, feed: str, plan: Plan, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._stage = JoinStage({feed: plan}, schemas)
        self.unsupported = self._stage.unsupported.get(feed, "")
        asked = leaves_by_source({feed: plan}).values()
        if any(each.tested for leaves in asked for each in leaves.values()):
            self.unsupported = "it calls an operator, which a backtest does not do"
        windows = [node for node in bottom_up([plan]) if isinstance(node, Window)]
        self._counts_items = any(isinstance(each.size, ItemCount) for each in windows)

    def read_from(self, since: datetime) -> datetime | None:
        """From when on items matter to what is decided since a moment; or all of them do."""
        if self._counts_items:
            return None
        return min([since, *self._stage.horizon(since).values()])

    def run(
        self,
        places: Sequence[RowLocation],
        until: datetime,
        damaged: dict[Path, str],
        note: Callable[[str], None],
    ) -> list[Joined]:
        """All that is decided until a moment, each item once, when it was first decided."""
        ordered = sorted(places)
        place_of: dict[Key, RowLocation] = {}
        found: dict[Key, Joined] = {}
        for start in range(0, len(ordered), ROWS_AT_ONCE):
            note(f"joining: {start:,} of {len(ordered):,} items")
            chunk = ordered[start : start + ROWS_AT_ONCE]
            arrivals = []
            for place, row in read_rows(chunk, damaged):
                place_of.setdefault((row.source, row.id), place)
                arrivals.append(Arrival(row.item(self._schemas[row.source]), row.arrived))
            self._stage.push(arrivals)
            if arrivals:
                # What arrived at the last moment may go on in the next chunk.
                self._take(self._stage.advance(arrivals[-1].arrived - _STEP), place_of, found)
        self._take(self._stage.advance(until), place_of, found)
        return list(found.values())

    def _take(
        self,
        outputs: Sequence[FeedOutput],
        place_of: Mapping[Key, RowLocation],
        found: dict[Key, Joined],
    ) -> None:
        for each in outputs:
            key = each.item.source, each.item.id
            found.setdefault(key, Joined(each.item.source, each.decided_at, place_of[key]))
