"""Do two feeds have the same items over a stretch of the log? If not, which is the first one on
which they differ?

    left  ──► backtest ──► positions ┐
                                     ├─► only left, only right ──► the first of both
    right ──► backtest ──► positions ┘

Both sides are evaluated as a backtest does (backtest.py): by the matcher and the join stage of a
run. So the answer is exact for the items that the log has of that stretch, and says nothing about
others. Where a backtest cannot evaluate a feed, because it calls an operator for example, there is
no answer, and the reason is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headgate.pipeline.jobs.backtest import Backtest, Backtester, MatchedItems
from headgate.pipeline.jobs.backtest_query import POSITIONS_MAX, BacktestQuery
from headgate.pipeline.jobs.job import Note, Runner
from headgate.store.file_ranges import FileRange
from headgate.store.log_items import LoggedItem
from headgate.store.log_view import LogView


@dataclass(frozen=True, slots=True)
class FeedComparison:
    left: Backtest
    right: Backtest
    only_left: int
    only_right: int
    first: LoggedItem | None
    """The first item that only one of them has."""
    is_first_left: bool
    unknown: str = ""
    """Why it is not known whether they differ, if it is not."""

    @property
    def is_equal(self) -> bool:
        return not self.unknown and not self.only_left and not self.only_right


@dataclass(frozen=True, slots=True)
class Comparer:
    left: Backtester
    right: Backtester

    @classmethod
    def prepare(
        cls,
        left: BacktestQuery,
        right: BacktestQuery,
        view: LogView,
        *,
        since: datetime,
        until: datetime,
    ) -> Comparer:
        sides = (
            Backtester.prepare(query, view, since=since, until=until, samples=POSITIONS_MAX)
            for query in (left, right)
        )
        return cls(*sides)

    @property
    def ranges(self) -> Sequence[FileRange]:
        """What the larger side reads."""
        return max(self.left.ranges, self.right.ranges, key=len)

    def run(self, runner: Runner, view: LogView, note: Note) -> FeedComparison:
        left = self.left.run_whole(runner, view, lambda text: note(f"left: {text}"))
        right = self.right.run_whole(runner, view, lambda text: note(f"right: {text}"))
        return _compared(left, right, view)


def _compared(left: MatchedItems, right: MatchedItems, view: LogView) -> FeedComparison:
    unknown = "; ".join(
        f"{side}: {found.unknown}"
        for side, found in (("left", left), ("right", right))
        if found.unknown
    )
    if unknown:
        return FeedComparison(left.counts, right.counts, 0, 0, None, False, unknown)
    only_left, only_right = left.positions - right.positions, right.positions - left.positions
    differing = min(only_left | only_right, default=None)
    rows = [] if differing is None else view.ask(lambda: view.read(view.places([differing])))
    return FeedComparison(
        left.counts,
        right.counts,
        len(only_left),
        len(only_right),
        rows[0] if rows else None,
        differing in only_left,
    )
