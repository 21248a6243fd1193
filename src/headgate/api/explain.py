"""Explanations: plans of feeds, why an item matches, the program of a source, a whole run.

Every explanation is a text for people and data for programs. What needs compiled kernels or Spark
is imported when it is asked for, so that a plan is explained without waiting for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.api.check_script import prices_of
from headgate.catalog.limits import Suspension
from headgate.language.schemas import schemas_of
from headgate.language.statements import (
    MaterializeFeed,
    RegisterOperator,
    RegisterTable,
    Statement,
)
from headgate.language.unparse import unparse_filter
from headgate.model.errors import InvalidValue, alternatives, did_you_mean
from headgate.model.items import Item, attributes_of_json
from headgate.plan.algebra import NaturalJoin, Plan, Source, bottom_up
from headgate.plan.explain import explain as explain_plan
from headgate.plan.explain import explain_all
from headgate.plan.leaves import Leaves, leaves_by_source
from headgate.plan.normalize import normalize_all
from headgate.plan.price import StatisticsOf, nothing_known
from headgate.plan.translate import compose_all, feed_names
from headgate.plan.why import sources_of, why
from headgate.sandbox.confinement import standing_walls
from headgate.store.data_folder import DataFolder

if TYPE_CHECKING:
    from headgate.catalog.statistics import SourceStatistics
    from headgate.model.atoms import Atom
    from headgate.pipeline.methods import Methods

Definitions = Mapping[str, Statement]
FACTORIZE_BUDGET_S = 120.0
"""The time limit of the optimiser: somebody waits for the answer, and kernels may be compiled."""
SOURCES_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class Explained:
    """An explanation; `print` shows its text."""

    text: str
    data: object

    def json(self) -> str:
        return json.dumps(self.data, ensure_ascii=False, default=str)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """What is known of the cost of feeds: statistics for prices, suspended feeds, and the CPU time
    in seconds that feeds have taken in the run."""

    statistics: StatisticsOf = nothing_known
    suspended: Mapping[str, Suspension] = field(default_factory=dict)
    spent_s: Mapping[str, float] = field(default_factory=dict)


NO_LIMITS = FeedLimits()


def explain_feeds(
    definitions: Definitions, feeds: Sequence[str] = (), limits: FeedLimits = NO_LIMITS
) -> list[Explained]:
    """The plans of these feeds, as written and in normal form, and their price; without names, the
    plans of all together."""
    explanations = [explain_plan(feed, definitions) for feed in feeds]
    if not feeds:
        whole = explain_all(definitions)
        return [Explained(whole.text(), json.loads(whole.json()))]
    explained = []
    for feed, each in zip(feeds, explanations, strict=True):
        price, data = _price_of(feed, each.after, definitions, limits)
        text = "".join([each.text(), *_table_joins(each.after.values(), definitions), price])
        explained.append(Explained(text, {**json.loads(each.json()), **data}))
    return explained


def _price_of(
    feed: str, plans: Mapping[str, Plan], definitions: Definitions, limits: FeedLimits
) -> tuple[str, dict[str, object]]:
    """The price of a feed, whether it is suspended, and what it has taken; a source has none."""
    if plans[feed] == Source(feed):
        return "", {}
    price = prices_of(plans, definitions, limits.statistics)[feed]
    text = f"\nprice: {price.text()}\n"
    data: dict[str, object] = {"price": price.as_json()}
    if feed in limits.spent_s:
        text += f"measured: {limits.spent_s[feed]:,.1f} s of CPU in the run\n"
        data["spent_s"] = limits.spent_s[feed]
    if feed in limits.suspended:
        since = limits.suspended[feed]
        text += f"suspended since {since.suspended_at:%Y-%m-%d %H:%M} UTC: {since.reason}\n"
        data["suspended"] = {"since": since.suspended_at.isoformat(), "reason": since.reason}
    return text, data


def _table_joins(plans: Iterable[Plan], definitions: Definitions) -> list[str]:
    """How the table joins of these plans are served, if there are any."""
    texts = []
    for plan in plans:
        parts = list(bottom_up([plan]))
        if any(isinstance(each, NaturalJoin) for each in parts):
            from headgate.tables.explain import describe_join  # noqa: PLC0415 - kernels

            read = {each.name: definitions[each.name] for each in parts if isinstance(each, Source)}
            tables = {n: table for n, table in read.items() if isinstance(table, RegisterTable)}
            lines = "".join(f"  {line}\n" for line in describe_join(plan, tables))
            texts.append(f"\njoined by ranges\n{lines}")
    return texts


def explain_item(
    feed: str, attributes: Mapping[str, object], definitions: Definitions, *, source: str = ""
) -> Explained:
    """Why an item with these attributes (as of JSON) is in the feed, or why not."""
    source = _source_of(feed, source, definitions)
    schema = next(iter(schemas_of(source, definitions)))
    values = attributes_of_json(attributes, schema)
    times = [value for value in values.values() if isinstance(value, datetime)]
    time = times[0] if times else datetime.now(UTC)
    item = Item(str(attributes.get("id", "item")), source, time, values)
    explained = why(feed, item, definitions)
    declared = {str(each.name) for each in schema.attributes}
    unknown = [name for name in attributes if name not in declared and name != "id"]
    text = explained.text()
    if unknown:
        text += f"\nnot declared by {source}, so not looked at: {', '.join(unknown)}"
    return Explained(text, {**explained.as_json(), "not_declared": unknown})


def _source_of(feed: str, source: str, definitions: Definitions) -> str:
    """The source of the item: the one that is named, or the only one that the feed reads."""
    known = sources_of(feed, definitions)
    if source and source not in known:
        hint = did_you_mean(source, known)
        raise InvalidValue(
            f"'{feed}' does not read '{source}'; it reads {alternatives(known)}"
            + (f"; {hint}" if hint else "")
        )
    if not source and len(known) != 1:
        raise InvalidValue(
            f"'{feed}' reads {len(known):,} sources; say which the item is from: "
            + alternatives(known)
        )
    return source or known[0]


def _leaves_on(source: str, definitions: Definitions) -> Leaves:
    by_source = leaves_by_source(normalize_all(compose_all(feed_names(definitions), definitions)))
    if source not in by_source:
        known = f"; they read {alternatives(sorted(by_source))}" if by_source else ""
        raise InvalidValue(f"no feed reads '{source}'{known}")
    return by_source[source]


def explain_program(source: str, definitions: Definitions) -> Explained:
    """The program of a source: all filters on it, compiled together."""
    from headgate.match.explain import counts_text, program_text  # noqa: PLC0415
    from headgate.match.program import atoms_of, compile_program  # noqa: PLC0415 - kernels

    leaves = _leaves_on(source, definitions)
    filters, schema = list(leaves), next(iter(schemas_of(source, definitions)))
    program = compile_program(filters, schema)
    names = [", ".join(users.names) for users in leaves.values()]
    text = program_text(program, [unparse_filter(each) for each in atoms_of(filters)], names)
    counts = counts_text(program)
    data = {"source": source, "counts": counts, "program": text.split("\n")}
    return Explained(f"program of {source}: {counts}\n\n{text}\n", data)


def explain_factorized(
    source: str,
    definitions: Definitions,
    measured: SourceStatistics | None,
    *,
    method: str = "auto",
) -> Explained:
    """The filter plan of a source: what its filters share, what it costs, and which method made
    it."""
    from headgate.factor.explain import factor_text  # noqa: PLC0415 - kernels
    from headgate.factor.factorize import factorize  # noqa: PLC0415

    leaves = _leaves_on(source, definitions)

    def selectivity(atom: Atom) -> float | None:
        return None if measured is None else measured.selectivity(unparse_filter(atom))

    schema = next(iter(schemas_of(source, definitions)))
    plan = factorize(
        list(leaves), schema, measured=selectivity, budget_s=FACTORIZE_BUDGET_S, method=method
    )
    owners = [", ".join(users.names) for users in leaves.values()]
    text = factor_text(plan, [unparse_filter(each) for each in plan.clauses], owners)
    items = 0 if measured is None else measured.items
    known = f"{items:,} items were measured" if measured else "nothing was measured"
    data = {
        "source": source,
        "measured_items": items,
        "algorithm": plan.choice.method,
        "cost": plan.choice.tree.cost(),
        "naive_cost": plan.filters.total_count,
        "expected_visits": plan.choice.expected_visits,
        "plan": text.split("\n"),
    }
    return Explained(f"filter plan of {source} ({known})\n{text}\n", data)


@dataclass(frozen=True, slots=True)
class _RunParts:
    """What a run of these definitions would consist of."""

    queries: Mapping[str, Sequence[str]]
    filters: Mapping[str, int]
    materialised: Sequence[str]
    joins: Sequence[str]
    table_joins: Sequence[str]
    operators: Mapping[str, Sequence[str]]
    cannot_run: Mapping[str, str]


def explain_run(
    definitions: Definitions, folder: Path, *, methods: Methods | None = None
) -> Explained:
    """How everything registered is run: queries, windows, indexes, orders, and what cannot run.
    Estimates of operators are those that the run in this folder has learned, if there is one."""
    parts = _run_parts(definitions, DataFolder(folder), methods)
    lines: list[str] = []
    for name, sources in parts.queries.items():
        lines.append(f"query {name}")
        for source in sources[:SOURCES_SHOWN_MAX]:
            count = parts.filters.get(source, 0)
            lines.append(f"  {source}: {count:,} {'filter' if count == 1 else 'filters'}")
        if len(sources) > SOURCES_SHOWN_MAX:
            lines.append(f"  and {len(sources) - SOURCES_SHOWN_MAX:,} more sources")
    if parts.materialised:
        lines.append(f"materialised: {', '.join(parts.materialised)}")
    sections: list[tuple[str, Sequence[str]]] = []
    if parts.joins:
        sections.append(("window joins and patterns", parts.joins))
    if parts.table_joins:
        sections.append(("table joins", parts.table_joins))
    sections += [(f"operators on {name}", found) for name, found in parts.operators.items()]
    if methods is not None:
        sections.append(("methods", _methods(methods)))
    # Only where something of a stranger runs: finding out starts a process.
    walls = str(standing_walls()) if parts.operators or parts.materialised else ""
    if walls:
        sections.append(("sandbox", [walls]))
    for title, found in sections:
        lines += ["", title, *(f"  {line}" for line in found)]
    lines += [f"cannot run: {name}: {reason}" for name, reason in parts.cannot_run.items()]
    data = {
        "queries": parts.queries,
        "filters": parts.filters,
        "materialised": parts.materialised,
        "joins": parts.joins,
        "table_joins": parts.table_joins,
        "operators": parts.operators,
        "sandbox": walls,
        "methods": _methods(methods) if methods is not None else [],
        "cannot_run": parts.cannot_run,
    }
    return Explained("\n".join(lines), data)


def _methods(methods: Methods) -> Sequence[str]:
    from headgate.pipeline.methods import describe_methods  # noqa: PLC0415 - Spark

    return describe_methods(methods)


def _run_parts(definitions: Definitions, folder: DataFolder, methods: Methods | None) -> _RunParts:
    # Late imports: kernels and Spark.
    from headgate.pipeline.layer_builder import Source as SourceStatement  # noqa: PLC0415
    from headgate.pipeline.source_groups import group_sources  # noqa: PLC0415
    from headgate.tables.explain import describe_groups, refused_joins  # noqa: PLC0415
    from headgate.tables.join_groups import split_plan  # noqa: PLC0415
    from headgate.tables.schemes import DEFAULT_SCHEME  # noqa: PLC0415
    from headgate.windows.describe import describe  # noqa: PLC0415
    from headgate.windows.stage import JoinStage  # noqa: PLC0415

    sources = {n: each for n, each in definitions.items() if isinstance(each, SourceStatement)}
    schemas = {name: next(iter(schemas_of(name, definitions))) for name in sources}
    groups = group_sources(sources, schemas)
    every = normalize_all(compose_all(feed_names(definitions), definitions))
    split = {feed: split_plan(plan) for feed, plan in every.items()}
    plans = {feed: each.rest for feed, each in split.items() if each.rest is not None}
    tables = {n: each for n, each in definitions.items() if isinstance(each, RegisterTable)}
    leaves = leaves_by_source(plans)
    join_plans = _join_plans(leaves, plans)
    stage = JoinStage(join_plans, schemas)
    scheme = DEFAULT_SCHEME if methods is None else methods.scheme
    joins = [line for line in describe(stage) if not line.startswith("not joined")]
    return _RunParts(
        queries={n: [each.name for each in g.sources] for n, g in groups.groups.items()},
        filters={source: len(own) for source, own in leaves.items()},
        materialised=[n for n, each in sources.items() if isinstance(each, MaterializeFeed)],
        joins=joins if join_plans else [],
        table_joins=describe_groups(every, tables, scheme),
        operators=_operator_orders(leaves, definitions, folder),
        cannot_run={**groups.refused, **refused_joins(every), **stage.unsupported},
    )


def _join_plans(leaves: Mapping[str, Leaves], plans: Mapping[str, Plan]) -> dict[str, Plan]:
    """The plans of feeds with window joins or patterns above their leaves."""
    return {
        feed: plans[feed]
        for own in leaves.values()
        for users in own.values()
        for feed in users.join_inputs
    }


def _operator_orders(
    leaves: Mapping[str, Leaves], definitions: Definitions, folder: DataFolder
) -> dict[str, list[str]]:
    """By source: which operators are evaluated, and in which order."""
    from headgate.operators.orders.explain import order_text  # noqa: PLC0415 - kernels
    from headgate.operators.statistics import OperatorStatistics, read_report  # noqa: PLC0415
    from headgate.pipeline.layer_builder import declaration_of  # noqa: PLC0415
    from headgate.pipeline.operator_stage import known_estimates  # noqa: PLC0415
    from headgate.pipeline.source_plan import tests_of  # noqa: PLC0415

    registered = [each for each in definitions.values() if isinstance(each, RegisterOperator)]
    statistics = OperatorStatistics(declaration_of(each) for each in registered)
    statistics.add(read_report(folder.operators))
    number_of = {name: number for number, name in enumerate(feed_names(definitions))}
    orders: dict[str, list[str]] = {}
    for source, own in leaves.items():
        table = tests_of(own.values(), number_of)
        if table is not None:
            orders[source] = order_text(table, known_estimates(table, statistics)).split("\n")
    return orders
