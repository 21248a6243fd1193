"""A configuration and its plan as text: levels, which view reads which, where joins run, loads.

    level 2, 2 views
      SalesAsia at Rome   from Asia at Paris ⋈ Sales at Oslo, joined at Paris   feeds 0 of 45
    solver ilp, requested auto: the graph has 412 reads, at most 30,000; gap at most 0.00%, 0.1 s
    LOGA: mean latency 35.8 ms to 14.0 ms (-60.9%), utilisation +7.0%, 0.1 s

The same views and choices give the same text: views are in the order of their labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headgate.network.configuration import SOURCE, Configuration
from headgate.network.configuration_problem import UNLIMITED, Ints
from headgate.network.configure import NetworkPlan, Solver
from headgate.network.physical_plans import AT_VIEW


@dataclass(frozen=True, slots=True)
class ViewLabel:
    """The name of a view and the name of its site."""

    name: str
    site: str

    def __str__(self) -> str:
        return self.name if self.name == self.site else f"{self.name} at {self.site}"


@dataclass(frozen=True, slots=True)
class FedView:
    """One view of a configuration, with names in place of numbers."""

    label: ViewLabel
    level: int
    members: tuple[ViewLabel, ...]
    """The views that it reads; empty if the source serves it."""
    join_site: str
    feeds: int
    limit: int | None
    ways: int = 0
    """The number of its rewritings, chosen or not."""

    def source_text(self) -> str:
        if not self.members:
            other = f"{self.ways:,} other way{'s' if self.ways > 1 else ''}"
            return f"from the source ({other if self.ways else 'no other way'})"
        joined = " ⋈ ".join(map(str, self.members))
        where = "" if self.join_site == self.label.site else f", computed at {self.join_site}"
        return f"from {joined}{where}"

    def load_text(self) -> str:
        return f"feeds {self.feeds:,}" + ("" if self.limit is None else f" of {self.limit:,}")


def fed_views(
    configuration: Configuration, labels: Sequence[ViewLabel], join_at: Ints
) -> list[FedView]:
    """All views, by level and label."""
    views = [_fed(configuration, labels, join_at, view) for view in range(len(labels))]
    return sorted(views, key=lambda each: (each.level, str(each.label)))


def _fed(
    configuration: Configuration, labels: Sequence[ViewLabel], join_at: Ints, view: int
) -> FedView:
    rewritings, r = configuration.problem.rewritings, int(configuration.choice[view])
    members: tuple[ViewLabel, ...] = ()
    join_site = labels[view].site
    if r != SOURCE:
        member_range = slice(*rewritings.member_start[r : r + 2].tolist())
        members = tuple(labels[member] for member in rewritings.members[member_range].tolist())
        if join_at[r] != AT_VIEW:
            join_site = members[int(join_at[r])].site
    limit = int(configuration.problem.limits.views[view])
    return FedView(
        labels[view],
        int(configuration.level[view]),
        members,
        join_site,
        int(configuration.loads[view]),
        None if limit >= UNLIMITED else limit,
        int(rewritings.view_start[view + 1] - rewritings.view_start[view]),
    )


def explain_network(views: Sequence[FedView]) -> str:
    return "\n".join(_lines(views))


def _lines(views: Sequence[FedView]) -> Iterator[str]:
    wide = max((len(str(view.label)) for view in views), default=0)
    fed = max((len(view.source_text()) for view in views), default=0)
    level = 0
    for view in views:
        if view.level != level:
            level = view.level
            count = sum(other.level == level for other in views)
            yield f"level {level}, {count:,} view{'s' if count > 1 else ''}"
        yield f"  {view.label!s:<{wide}}  {view.source_text():<{fed}}  {view.load_text()}"


def explain_plan(plan: NetworkPlan) -> str:
    """Which solver was used and why, how good its result is, and what LOGA gained."""
    requested = f", requested {plan.requested}" if plan.requested is Solver.AUTO else ""
    solver = (
        f"solver {plan.solver}{requested}: {plan.reason}; "
        f"gap at most {plan.gap:.2%}, {plan.solving_s:.1f} s"
    )
    return f"{solver}\n{_loga_text(plan)}"


def _loga_text(plan: NetworkPlan) -> str:
    if not plan.has_run_loga:
        return "LOGA was not run"
    cheap, fast = plan.cheap, plan.fast
    views = max(len(fast.choice), 1)
    return (
        f"LOGA: mean latency {1e3 * cheap.latency_s / views:.1f} ms to "
        f"{1e3 * fast.latency_s / views:.1f} ms ({_change(cheap.latency_s, fast.latency_s)}), "
        f"utilisation {_change(cheap.utilization, fast.utilization)}, {plan.latency_s:.1f} s"
    )


def _change(before: float, after: float) -> str:
    return f"{(after - before) / before if before else 0.0:+.1%}"
