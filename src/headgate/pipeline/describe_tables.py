"""How joins of tables are served, in words: for `explain`.

Stocks ⋈ Reviews on Symbol: 3 joins of 3 feeds, by Ref-SJ-Clu+
  Stocks by PER, Reviews by Rating; clusters: 2 and 1
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from headgate.join.select.boxes import LEAST
from headgate.join.select.compile_boxes import Range, SelectJoin, box_group
from headgate.join.select.schemes import SchemeName
from headgate.join.select.stabbing_sets import stab
from headgate.language.unparse_filter import unparse_filter, write_number
from headgate.model.filters import TRUE, Filter
from headgate.pipeline.join_groups import split_plan
from headgate.plan.algebra import Plan

SCHEME = SchemeName.REF_SJ_CLU_PLUS


def describe_groups(plans: Mapping[str, Plan]) -> list[str]:
    """The groups of all joins of tables that are served, two lines for each."""
    groups: dict[tuple[Sequence[str], Sequence[str]], list[tuple[str, SelectJoin]]] = {}
    for feed, plan in plans.items():
        for join in split_plan(plan).joins:
            if not join.is_empty:
                groups.setdefault(join.signature, []).append((feed, join))
    return [line for (tables, on), own in groups.items() for line in _group(tables, on, own)]


def refused_joins(plans: Mapping[str, Plan]) -> dict[str, str]:
    """The feeds whose joins of tables cannot be served, each with the reason."""
    found = {feed: split_plan(plan).refused for feed, plan in plans.items()}
    return {feed: reason for feed, reason in found.items() if reason}


def describe_join(plan: Plan) -> list[str]:
    """The ranges of a feed's joins of tables; nothing if it has none."""
    split = split_plan(plan)
    if split.refused:
        return [f"not served: {split.refused}"]
    return [line for join in split.joins for line in _join(join)]


def _group(
    tables: Sequence[str], on: Sequence[str], own: Sequence[tuple[str, SelectJoin]]
) -> Iterable[str]:
    group = box_group(range(len(own)), [join for _, join in own])
    left, right = group.dimensions
    parts = slice(0, left), slice(left, left + right)
    clusters = [len(stab(group.boxes.low[:, p], group.boxes.high[:, p])[1]) for p in parts]
    feeds = len({feed for feed, _ in own})
    yield (
        f"{' ⋈ '.join(tables)} on {', '.join(on)}: {_count(len(own), 'join')} of "
        f"{_count(feeds, 'feed')}, by {SCHEME}"
    )
    selected = [
        f"{table} by {', '.join(names)}" if names else f"all {table}"
        for table, names in zip(tables, group.attributes, strict=True)
    ]
    yield f"  {', '.join(selected)}; clusters: {clusters[0]:,} and {clusters[1]:,}"


def _join(join: SelectJoin) -> Iterable[str]:
    yield f"{' ⋈ '.join(side.table for side in join.sides)} on {', '.join(join.on)}, by {SCHEME}"
    for side in join.sides:
        ranges = [f"{name} {_range(own)}" for name, own in sorted(side.ranges.items())]
        yield f"  {side.table}: {', '.join(ranges) or 'all rows'}" + _rest(side.rest)
    if join.rest != TRUE:
        yield f"  results are tested: {unparse_filter(join.rest)}"


def _rest(rest: Filter) -> str:
    return "" if rest == TRUE else f"; results are tested: {unparse_filter(rest)}"


def _range(own: Range) -> str:
    """As it is written in mathematics.

    >>> _range((45.0, 70.0)), _range((6.0, math.inf)), _range((LEAST, 3.5))
    ('[45, 70]', '[6, ∞)', '(−∞, 3.5]')
    """
    low, high = own
    left = "(−∞" if low <= LEAST else f"[{write_number(low)}"
    right = "∞)" if high == math.inf else f"{write_number(high)}]"
    return f"{left}, {right}"


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
