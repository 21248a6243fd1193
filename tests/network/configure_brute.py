"""The oracle of the solvers: the best configuration by trying all, for a handful of views."""

from __future__ import annotations

import itertools

import numpy as np

from headgate.model.errors import PlanError
from headgate.network.configuration import (
    SOURCE,
    Configuration,
    check_configuration,
    utilization_of,
)
from headgate.network.configuration_problem import Longs, Problem

CONFIGURATIONS_MAX = 1_000_000


def configure_brute(problem: Problem) -> Longs | None:
    """The choices with the least utilisation; None if no configuration is within the limits."""
    start = problem.rewritings.view_start
    ways = [(SOURCE, *range(first, end)) for first, end in itertools.pairwise(start.tolist())]
    count = int(np.prod([float(len(each)) for each in ways]))
    if count > CONFIGURATIONS_MAX:
        raise PlanError(f"there are {count:,} configurations: too many to try them all")
    best, result = np.inf, None
    for each in itertools.product(*ways):
        choice = np.array(each, np.int64)
        reached = utilization_of(problem, choice)
        if reached < best and _is_configuration(problem, choice):
            best, result = reached, choice
    return result


def _is_configuration(problem: Problem, choice: Longs) -> bool:
    try:
        check_configuration(Configuration.of(problem, choice))
    except PlanError:
        return False
    return True
