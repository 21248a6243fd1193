"""The input of the configuration solvers, and their result ([Delta §2.3]).

    rewritings      the ways in which each view can be computed from others (the ∧ nodes of the RG)
    costs           utilisation and latency of each rewriting, and of each view from the source
    limits          how many views a view may feed (B_out), and how many the source may (B_D)

Invariant: all arrays have matching sizes, a rewriting reads at least one view and never its own,
all costs are finite, and every local latency is above zero. The last one keeps LOGA free of cycles
(loga.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headgate.model.errors import InvalidValue
from headgate.views.rewrite_cgr import Rewritings

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]

UNLIMITED = int(np.iinfo(np.int32).max)


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """U(a) and l(a) of each rewriting, and of serving each view from the source."""

    utilization: Floats
    latency_s: Floats
    source_utilization: Floats
    source_latency_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """How many views each view may feed, and the source."""

    views: Longs
    source: int

    @staticmethod
    def uniform(view_count: int, *, view: int = UNLIMITED, source: int = UNLIMITED) -> Limits:
        return Limits(np.full(view_count, view, np.int64), source)

    def relaxed(self, factor: float) -> Limits:
        """The views' limits times a factor, rounded down; the source keeps its own."""
        larger = np.minimum(np.floor(self.views * factor), UNLIMITED).astype(np.int64)
        return Limits(larger, self.source)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    rewritings: Rewritings
    costs: Costs
    limits: Limits

    def __post_init__(self) -> None:
        check_rewritings(self.rewritings)
        views, count = self.rewritings.view_count, len(self.rewritings.member_start) - 1
        costs = self.costs
        for name, values, size in (
            ("utilization", costs.utilization, count),
            ("latency_s", costs.latency_s, count),
            ("source_utilization", costs.source_utilization, views),
            ("source_latency_s", costs.source_latency_s, views),
        ):
            _check_cost(name, values, size, is_latency="latency" in name)
        if len(self.limits.views) != views:
            raise InvalidValue(f"{len(self.limits.views):,} limits for {views:,} views")
        if views and (int(self.limits.views.min()) < 0 or self.limits.source < 0):
            raise InvalidValue("a limit is below zero: write 0 for a view that feeds nobody")


def _check_cost(name: str, values: Floats, size: int, *, is_latency: bool) -> None:
    if len(values) != size:
        raise InvalidValue(f"{name}: {len(values):,} values, expected {size:,}")
    wrong = ~np.isfinite(values) | ((values <= 0) if is_latency else (values < 0))
    if wrong.any():
        position = int(np.argmax(wrong))
        expected = "above zero" if is_latency else "zero or more"
        raise InvalidValue(
            f"{name}[{position}] is {values[position]}: expected a number {expected}"
        )


def check_rewritings(rewritings: Rewritings) -> None:
    """Raise InvalidValue if arrays do not match, or a rewriting reads no view or its own."""
    views, start = rewritings.view_count, rewritings.view_start
    count = len(rewritings.member_start) - 1
    _check_starts("view_start", start, views, count)
    _check_starts("member_start", rewritings.member_start, count, len(rewritings.members))
    lowest, highest = (int(f(rewritings.members, initial=0)) for f in (np.min, np.max))
    if lowest < 0 or (highest >= views and len(rewritings.members)):
        raise InvalidValue(f"members: a view's number is not among 0 … {views - 1}")
    sizes = np.diff(rewritings.member_start)
    if count and int(sizes.min()) < 1:
        raise InvalidValue(f"rewriting {int(np.argmin(sizes))} reads no view")
    first = np.zeros(len(rewritings.members), np.bool_)
    first[rewritings.member_start[:-1]] = True
    unordered = (np.diff(rewritings.members, prepend=-1) <= 0) & ~first
    if unordered.any():
        number = np.searchsorted(rewritings.member_start, np.argmax(unordered), side="right") - 1
        raise InvalidValue(
            f"rewriting {int(number)} reads views that are not in order, or one twice"
        )
    reads_itself = (
        np.repeat(np.repeat(np.arange(views), np.diff(start)), sizes) == rewritings.members
    )
    if reads_itself.any():
        view = int(rewritings.members[np.argmax(reads_itself)])
        raise InvalidValue(f"view {view} has a rewriting that reads itself")


def _check_starts(name: str, start: Longs, count: int, end: int) -> None:
    if len(start) != count + 1 or int(start[0]) != 0 or int(start[-1]) != end:
        raise InvalidValue(f"{name}: expected {count + 1:,} values from 0 to {end:,}")
    if count and int(np.diff(start).min()) < 0:
        raise InvalidValue(f"{name} falls at {int(np.argmin(np.diff(start)))}")


@dataclass(frozen=True, slots=True, eq=False)
class SolverResult:
    """`choice` is None if no configuration was found; a bound of infinity proves there is none."""

    choice: Longs | None
    bound: float
    price: Floats | None = None
    """[view, and last the source]: the Lagrangian multipliers that prove the bound."""
