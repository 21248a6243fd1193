"""What is asked of one source: a program of all filters on it, and who asks for each.

    filters on Tickets ──► program          the leaves that an item matches     [3, 8]
    feeds behind each  ──► feed_start, …    the feeds that have it              Cheap, Trips
                       ──► inner_start, …   those that look further at it       Mobs

Feeds are numbers here. A feed asks a source once (plan/leaves.py), so no feed comes twice for an
item. A source plan is one file, mapped by every worker (match/program_file.py says how files are
checked); the same plan has the same file, and a file never changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numba as nb
import numpy as np

from headgate.language.schemas import schemas_of
from headgate.match.batch import Batch
from headgate.match.bounds import check_indices, check_starts
from headgate.match.kernels import Ints, Longs
from headgate.match.matcher import Matcher, Matches
from headgate.match.program import Program, compile_program
from headgate.match.snapshot import Verify
from headgate.match.stored import freeze
from headgate.match.stored_file import open_stored, write_stored
from headgate.model.filters import Filter
from headgate.model.schema import Schema
from headgate.plan.leaves import Askers, Leaves
from headgate.plan.translate import Definitions

KIND, VERSION = "source plan", 1
FEED_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class SourcePlan:
    """Immutable; any number of threads may use it at once."""

    source: str
    schema: Schema
    program: Program
    feed_start: Ints
    """Leaf n is asked for by feeds[feed_start[n] : feed_start[n + 1]], which then have the item."""
    feeds: Ints
    inner_start: Ints
    inner: Ints
    """… and by these, which look further at it."""

    def check(self) -> None:
        """That every index is within its bounds, whatever file this comes from (bounds.py)."""
        self.program.check()
        leaves = self.program.subscription_count
        check_starts("feed_start", self.feed_start, self.feeds.size, parts=leaves)
        check_starts("inner_start", self.inner_start, self.inner.size, parts=leaves)
        for name, feeds in (("feeds", self.feeds), ("inner", self.inner)):
            check_indices(name, feeds, FEED_MAX + 1)

    def match(self, batch: Batch) -> tuple[Matches, Matches]:
        """For each item the feeds that have it, and those that look further at it."""
        leaves = Matcher(self.program).match(batch)
        return (
            _behind(leaves, self.feed_start, self.feeds),
            _behind(leaves, self.inner_start, self.inner),
        )


def plan_sources(
    asked: Mapping[str, Leaves], definitions: Definitions, number_of: Mapping[str, int]
) -> dict[str, SourcePlan]:
    """The plan of each source, given what is asked of it. Feeds are known by their numbers."""
    return {
        source: source_plan(
            source, next(iter(schemas_of(source, definitions))), leaves, number_of=number_of
        )
        for source, leaves in asked.items()
    }


def source_plan(
    source: str, schema: Schema, leaves: Mapping[Filter, Askers], *, number_of: Mapping[str, int]
) -> SourcePlan:
    askers = list(leaves.values())
    program = compile_program(list(leaves), schema)
    feeds = _lists([[number_of[name] for name in each.feeds] for each in askers])
    inner = _lists([[number_of[name] for name in each.inner] for each in askers])
    plan = SourcePlan(source, schema, program, *feeds, *inner)
    freeze(plan)
    return plan


def write_source_plan(folder: Path, plan: SourcePlan) -> Path:
    return write_stored(folder, plan, kind=KIND, version=VERSION)


def open_source_plan(path: Path, *, verify: Verify = "checksum") -> SourcePlan:
    return open_stored(path, SourcePlan, kind=KIND, version=VERSION, verify=verify)


def _lists(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    starts = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(each) for each in lists], out=starts[1:])
    return starts, np.array([number for each in lists for number in each], np.int32)


def _behind(leaves: Matches, behind_start: Ints, behind: Ints) -> Matches:
    """From leaves to what is behind them."""
    if not behind.size:
        return Matches(np.zeros_like(leaves.starts), np.zeros(0, np.int32))
    starts = np.zeros_like(leaves.starts)
    _count_behind(leaves.starts, leaves.subscriptions, behind_start, starts)
    found = np.empty(int(starts[-1]), np.int32)
    _write_behind(leaves.subscriptions, behind_start, behind, found)
    return Matches(starts, found)


@nb.njit(nogil=True, cache=True)
def _count_behind(leaf_starts: Longs, leaves: Ints, behind_start: Ints, starts: Longs) -> None:
    total = 0
    for item in range(leaf_starts.shape[0] - 1):
        for at in range(leaf_starts[item], leaf_starts[item + 1]):
            total += behind_start[leaves[at] + 1] - behind_start[leaves[at]]
        starts[item + 1] = total


@nb.njit(nogil=True, cache=True)
def _write_behind(leaves: Ints, behind_start: Ints, behind: Ints, found: Ints) -> None:
    used = 0
    for at in range(leaves.shape[0]):
        for place in range(behind_start[leaves[at]], behind_start[leaves[at] + 1]):
            found[used] = behind[place]
            used += 1
