"""Checking a script: its statements, names, types, plans, and whether its operators load here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from headgate.catalog.catalog import Catalog
from headgate.catalog.transaction import Outcome
from headgate.language.statements import CreateFeed, RegisterOperator, Statement
from headgate.model.atoms import Call
from headgate.model.errors import HeadgateError, OperatorError
from headgate.model.filters import atoms_of
from headgate.operators.load import check_call, load_all
from headgate.plan.algebra import Plan
from headgate.plan.normalize import normalize_all
from headgate.plan.price import Price, StatisticsOf, price_of_plan
from headgate.plan.translate import compose_all, feed_names


@dataclass(frozen=True, slots=True)
class CheckedScript:
    outcomes: Sequence[Outcome]
    cannot_run: Sequence[str]
    """Operators that cannot be loaded or called here: no error, as the script may run elsewhere."""
    prices: Mapping[str, Price]
    """What the feeds of the script will cost."""


def check_outcomes(
    catalog: Catalog, outcomes: Sequence[Outcome], allowed: Sequence[str]
) -> CheckedScript:
    """The second half of a check: `outcomes` are those of a dry run. Raises where a feed has no
    plan. `allowed` are the modules that operators may come from."""
    known, defined = _definitions(catalog, outcomes)
    plans = normalize_all(compose_all(feed_names(defined), known | defined))
    statements = [each.statement for each in outcomes]
    prices = prices_of(plans, known | defined, catalog.statistics)
    return CheckedScript(outcomes, operator_problems(statements, allowed), prices)


def prices_of(
    plans: Mapping[str, Plan], definitions: Mapping[str, Statement], statistics: StatisticsOf
) -> dict[str, Price]:
    """The prices of feeds, from their plans in normal form; each source is asked for once."""
    operators = {n: each for n, each in definitions.items() if isinstance(each, RegisterOperator)}
    known = cache(statistics)
    return {feed: price_of_plan(plan, operators, known) for feed, plan in plans.items()}


def plan_errors(catalog: Catalog, outcomes: Sequence[Outcome]) -> list[HeadgateError]:
    """The errors of all feeds that have no plan, each found by itself."""
    known, defined = _definitions(catalog, outcomes)
    numbers = {str(each.name): at for at, each in enumerate(outcomes, 1) if _defines(each)}
    errors: list[HeadgateError] = []
    for feed in feed_names(defined):
        try:
            normalize_all(compose_all([feed], known | defined))
        except HeadgateError as error:
            error.statement_number = numbers[str(feed)]
            errors.append(error)
    return errors


def _definitions(
    catalog: Catalog, outcomes: Sequence[Outcome]
) -> tuple[dict[str, Statement], dict[str, Statement]]:
    """What the catalog has, and what the script defines."""
    defined = {str(each.name): each.statement for each in outcomes if _defines(each)}
    return {**catalog.definitions()}, defined


def _defines(outcome: Outcome) -> bool:
    return outcome.name is not None and hasattr(outcome.statement, "name")


def operator_problems(statements: Iterable[Statement], allowed: Sequence[str]) -> list[str]:
    """Operators that cannot be loaded, or not be called as feeds call them. Modules are imported
    to find out, but none that is not allowed."""
    from headgate.pipeline.layer_builder import declaration_of  # noqa: PLC0415 - Spark

    listed = list(statements)
    declared = [declaration_of(each) for each in listed if isinstance(each, RegisterOperator)]
    loaded, refused = load_all(declared, allowed)
    problems = list(refused.values())
    for feed, call in _calls(listed):
        operator = loaded.get(call.operator)
        if operator is not None:
            try:
                check_call(operator.declaration, operator.form, call)
            except OperatorError as error:
                problems.append(f"feed '{feed}': {error}")
    return problems


def _calls(statements: Iterable[Statement]) -> Iterator[tuple[str, Call]]:
    for statement in statements:
        if isinstance(statement, CreateFeed):
            for condition in statement.where:
                for atom in atoms_of(condition.filter):
                    if isinstance(atom, Call):
                        yield str(statement.name), atom
