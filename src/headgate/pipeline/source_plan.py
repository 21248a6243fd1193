"""The compiled plan of one source: a program of all its filters, and the feeds behind each filter.

    filters on Tickets ──► program          the leaves (filters) that an item matches   [3, 8]
    users of each leaf ──► feed_start, …    feeds that the item belongs to              Cheap, Trips
                       ──► inner_start, …   feeds with joins that the item is input of  Together
                       ──► clause_start, …  clauses that operators have to decide       Mobs

A filter that calls operators is split into clauses (operators/orders/clauses.py). Each clause has a
guard, the part that calls no operator. Guards are leaves of the program, so operators are called
only for items that satisfy a guard (operator_stage.py).

Feeds are numbers here. A feed has at most one leaf per source (plan/leaves.py), so no feed occurs
twice for an item. A source plan is one immutable file, named by its content and memory-mapped by
every worker (match/program.py says how files are checked).
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
from headgate.match.program import NO_ROWS, Program, compile_program
from headgate.model.filters import Filter
from headgate.model.schema import Schema
from headgate.operators.orders.clause_table import (
    ClauseTable,
    OperatorSubscriptions,
    check_clause_table,
)
from headgate.plan.leaves import FilterUsers, Leaves

KIND, VERSION = "source plan", 3
FEED_MAX = 2**31 - 1
PLANS_OPEN_MAX = 4_096


@dataclass(frozen=True, slots=True, eq=False)
class SourcePlan:
    """Immutable; any number of threads may use it at once."""

    source: str
    schema: Schema
    program: Program
    feed_start: Ints
    """An item that matches leaf n belongs to feeds[feed_start[n] : feed_start[n + 1]]."""
    feeds: Ints
    inner_start: Ints
    inner: Ints
    """Likewise the feeds for which the item is input of a window join or pattern."""
    clause_start: Ints
    clauses: Ints
    """Likewise the clauses whose guard is leaf n."""
    tests: ClauseTable | None = None
    """The clauses with operator calls; its subscriptions are feed numbers."""

    def check(self) -> None:
        """Check that all indices are within bounds (match/bounds.py); the file may be damaged."""
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

    def match(self, batch: Batch, muted: frozenset[int] = NO_ROWS) -> Matched:
        """Feeds that need one of the muted rows are wrong; the caller drops them
        (feed_costs.py)."""
        leaves = ProgramMatcher(self.program).match(batch, muted)
        return Matched(
            _targets_of(leaves, self.feed_start, self.feeds),
            _targets_of(leaves, self.inner_start, self.inner),
            _targets_of(leaves, self.clause_start, self.clauses),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """For each item: feeds that it belongs to, feeds whose joins it is input of (`inner`), and
    clauses that operators have to decide."""

    feeds: BatchMatches
    inner: BatchMatches
    clauses: BatchMatches


def plan_sources(
    leaves_by_source: Mapping[str, Leaves],
    definitions: Definitions,
    number_of: Mapping[str, int],
) -> dict[str, SourcePlan]:
    """The plan of each source, from the filters of all feeds on it."""
    return {
        source: source_plan(
            source, next(iter(schemas_of(source, definitions))), leaves, number_of=number_of
        )
        for source, leaves in leaves_by_source.items()
    }


def source_plan(
    source: str,
    schema: Schema,
    leaves: Mapping[Filter, FilterUsers],
    *,
    number_of: Mapping[str, int],
    compiled: Callable[[Sequence[Filter], Schema], Program] = compile_program,
) -> SourcePlan:
    """Compile the filters on a source. `compiled` arranges the program; every arrangement gives the
    same matches."""
    # A filter that is only used in operator clauses is represented by the guards of its clauses.
    direct = {
        filter_: users
        for filter_, users in leaves.items()
        if users.feeds or users.join_inputs or not users.tested
    }
    tests = tests_of(leaves.values(), number_of)
    guarded: dict[Filter, list[int]] = {}
    for clause, guard in enumerate(() if tests is None else tests.guards):
        guarded.setdefault(guard, []).append(clause)
    filters = list(dict.fromkeys([*direct, *guarded]))
    no_users = FilterUsers()
    users_of_leaf = [direct.get(filter_, no_users) for filter_ in filters]
    plan = SourcePlan(
        source,
        schema,
        compiled(filters, schema),
        *_lists([[number_of[name] for name in users.feeds] for users in users_of_leaf]),
        *_lists([[number_of[name] for name in users.join_inputs] for users in users_of_leaf]),
        *_lists([guarded.get(filter_, []) for filter_ in filters]),
        # The guards are leaves of the program.
        None if tests is None else replace(tests, guards=()),
    )
    freeze(plan)
    return plan


def tests_of(users: Iterable[FilterUsers], number_of: Mapping[str, int]) -> ClauseTable | None:
    """The operator clauses of all feeds on a source; None if no filter calls operators. A feed with
    several filters (branches of a union) has an item that satisfies one of them."""
    filters: dict[str, list[Filter]] = {}
    for filter_users in users:
        for feed, filter_ in filter_users.tested:
            filters.setdefault(feed, []).append(filter_)
    if not filters:
        return None
    subscriptions = OperatorSubscriptions()
    for feed, feed_filters in filters.items():
        subscriptions.add(number_of[feed], *feed_filters)
    return subscriptions.table()


def write_source_plan(folder: Path, plan: SourcePlan) -> Path:
    return write_stored(folder, plan, kind=KIND, version=VERSION)


def open_source_plan(path: Path, *, verify: Verify = "checksum") -> SourcePlan:
    return open_stored(path, SourcePlan, kind=KIND, version=VERSION, verify=verify)


@lru_cache(maxsize=PLANS_OPEN_MAX)
def opened_source_plan(path: str) -> SourcePlan:
    """For workers. Cached: the files never change."""
    return open_source_plan(Path(path))


def _lists(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Lists as two arrays: where each one starts, and the numbers of all."""
    starts = np.zeros(len(lists) + 1, np.int32)
    np.cumsum([len(each) for each in lists], out=starts[1:])
    return starts, np.array([number for each in lists for number in each], np.int32)


