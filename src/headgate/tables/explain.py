"""Groups and joins of tables as text, for `headgate explain`.

Stocks ⋈ Reviews on Symbol: 3 joins of 3 feeds, by Ref-SJ-Clu+
  Stocks by PER, Reviews by Rating; clusters: 2 and 1
Stocks ⋈ Reviews ⋈ Authors on Symbol, Author: 1 join of 1 feed
  results: Stocks by PER, all Reviews, Authors by Age; all rows in one bucket
Stocks^Reviews on Symbol: 1 semijoin of 1 feed, by Ref-SJ-Clu+
  Stocks by PER, all Reviews; clusters: 1 and 1
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from headgate.language.unparse import unparse_filter, write_number
from headgate.model.filters import TRUE, Filter
from headgate.plan.algebra import Plan
from headgate.tables.boxes import LEAST, Range, SelectJoin, box_group
from headgate.tables.decompose import choose_semijoins, semijoin_costs
from headgate.tables.group_joins import (
    GroupAssigner,
    GroupMember,
    Registered,
    attributes_by_table,
    split_payloads,
)
from headgate.tables.join_groups import JoinGroup, split_plan
from headgate.tables.schemes import DEFAULT_SCHEME, JoinScheme
from headgate.tables.stabbing_sets import stab


def describe_groups(
    plans: Mapping[str, Plan], tables: Registered, scheme: JoinScheme = DEFAULT_SCHEME
) -> list[str]:
    """The groups of all table joins that are served by this scheme, two lines for each."""
    parts = GroupAssigner(tables)
    groups: dict[str, list[tuple[str, GroupMember]]] = {}
    for feed, plan in plans.items():
        for join in split_plan(plan).joins:
            for part in parts.of(join):
                groups.setdefault(part.group.name, []).append((feed, part))
    return [line for members in groups.values() for line in _group(members, scheme)]


def refused_joins(plans: Mapping[str, Plan]) -> dict[str, str]:
    """The feeds whose joins of tables cannot be served, each with the reason."""
    reasons = {feed: split_plan(plan).refused for feed, plan in plans.items()}
    return {feed: reason for feed, reason in reasons.items() if reason}


def describe_join(plan: Plan, tables: Registered, scheme: JoinScheme = DEFAULT_SCHEME) -> list[str]:
    """The ranges of a feed's joins of tables; nothing if it has none."""
    split = split_plan(plan)
    if split.refused:
        return [f"not served: {split.refused}"]
    return [line for join in split.joins for line in _join(join, tables, scheme)]


def _group(members: Sequence[tuple[str, GroupMember]], scheme: JoinScheme) -> Iterable[str]:
    boxes = box_group(range(len(members)), [part.boxed for _, part in members])
    group, feeds = members[0][1].group, _count(len({feed for feed, _ in members}), "feed")
    names, on = [table.name for table in group.tables], ", ".join(group.on)
    if group.is_for_results:
        selected = _selected(names, attributes_by_table(boxes.attributes, len(names)))
        yield f"{' ⋈ '.join(names)} on {on}: {_count(len(members), 'join')} of {feeds}"
        yield f"  results: {selected}; {_spread(group)}"
        return
    left, right = boxes.dimensions
    sides = slice(0, left), slice(left, left + right)
    clusters = [len(stab(boxes.boxes.low[:, p], boxes.boxes.high[:, p])[1]) for p in sides]
    title = " ⋈ ".join(names) if group.form is None else str(group.form)
    count = _count(len(members), "join" if group.form is None else "semijoin")
    yield f"{title} on {on}: {count} of {feeds}, by {scheme}"
    selected = _selected(names, boxes.attributes)
    yield f"  {selected}; clusters: {clusters[0]:,} and {clusters[1]:,}"


def _selected(tables: Sequence[str], attributes: Sequence[Sequence[str]]) -> str:
    return ", ".join(
        f"{table} by {', '.join(names)}" if names else f"all {table}"
        for table, names in zip(tables, attributes, strict=True)
    )


def _spread(group: JoinGroup) -> str:
    if group.shared:
        return f"rows in buckets by {', '.join(group.shared)}"
    return "all rows in one bucket, as no join attribute is in all tables"


def _join(join: SelectJoin, tables: Registered, scheme: JoinScheme) -> Iterable[str]:
    split = split_payloads(join, tables)
    many = len(split.join.sides) > 2
    served_by = "" if many else f", by {scheme}"
    yield f"{' ⋈ '.join(side.table for side in join.sides)} on {', '.join(join.on)}{served_by}"
    for side in join.sides:
        ranges = [f"{name} {_range(own)}" for name, own in sorted(side.ranges.items())]
        yield f"  {side.table}: {', '.join(ranges) or 'all rows'}" + _rest(side.rest)
    if join.rest != TRUE:
        yield f"  results are tested: {unparse_filter(join.rest)}"
    if many:
        chosen, costs = (
            choose_semijoins(split.join, split.tables),
            semijoin_costs(split.join, split.tables),
        )
        yield f"  clients hold {', '.join(map(str, chosen.values()))}, by {scheme}"
        for form in sorted(costs.keys() - set(chosen.values())):
            least = costs[chosen[form.base]]
            if costs[form] < math.inf:
                yield f"    {form} costs {costs[form] / least:.1f} × {chosen[form.base]}"
        whole = next(GroupAssigner(tables).of(join)).group
        yield f"  results are made from all rows; {_spread(whole)}"


def _rest(rest: Filter) -> str:
    return "" if rest == TRUE else f"; results are tested: {unparse_filter(rest)}"


def _range(bounds: Range) -> str:
    """A range in mathematical notation.

    >>> _range((45.0, 70.0)), _range((6.0, math.inf)), _range((LEAST, 3.5))
    ('[45, 70]', '[6, ∞)', '(−∞, 3.5]')
    """
    low, high = bounds
    left = "(−∞" if low <= LEAST else f"[{write_number(low)}"
    right = "∞)" if high == math.inf else f"{write_number(high)}]"
    return f"{left}, {right}"


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
