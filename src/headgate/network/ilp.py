"""The integer linear program of Table 1 ([Delta §3.3]), solved by HiGHS.

    minimise    Σ U_r x_r            x_r: rewriting r is chosen, or the source, for a view
    such that   Σ x_r = 1            for each view                                        (2)
                Σ x_r ≤ B_out        over all rewritings that read v, for each v, and D   (4)

The variables of edges into ∧ nodes are left out: by equation (3) each equals that of its rewriting.

The paper removes cycles from the graph first; here the graph may have cycles. If a solution has a
cycle, a constraint for the set of its views is added, and the program is solved again:

    Σ x_r ≥ 1    over all rewritings, and the source, of views in the set that read nothing of it

In every configuration some view of the set is fed from outside it. So the constraint excludes the
solution with the cycle, and no configuration.

Invariant: the choices are optimal if the bound equals their utilisation. The bound is valid even if
the time is over.
"""

from __future__ import annotations

import time

import highspy
import numpy as np

from headgate.network.configuration import SOURCE, Configuration, utilization_of
from headgate.network.configuration_problem import UNLIMITED, Floats, Longs, Problem, SolverResult

ROUNDS_MAX = 1_000


def configure_ilp(problem: Problem, *, time_s: float = 60.0) -> SolverResult:
    until = time.monotonic() + time_s
    if not problem.rewritings.view_count:
        return SolverResult(np.zeros(0, np.int64), 0.0)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_abs_gap", 1e-9)
    solver.passModel(_model(problem))
    bound = -np.inf
    for _ in range(ROUNDS_MAX):
        left_s = until - time.monotonic()
        if left_s <= 0:
            break
        solver.setOptionValue("time_limit", left_s)
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return SolverResult(None, np.inf)
        info = solver.getInfo()
        bound = max(bound, info.mip_dual_bound)
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            break
        choice = _choices(problem, np.asarray(solver.getSolution().col_value))
        loops = _loops(problem, choice)
        if not loops:
            if status == highspy.HighsModelStatus.kOptimal:
                bound = min(bound, utilization_of(problem, choice))
            return SolverResult(choice, float(bound))
        for loop in loops:
            _add_entrance(solver, problem, loop)
    return SolverResult(None, float(bound))


def _model(problem: Problem) -> highspy.HighsLp:
    """Columns: the source for each view, then the rewritings. Rows: views, capacities, source."""
    rewritings, costs, limits = problem.rewritings, problem.costs, problem.limits
    views, count = rewritings.view_count, len(costs.utilization)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = views + count, 2 * views + 1
    model.col_cost_ = np.concatenate([costs.source_utilization, costs.utilization])
    model.col_lower_, model.col_upper_ = np.zeros(views + count), np.ones(views + count)
    model.integrality_ = [highspy.HighsVarType.kInteger] * (views + count)
    limit = np.append(limits.views, limits.source).astype(np.float64)
    limit[limit >= UNLIMITED] = highspy.kHighsInf
    model.row_lower_ = np.concatenate([np.ones(views), np.full(views + 1, -highspy.kHighsInf)])
    model.row_upper_ = np.concatenate([np.ones(views), limit])
    start, index = _columns(problem)
    model.a_matrix_.start_, model.a_matrix_.index_ = start, index
    model.a_matrix_.value_ = np.ones(len(index))
    return model


def _columns(problem: Problem) -> tuple[Longs, Longs]:
    """The matrix by columns: the start of each column, and the rows of its ones."""
    rewritings, views = problem.rewritings, problem.rewritings.view_count
    numbers = np.arange(views)
    owner = np.repeat(numbers, np.diff(rewritings.view_start))
    sizes = np.diff(rewritings.member_start)
    start = np.concatenate(
        [2 * numbers, 2 * views + rewritings.member_start + np.arange(len(owner) + 1)]
    )
    index = np.empty(start[-1], np.int64)
    index[0 : 2 * views : 2], index[1 : 2 * views : 2] = numbers, 2 * views
    first = start[views:-1]
    is_member = np.ones(len(index), np.bool_)
    is_member[: 2 * views], is_member[first] = False, False
    index[first] = owner
    index[is_member] = views + rewritings.members
    assert int(sizes.sum()) == int(is_member.sum())
    return start, index


def _choices(problem: Problem, values: Floats) -> Longs:
    views, start = problem.rewritings.view_count, problem.rewritings.view_start
    choice = np.full(views, SOURCE, np.int64)
    taken = np.flatnonzero(values[views:] > 0.5)
    choice[np.searchsorted(start, taken, side="right") - 1] = taken
    return choice


def _loops(problem: Problem, choice: Longs) -> list[Longs]:
    """The cycles of the choices, each as a set of views."""
    rewritings = problem.rewritings
    configuration = Configuration.of(problem, choice)
    unfed = np.ones(len(choice), np.bool_)
    unfed[configuration.order] = False
    loops, seen = [], ~unfed
    for view in np.flatnonzero(unfed).tolist():
        path: list[int] = []
        current = view
        while not seen[current]:
            seen[current] = True
            path.append(current)
            member_range = slice(
                *rewritings.member_start[choice[current] : choice[current] + 2].tolist()
            )
            current = next(
                each for each in rewritings.members[member_range].tolist() if unfed[each]
            )
        if current in path:
            loops.append(np.array(path[path.index(current) :], np.int64))
    return loops


def _add_entrance(solver: highspy.Highs, problem: Problem, loop: Longs) -> None:
    """Add the constraint that one view of the cycle reads nothing of the cycle."""
    rewritings, views = problem.rewritings, problem.rewritings.view_count
    columns = loop.tolist()
    for view in loop.tolist():
        for r in range(*rewritings.view_start[view : view + 2].tolist()):
            member_range = slice(*rewritings.member_start[r : r + 2].tolist())
            if not np.isin(rewritings.members[member_range], loop).any():
                columns.append(views + r)
    solver.addRow(
        1.0,
        highspy.kHighsInf,
        len(columns),
        np.array(columns, np.int32),
        np.ones(len(columns)),
    )
