"""The plan of a feed as a graph, as written and in normal form, with what other feeds share.

Nodes are those of plan_text.py: inputs come before the nodes that use them. A filter has its
conditions, each with the number of other feeds that have it: a condition that several feeds have is
evaluated once for all of them (suggest.py says how they are counted).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.api.planned_feed import PlannedFeed, require_definition
from headgate.api.suggest import users_of
from headgate.catalog.dependents import Candidate
from headgate.catalog.tenant_catalog import TenantCatalog
from headgate.language.unparse import unparse_filter
from headgate.model.filters import TRUE, conjuncts
from headgate.plan.algebra import Filter, Plan, Source, bottom_up, inputs_of
from headgate.plan.explain import PlanExplanation, explain
from headgate.plan.plan_text import sign

NODES_MAX = 400
"""A larger plan is counted and not drawn."""


@dataclass(frozen=True, slots=True)
class GraphCondition:
    text: str
    shared_by: int


@dataclass(frozen=True, slots=True)
class GraphNode:
    id: int
    op: str
    text: str
    inputs: Sequence[int]
    feed: str
    """Of which feed the plan begins here; empty: of none."""
    conditions: Sequence[GraphCondition]
    """Of a filter."""


@dataclass(frozen=True, slots=True)
class PlanGraph:
    nodes: Sequence[GraphNode]
    count: int
    """Nodes that there are: more than NODES_MAX are left out."""


@dataclass(frozen=True, slots=True)
class PlanGraphs:
    before: PlanGraph
    after: PlanGraph


def plan_of_statement(catalog: TenantCatalog, feed: PlannedFeed) -> PlanGraphs:
    """The plan of a feed that is not registered."""
    name = str(feed.statement.name)
    with catalog.looking_up() as definitions:
        with_it = ChainMap({name: feed.statement}, definitions)  # type: ignore[arg-type]
        explained = explain(name, with_it)
    return _graphs(catalog, name, explained)


def plan_of_name(catalog: TenantCatalog, name: str) -> PlanGraphs:
    """The plan of a registered feed or source whose definition the tenant may see."""
    with catalog.looking_up() as definitions:
        require_definition(name, definitions)
        explained = explain(name, definitions)
    return _graphs(catalog, name, explained)


def _graphs(catalog: TenantCatalog, name: str, explained: PlanExplanation) -> PlanGraphs:
    nodes = bottom_up([explained.after[name]])
    sources = {str(each.name) for each in nodes if isinstance(each, Source)}
    others = [each for each in catalog.feeds_over(sources) if each.name != name]
    labels = {plan: label for plan, label in explained.labels.items() if label != name}
    return PlanGraphs(
        _graph(explained.before[name], labels, others), _graph(explained.after[name], {}, others)
    )


def _graph(plan: Plan, labels: Mapping[Plan, str], others: Sequence[Candidate]) -> PlanGraph:
    nodes = bottom_up([plan])
    if len(nodes) > NODES_MAX:
        return PlanGraph([], len(nodes))
    ids = {node: number for number, node in enumerate(nodes)}
    drawn = [
        GraphNode(
            id=ids[node],
            op=type(node).__name__.lower(),
            text=sign(node),
            inputs=[ids[each] for each in inputs_of(node)],
            feed=labels.get(node, ""),
            conditions=_conditions(node, others),
        )
        for node in nodes
    ]
    return PlanGraph(drawn, len(nodes))


def _conditions(node: Plan, others: Sequence[Candidate]) -> list[GraphCondition]:
    if not isinstance(node, Filter) or node.filter == TRUE:
        return []
    texts = map(unparse_filter, conjuncts(node.filter))
    return [GraphCondition(each, users_of(each, others)) for each in texts]
