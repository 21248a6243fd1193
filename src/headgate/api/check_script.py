"""Checking a script: its statements, names, types, plans, and whether its operators load here."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.catalog.transaction import Outcome
from headgate.language.parse import ReadScript
from headgate.language.statements import CreateFeed, RegisterOperator, Statement
from headgate.model.atoms import Call
from headgate.model.errors import HeadgateError, OperatorError
from headgate.model.filters import atoms_of
from headgate.operators.load import check_call, load_all
from headgate.plan.algebra import Filter, Plan, bottom_up
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


def check_script(
    catalog: TenantCatalog, script: ReadScript, allowed: Sequence[str] = ()
) -> CheckedScript | None:
    """Check everything and change nothing. Where something is wrong, all errors are added to those
    of the script, and there is no result. `allowed` are the modules that operators may be imported
    from."""
    outcomes: list[Outcome] = []
    if script.errors:
        script.errors += catalog.find_errors(script.statements, missing=script.unread)
        return None
    try:
        outcomes = catalog.apply(script.statements, dry_run=True)
        return check_outcomes(catalog, outcomes, allowed)
    except HeadgateError as error:
        found = plan_errors(catalog, outcomes) if outcomes else []
        script.errors += found or catalog.find_errors(script.statements) or [error]
        return None


def check_outcomes(
    catalog: TenantCatalog, outcomes: Sequence[Outcome], allowed: Sequence[str]
) -> CheckedScript:
    """The second half of a check: `outcomes` are those of a dry run. Raises where a feed has no
    plan."""
    definitions, defined = _definitions(catalog, outcomes)
    plans = normalize_all(compose_all(feed_names(defined), definitions))
    statements = [each.statement for each in outcomes]
    prices = prices_of(plans, definitions, catalog.statistics)
    return CheckedScript(outcomes, operator_problems(statements, allowed), prices)


def prices_of(
    plans: Mapping[str, Plan], definitions: Mapping[str, Statement], statistics: StatisticsOf
) -> dict[str, Price]:
    """The prices of feeds, from their plans in normal form; each source is asked for once."""
    known = cache(statistics)
    return {
        feed: price_of_plan(plan, _operators_in(plan, definitions), known)
        for feed, plan in plans.items()
    }


def _operators_in(plan: Plan, definitions: Mapping[str, Statement]) -> dict[str, RegisterOperator]:
    """The operators that a plan calls. They are looked up: a tenant's feeds may call some that it
    does not see."""
    called = {
        atom.operator
        for node in bottom_up([plan])
        if isinstance(node, Filter)
        for atom in atoms_of(node.filter)
        if isinstance(atom, Call)
    }
    found = {name: definitions[name] for name in called if name in definitions}
    return {name: each for name, each in found.items() if isinstance(each, RegisterOperator)}


def plan_errors(catalog: TenantCatalog, outcomes: Sequence[Outcome]) -> list[HeadgateError]:
    """The errors of all feeds that have no plan, each found by itself."""
    definitions, defined = _definitions(catalog, outcomes)
    numbers = {str(each.name): at for at, each in enumerate(outcomes, 1) if _defines(each)}
    errors: list[HeadgateError] = []
    for feed in feed_names(defined):
        try:
            normalize_all(compose_all([feed], definitions))
        except HeadgateError as error:
            error.statement_number = numbers[str(feed)]
            errors.append(error)
    return errors


def _definitions(
    catalog: TenantCatalog, outcomes: Sequence[Outcome]
) -> tuple[Mapping[str, Statement], dict[str, Statement]]:
    """What there is with the script, and what the script defines."""
    defined = {str(each.name): each.statement for each in outcomes if _defines(each)}
    # Looked up, not copied: what a tenant's feeds are built on is not listed.
    return ChainMap(defined, catalog.definitions()), defined  # type: ignore[arg-type]


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