def _targets_of(leaves: BatchMatches, target_start: Ints, targets: Ints) -> BatchMatches:
    """For each item the targets (feeds or clauses) of the leaves that it matches."""
    if not targets.size:
        return BatchMatches(np.zeros_like(leaves.starts), np.zeros(0, np.int32))
    starts = np.zeros_like(leaves.starts)
    _count_targets(leaves.starts, leaves.subscriptions, target_start, starts)
    out = np.empty(int(starts[-1]), np.int32)
    _write_targets(leaves.subscriptions, target_start, targets, out)
    return BatchMatches(starts, out)


@nb.njit(nogil=True, cache=True)
def _count_targets(leaf_starts: Longs, leaves: Ints, target_start: Ints, starts: Longs) -> None:
    """In: `leaves` of item i are leaves[leaf_starts[i] : leaf_starts[i + 1]] (int64[items + 1],
    int32[matches]); targets of leaf n start at target_start[n] (int32[leaves + 1]).
    Out: `starts` int64[items + 1], where the targets of each item start."""
    total = 0
    for item in range(leaf_starts.shape[0] - 1):
        for match in range(leaf_starts[item], leaf_starts[item + 1]):
            leaf = leaves[match]
            total += target_start[leaf + 1] - target_start[leaf]
        starts[item + 1] = total


@nb.njit(nogil=True, cache=True)
def _write_targets(leaves: Ints, target_start: Ints, targets: Ints, out: Ints) -> None:
    """In: as in `_count_targets`, with the targets of all leaves (int32).
    Out: `out` int32[starts[-1]], the targets of all matches in order."""
    used = 0
    for match in range(leaves.shape[0]):
        leaf = leaves[match]
        for position in range(target_start[leaf], target_start[leaf + 1]):
            out[used] = targets[position]
            used += 1
