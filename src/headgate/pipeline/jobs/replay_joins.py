"""What joins and patterns would have made of what the leaves let through, in order of arrival.

The join stage is that of a run (windows/stage.py). Windows reach back before the first instant of
the backtest, so their items are read from there on; how far `last n items` reach is not known
before they are read, so with those everything is read.

Rows are read some thousands at a time; in memory are the places of all of them, what is in windows,
and what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from headgate.model.duration import ItemCount
from headgate.model.schema import Schema
from headgate.plan.algebra import Plan, Window, bottom_up
from headgate.plan.leaves import leaves_by_source
from headgate.store.read_store import RowLocation, read_rows
from headgate.windows.arrivals import Arrival, Output
from headgate.windows.stage import JoinStage

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
        outputs: Sequence[Output],
        place_of: Mapping[Key, RowLocation],
        found: dict[Key, Joined],
    ) -> None:
        for each in outputs:
            key = each.item.source, each.item.id
            found.setdefault(key, Joined(each.item.source, each.decided_at, place_of[key]))
