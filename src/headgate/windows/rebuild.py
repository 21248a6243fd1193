"""The state of the join stage after a restart, from stored items.

The store that keeps all items is the only state on disk. A stage that replays the stored items from
its replay horizon on, each with its recorded arrival, decides the same again; its outputs during
the replay were output before.

Invariant: afterwards the stage behaves as if it had never stopped.

For windows of time the horizon is known (graph.py). The `last n items` of a stream may go back
years, and how many items must be read to find n that pass a filter or a join is not known before.
So they are read from a guessed horizon. The stage knows until which time its state is uncertain; if
that can still matter, the items are read again from GROWTH times as far back, in the end from the
beginning. Cost: at most one third more than reading from the last guess."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from headgate.windows.arrivals import Arrival
from headgate.windows.stage import RETENTION_DEFAULT_S, JoinStage

GROWTH = 4
GUESS_MAX_S = 20 * 365 * 86_400.0
"""With a greater guess, everything is read."""

Read = Callable[[Mapping[str, datetime | None]], Iterable[Arrival]]
"""Reads the stored items of each source with a later time than the given one (None: all) that
arrived until the instant of the rebuild, in any order."""


def rebuild(
    stage: JoinStage, read: Read, now: datetime, *, guess_s: float = RETENTION_DEFAULT_S
) -> None:
    """Give the stage the state that it had at `now`, when everything until then was decided."""
    while guess_s <= GUESS_MAX_S:
        since = stage.horizon(now, guess_s=guess_s)
        _replay(stage, read(since), now, since)
        if stage.is_complete():
            return
        guess_s *= GROWTH
    _replay(stage, read(dict.fromkeys(stage.sources)), now, {})


def _replay(
    stage: JoinStage, stored: Iterable[Arrival], now: datetime, since: Mapping[str, datetime]
) -> None:
    stage.begin(since)
    stage.push(list(stored))
    stage.advance(now)
    stage.late = dict.fromkeys(stage.late, 0)
