"""How large a plan may become. Beyond that there is a PlanError, never an explosion."""

from __future__ import annotations

from headgate.model.errors import PlanError

FEED_DEPTH_MAX = 128
"""Feeds over feeds over feeds …"""

JOIN_DEPTH_MAX = 100
"""Joins, table joins and matches over each other, after composition."""

BRANCHES_MAX = 10_000
"""Inputs of one union in normal form; feeds over feeds can double them with every feed."""


def check_branches(count: int) -> None:
    if count > BRANCHES_MAX:
        raise PlanError(
            f"the plan has more than {BRANCHES_MAX:,} branches; filter fewer alternatives, or "
            "materialise a feed below it with 'register feed … apply … as …'"
        )


def check_join_depth(depth: int) -> None:
    if depth > JOIN_DEPTH_MAX:
        raise PlanError(
            f"the plan has more than {JOIN_DEPTH_MAX} joins over each other; "
            "materialise a feed below it with 'register feed … apply … as …'"
        )
