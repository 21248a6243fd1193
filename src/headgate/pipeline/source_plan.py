"""What is asked of one source: a program of all filters on it, and who asks for each.

    filters on Tickets ──► program          the leaves that an item matches     [3, 8]
    feeds behind each  ──► feed_start, …    the feeds that have it              Cheap, Trips
                       ──► inner_start, …   those that look further at it       Together
                       ──► clause_start, …  clauses that operators decide       Mobs

A filter that calls operators is a few clauses (operators/orders/clauses.py), each with a guard that
calls none. Guards are leaves of the program: operators see only what their guards let through
(operator_stage.py).

Feeds are numbers here. A feed asks a source once (plan/leaves.py), so no feed comes twice for an
item. A source plan is one file, mapped by every worker (match/program.py says how files are
checked); the same plan has the same file, and a file never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numba as nb
import numpy as np

from headgate.language.schemas import Definitions, schemas_of
from headgate.match.array_file import Verify
from headgate.match.batch import Batch
from headgate.match.bit_rows import Ints, Longs
from headgate.match.bounds import check_indices, check_starts
from headgate.match.dataclass_codec import freeze, open_stored, write_stored
from headgate.match.matcher import BatchMatches, ProgramMatcher
from headgate.match.program import Program, compile_program
from headgate.model.filters import Filter
from headgate.model.schema import Schema
from headgate.operators.orders.clause_table import (
    ClauseTable,
    OperatorSubscriptions,
    check_clause_table,
)
from headgate.plan.leaves import FilterUsers, Leaves

KIND, VERSION = "source plan", 2
FEED_MAX = 2**31 - 1
PLANS_OPEN_MAX = 4_096


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
    clause_start: Ints
    clauses: Ints
    """… and is the guard of these clauses."""
    tests: ClauseTable | None = None
    """What operators decide; its subscriptions are feeds."""

    def check(self) -> None:
        """That every index is within its bounds, whatever file this comes from (bounds.py)."""
        self.program.check()
        leaves = self.program.subscription_count
        check_starts("feed_start", self.feed_start, self.feeds.size, parts=leaves)
        check_starts("inner_start", self.inner_start, self.inner.size, parts=leaves)
        check_starts("clause_start", self.clause_start, self.clauses.size, parts=leaves)
        clauses = 0
        if self.tests is not None:
            check_clause_table(self.tests)
            clauses = self.tests.clause_count
        check_indices("clauses", self.clauses, clauses)
        for name, feeds in (("feeds", self.feeds), ("inner", self.inner)):
            check_indices(name, feeds, FEED_MAX + 1)

    def match(self, batch: Batch) -> Matched:
        leaves = ProgramMatcher(self.program).match(batch)
        return Matched(
            _behind(leaves, self.feed_start, self.feeds),
            _behind(leaves, self.inner_start, self.inner),
            _behind(leaves, self.clause_start, self.clauses),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """For each item the feeds that have it, those that look further, and clauses to be tested."""

    feeds: BatchMatches
    inner: BatchMatches
    clauses: BatchMatches


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
    source: str,
    schema: Schema,
    leaves: Mapping[Filter, FilterUsers],
    *,
    number_of: Mapping[str, int],
    compiled: Callable[[Sequence[Filter], Schema], Program] = compile_program,
) -> SourcePlan:
    """What is asked of a source, compiled in one way or another: the answers are the same."""
    asked = {
        filter_: each
        for filter_, each in leaves.items()
        if each.feeds or each.join_inputs or not each.tested
    }
    tests = tests_of(leaves.values(), number_of)
    guarded: dict[Filter, list[int]] = {}
    for clause, guard in enumerate(() if tests is None else tests.guards):
        guarded.setdefault(guard, []).append(clause)
    filters = list(dict.fromkeys([*asked, *guarded]))
    nobody = FilterUsers()
    users = [asked.get(each, nobody) for each in filters]
    plan = SourcePlan(
        source,
        schema,
        compiled(filters, schema),
        *_lists([[number_of[name] for name in each.feeds] for each in users]),
        *_lists([[number_of[name] for name in each.join_inputs] for each in users]),
        *_lists([guarded.get(each, []) for each in filters]),
        # The guards are in the program.
        None if tests is None else replace(tests, guards=()),
    )
    freeze(plan)
    return plan


def tests_of(users: Iterable[FilterUsers], number_of: Mapping[str, int]) -> ClauseTable | None:
    """What operators decide on a source, if they do: a feed has what one of its branches has."""
    filters: dict[str, list[Filter]] = {}
    for each in users:
        for feed, filter_ in each.tested:
            filters.setdefault(feed, []).append(filter_)
    if not filters:
        return None
    subscriptions = OperatorSubscriptions()
    for feed, own in filters.items():
        subscriptions.add(number_of[feed], *own)
    return subscriptions.table()


def write_source_plan(folder: Path, plan: SourcePlan) -> Path:
    return write_stored(folder, plan, kind=KIND, version=VERSION)


def open_source_plan(path: Path, *, verify: Verify = "checksum") -> SourcePlan:
    return open_stored(path, SourcePlan, kind=KIND, version=VERSION, verify=verify)


@lru_cache(maxsize=PLANS_OPEN_MAX)
def opened_source_plan(path: str) -> SourcePlan:
    """As workers have it: files never change, so what is open stays right."""
    return open_source_plan(Path(path))


def _lists(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    starts = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(each) for each in lists], out=starts[1:])
    return starts, np.array([number for each in lists for number in each], np.int32)


def _behind(leaves: BatchMatches, behind_start: Ints, behind: Ints) -> BatchMatches:
    """From leaves to what is behind them."""
    if not behind.size:
        return BatchMatches(np.zeros_like(leaves.starts), np.zeros(0, np.int32))
    starts = np.zeros_like(leaves.starts)
    _count_behind(leaves.starts, leaves.subscriptions, behind_start, starts)
    found = np.empty(int(starts[-1]), np.int32)
    _write_behind(leaves.subscriptions, behind_start, behind, found)
    return BatchMatches(starts, found)


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
