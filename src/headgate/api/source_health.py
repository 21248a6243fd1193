"""Which sources of a tenant are broken, which are quiet, and which are fine; all at once.

    broken   it could not be read the last time, or cannot run: with the reason
    quiet    nothing is wrong, but nothing has come for far longer than its own rhythm explains
    new      nothing has ever come from it
    fine     the rest

*Quiet* is not broken: the source of a weekly letter is silent for six days. So the silence is
compared with what the source itself has done: as many items as `MISSED_MIN` should have come
meanwhile, and the silence is `GAPS_MIN` times as long as the longest one of the last 14 days, which
takes nights and weekends into account. While no run is there, nobody could hear anything: then the
silence ends with the last heartbeat.

Each of the inboxes, the heartbeat and the index of the log is read once for all sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import numpy as np

from headgate.acquire.inbox_tables import FeedRow, feed_row, feed_table
from headgate.acquire.refresh_state import DAY_S
from headgate.catalog.tenants import LOCAL
from headgate.match.batch import instant_at
from headgate.pipeline.heartbeat import Heartbeat, RunState, read_heartbeat, state_of
from headgate.store.data_folder import DataFolder
from headgate.store.source_activity import SPAN_S, ActivityOfSource, SourceActivity

MISSED_MIN = 8.0
GAPS_MIN = 3.0
SILENCE_MIN_S = 900.0
ITEMS_MIN = 5
"""A source with fewer items has no rhythm yet."""
STRETCHES_MIN = 3
"""So many stretches have items, or there is no rhythm: everything came at once."""


class SourceState(StrEnum):
    BROKEN = "broken"
    QUIET = "quiet"
    NEW = "new"
    FINE = "fine"


@dataclass(frozen=True, slots=True)
class SourceHealth:
    state: SourceState
    problem: str
    """What is wrong now; empty: nothing is known to be wrong."""
    counts: ActivityOfSource
    per_day: float | None
    """Items that are expected in a day; None: there is no rhythm yet."""
    fetches: FeedRow | None
    """Of a web feed that a run has listed."""

    @property
    def last_arrived(self) -> datetime | None:
        return None if self.counts.last_us < 0 else instant_at(self.counts.last_us)


@dataclass(frozen=True, slots=True)
class RunSigns:
    """What the run of a folder says about its sources."""

    state: RunState
    as_of: datetime
    """Now, or the last heartbeat of a run that is not there any more."""
    problems: Mapping[str, str]
    """By the name that is kept."""

    @classmethod
    def of(cls, heartbeat: Heartbeat | None, now: datetime) -> RunSigns:
        state = state_of(heartbeat, now.timestamp())
        if heartbeat is None:
            return cls(state, now, {})
        last = now if state is RunState.RUNNING else datetime.fromtimestamp(heartbeat.at_s, UTC)
        return cls(state, min(last, now), {**heartbeat.errors, **heartbeat.refused})


def read_signs(folder: DataFolder, now: datetime) -> RunSigns:
    return RunSigns.of(read_heartbeat(folder), now)


def inboxes(folder: DataFolder) -> list[Path]:
    return sorted(folder.sources.glob("feeds-*"))


def fetches_of(folder: DataFolder, source: str) -> tuple[Path, FeedRow] | None:
    """The inbox of a web feed, and its row; None if no run has listed it."""
    for inbox in inboxes(folder):
        if (row := feed_row(inbox, source)) is not None:
            return inbox, row
    return None


def all_fetches(folder: DataFolder, tenant: str) -> dict[str, FeedRow]:
    """The web feeds of a tenant by the names that are kept; those of others may be among them."""
    prefix = "" if tenant == LOCAL else f"{tenant}."
    return {row.name: row for inbox in inboxes(folder) for row in feed_table(inbox, prefix=prefix)}


def judge(
    source: str, activity: SourceActivity, signs: RunSigns, fetches: FeedRow | None
) -> SourceHealth:
    """`source` is the name that is kept."""
    counts = activity.of(source)
    is_failing = fetches is not None and fetches.broken_since is not None
    problem = fetches.error if fetches is not None and is_failing else ""
    problem = problem or signs.problems.get(source, "")
    per_day = _per_day(counts, activity, signs.as_of, fetches)
    if problem or is_failing:
        state = SourceState.BROKEN
    elif counts.last_us < 0:
        state = SourceState.NEW
    elif _is_quiet(counts, activity.width_s, signs.as_of, per_day):
        state = SourceState.QUIET
    else:
        state = SourceState.FINE
    return SourceHealth(state, problem, counts, per_day, fetches)


def _per_day(
    counts: ActivityOfSource, activity: SourceActivity, as_of: datetime, fetches: FeedRow | None
) -> float | None:
    """A web feed's own estimate knows when its entries were published; other sources have come as
    often as the log says, since the first of the stretches that have items."""
    if counts.items < ITEMS_MIN:
        return None
    if fetches is not None and fetches.fetched_at is not None:
        return fetches.rate_per_day
    used = np.flatnonzero(counts.counts)
    if used.size < STRETCHES_MIN:
        return None
    began_s = activity.start_us / 1e6 + int(used[0]) * activity.width_s
    observed_s = max(as_of.timestamp() - began_s, activity.width_s)
    return float(counts.counts.sum()) / observed_s * DAY_S


def _is_quiet(
    counts: ActivityOfSource, width_s: int, as_of: datetime, per_day: float | None
) -> bool:
    silent_s = as_of.timestamp() - counts.last_us / 1e6
    if counts.items >= ITEMS_MIN and silent_s >= SPAN_S:
        return True
    if per_day is None or silent_s < SILENCE_MIN_S:
        return False
    used = np.flatnonzero(counts.counts)
    longest_s = float(np.diff(used).max(initial=1)) * width_s if used.size else 0.0
    return per_day * silent_s / DAY_S >= MISSED_MIN and silent_s > GAPS_MIN * longest_s
