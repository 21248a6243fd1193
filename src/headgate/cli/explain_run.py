"""`headgate explain --run`: how what is registered would be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.cli.output import print_json, print_line
from headgate.language.schemas import schemas_of
from headgate.language.statements import MaterializeFeed, RegisterOperator, RegisterTable, Statement
from headgate.operators.orders.explain import order_text
from headgate.operators.statistics import OperatorStatistics, Report, read_report
from headgate.pipeline.layer_builder import Source, declaration_of
from headgate.pipeline.operator_stage import known_estimates
from headgate.pipeline.source_groups import SourceGroups, group_sources
from headgate.pipeline.source_plan import tests_of
from headgate.plan.leaves import Leaves, leaves_by_source
from headgate.plan.normalize import normalize_all
from headgate.plan.translate import compose_all, feed_names
from headgate.store.data_folder import DataFolder
from headgate.tables.explain import describe_groups, refused_joins
from headgate.tables.join_groups import split_plan
from headgate.windows.describe import describe
from headgate.windows.stage import JoinStage

SOURCES_SHOWN_MAX = 20


def print_run(definitions: Mapping[str, Statement], folder: DataFolder, *, as_json: bool) -> None:
    """The queries, what each reads, the joins behind them, and what cannot run.

    Of operators it tells what the run in this folder has learned, if there is one.
    """
    sources = {name: each for name, each in definitions.items() if isinstance(each, Source)}
    schemas = {name: next(iter(schemas_of(name, definitions))) for name in sources}
    found = group_sources(sources, schemas)
    every = normalize_all(compose_all(feed_names(definitions), definitions))
    split = {feed: split_plan(plan) for feed, plan in every.items()}
    plans = {feed: each.rest for feed, each in split.items() if each.rest is not None}
    registered = {n: e for n, e in definitions.items() if isinstance(e, RegisterTable)}
    tables = describe_groups(every, registered)
    leaves = leaves_by_source(plans)
    above = {
        feed: plans[feed]
        for own in leaves.values()
        for users in own.values()
        for feed in users.join_inputs
    }
    stage = JoinStage(above, schemas)
    joins = [line for line in describe(stage) if not line.startswith("not joined")]
    cannot = {**found.refused, **refused_joins(every), **stage.unsupported}
    materialised = [name for name, each in sources.items() if isinstance(each, MaterializeFeed)]
    filters = {source: len(own) for source, own in leaves.items()}
    operators = _operators(leaves, definitions, read_report(folder.operators))
    if as_json:
        print_json(
            {
                "queries": {
                    name: [each.name for each in group.sources]
                    for name, group in found.groups.items()
                },
                "filters": filters,
                "materialised": materialised,
                "joins": joins if above else [],
                "table_joins": tables,
                "operators": operators,
                "cannot_run": cannot,
            }
        )
        return
    _print_queries(found, filters)
    if materialised:
        print_line(f"made within: {', '.join(materialised)}")
    if above:
        print_line("")
        print_line(f"joins and patterns, for {len(above):,} feeds", style="bold")
        for line in joins:
            print_line(f"  {line}")
    if tables:
        print_line("")
        print_line("joins of tables", style="bold")
        for line in tables:
            print_line(f"  {line}")
    for source, lines in operators.items():
        print_line("")
        print_line(f"operators, for {source}", style="bold")
        for line in lines:
            print_line(f"  {line}")
    for name, reason in cannot.items():
        print_line(f"cannot run: {name}: {reason}", style="yellow")


def _operators(
    leaves: Mapping[str, Leaves], definitions: Mapping[str, Statement], learned: Report
) -> dict[str, list[str]]:
    """By source: what operators are asked, and in which order."""
    ledger = OperatorStatistics(
        declaration_of(each) for each in definitions.values() if isinstance(each, RegisterOperator)
    )
    ledger.add(learned)
    number_of = {name: number for number, name in enumerate(feed_names(definitions))}
    found: dict[str, list[str]] = {}
    for source, own in leaves.items():
        table = tests_of(own.values(), number_of)
        if table is not None:
            found[source] = order_text(table, known_estimates(table, ledger)).split("\n")
    return found


def _print_queries(found: SourceGroups, filters: Mapping[str, int]) -> None:
    for name, group in found.groups.items():
        print_line(f"query {name}", style="bold")
        names = [each.name for each in group.sources]
        for source in names[:SOURCES_SHOWN_MAX]:
            asked = filters.get(source, 0)
            print_line(f"  {source}: {asked:,} {'filter' if asked == 1 else 'filters'}")
        _print_more(names)


def _print_more(names: Sequence[str]) -> None:
    if len(names) > SOURCES_SHOWN_MAX:
        print_line(f"  and {len(names) - SOURCES_SHOWN_MAX:,} more sources")
