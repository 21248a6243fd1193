"""Estimates of what a network would cost before it is built, for `headgate simulate`.

    content_traffic    bytes and hops per event of each join scheme, over zones or a filter tree
    repository_costs   the same with CN* nodes, by the size of their payload repositories
    wan_latencies      latency of generated views by level, with and without LOGA

All three generate their workload from a seed: the same arguments give the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headgate.model.atoms import Comparison, Relation
from headgate.model.errors import InvalidValue
from headgate.model.filters import And
from headgate.network.configuration import Configuration
from headgate.network.configuration_problem import UNLIMITED, Floats, Limits, Problem
from headgate.network.configure import NetworkPlan, Solver, configure
from headgate.network.physical_plans import price_rewritings
from headgate.network.wide_area import uniform_area
from headgate.simulate.cn_star import CnStar
from headgate.simulate.content_network import SERVER, ContentNetwork
from headgate.simulate.filter_network import FilterNetwork
from headgate.simulate.join_simulation import JoinSimulation
from headgate.simulate.join_workload import events, subscriptions
from headgate.simulate.network_metrics import NetworkCost
from headgate.simulate.topology import overlay_distances, overlay_tree
from headgate.simulate.wan_simulator import run_configuration
from headgate.tables.schemes import SCHEMES, JoinScheme
from headgate.views.flat_feeds import FlatFeed
from headgate.views.flat_graph import rewrite_flat

PHYSICAL_PER_NODE = 20
"""Physical nodes for each node of the overlay, as in the paper: 20,000 for 1,000."""
ZONES, FILTERS = "zones", "filters"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class JoinNetworkSize:
    """The size of the simulated network and of its workload."""

    nodes: int
    subscriptions: int
    events: int
    warming: int = 100
    """Events before the measured ones; they fill repositories and decide how zones are cut."""
    r_rows: int = 2_000
    s_rows: int = 1_000
    payload_bytes: int = 100
    seed: int = 2026

    def simulation(self) -> JoinSimulation:
        if self.nodes < 2:
            raise InvalidValue(f"a network has two nodes or more, not {self.nodes}")
        physical = PHYSICAL_PER_NODE * self.nodes
        changes = events(
            self.events + self.warming, r_size=self.r_rows, s_size=self.s_rows, seed=self.seed
        )
        return JoinSimulation(
            subscriptions(self.subscriptions, seed=self.seed),
            [changes],
            overlay_distances(self.nodes, physical=physical, seed=self.seed),
            self.events,
            self.warming,
            self.payload_bytes,
        )


@dataclass(frozen=True, slots=True)
class EventCost:
    """Averages over the measured events."""

    name: str
    traffic_bytes: float
    """Between overlay nodes, for each event."""
    server_bytes: float
    """Sent by the server's node, for each event."""
    hops: float
    """Messages along links, for each event."""
    latency_hops: float
    """Hops until a dispatcher has all payloads of a message, on average over deliveries."""
    requests: float
    """Payloads that nodes requested, for each event."""

    @staticmethod
    def of(name: str, cost: NetworkCost, count: int) -> EventCost:
        return EventCost(
            name,
            cost.traffic_bytes / count,
            float(cost.stress[SERVER]) / count,
            cost.hops / count,
            cost.latency_hops,
            cost.requests / count,
        )


def content_traffic(
    size: JoinNetworkSize, schemes: Sequence[JoinScheme], *, network: str, progress: Progress
) -> Iterator[EventCost]:
    """The cost of each scheme without CN*. `network` is ZONES or FILTERS."""
    progress(f"{size.nodes:,} nodes, {size.subscriptions:,} subscriptions")
    simulation = size.simulation()
    for scheme in schemes:
        progress(str(scheme))
        overlay = None
        if network == FILTERS and not SCHEMES[scheme].is_unicast:
            overlay = _filter_network(simulation, size.seed)
        yield EventCost.of(str(scheme), simulation.cost(scheme, overlay), size.events)


def _filter_network(simulation: JoinSimulation, seed: int) -> ContentNetwork:
    """A tree of nodes; each subscription is at a node drawn at random."""
    boxes = simulation.boxes
    network = FilterNetwork(boxes.low.shape[1], overlay_tree(simulation.distances))
    chance = np.random.default_rng(seed)
    network.subscribe(boxes, chance.integers(0, simulation.nodes, len(boxes.numbers)))
    return network


def repository_costs(
    size: JoinNetworkSize,
    scheme: JoinScheme,
    repositories: Sequence[int],
    *,
    progress: Progress,
) -> list[EventCost]:
    """The cost of a scheme without CN*, then with repositories of each of these sizes."""
    if SCHEMES[scheme].is_unicast:
        raise InvalidValue(
            f"{scheme} addresses each subscription individually and uses no CN* nodes; "
            "choose another scheme"
        )
    progress(f"{size.nodes:,} nodes, {size.subscriptions:,} subscriptions")
    simulation = size.simulation()
    network = simulation.zones(scheme)
    progress("carrying payloads")
    carriers = [simulation.plain(network)]
    for entries in repositories:
        carriers.append(CnStar(network.links, server=SERVER, repository_entries=entries))
    ways = [(carrier, size.payload_bytes) for carrier in carriers]
    costs = simulation.carried(scheme, network, ways)
    names = ["no CN*", *(f"{entries:,}" for entries in repositories)]
    return [EventCost.of(*named, size.events) for named in zip(names, costs, strict=True)]


@dataclass(frozen=True, slots=True)
class WanSize:
    """A wide area with generated views: conjunctions of equalities over one source."""

    views: int
    sites: int
    documents: int
    rate_per_s: float
    document_bytes: float = 25_000.0
    limit: int = 10
    """How many views a view may feed."""
    source_limit: int | None = None
    seed: int = 2026


@dataclass(frozen=True, slots=True)
class LevelLatency:
    """The measured latencies of the views of one level of a configuration."""

    level: int
    views: int
    mean_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True, eq=False)
class WanLatencies:
    plan: NetworkPlan
    cheap: list[LevelLatency]
    """Without LOGA."""
    fast: list[LevelLatency]
    """With LOGA."""


ATTRIBUTES, VALUES, CONDITIONS_MAX = 6, 3, 4


def wan_latencies(
    size: WanSize, *, solver: Solver, time_s: float, progress: Progress
) -> WanLatencies:
    """Plan generated views, publish documents at the rate, and measure the latency of each view."""
    progress(f"{size.views:,} views")
    chance = np.random.default_rng(size.seed)
    feeds = [_feed(chance) for _ in range(size.views)]
    selectivity = np.array([float(VALUES) ** -len(feed.conditions) for feed in feeds])
    rewritings = rewrite_flat(feeds)
    area = uniform_area(
        np.maximum(1.0, size.document_bytes * selectivity),
        document_bytes=size.document_bytes,
        sites=size.sites,
        seed=size.seed,
    )
    plans = price_rewritings(rewritings, area)
    source = UNLIMITED if size.source_limit is None else size.source_limit
    limits = Limits.uniform(size.views, view=size.limit, source=source)
    progress(f"planning {size.views:,} views, {len(rewritings.member_start) - 1:,} rewritings")
    plan = configure(Problem(rewritings, plans.costs, limits), solver=solver, time_s=time_s)
    progress(f"publishing {size.documents:,} documents")
    gaps_s = chance.exponential(1 / size.rate_per_s, size.documents)
    published_s, scales = np.cumsum(gaps_s), np.ones(size.documents)

    def measured(configuration: Configuration) -> list[LevelLatency]:
        observed = run_configuration(
            configuration, plans, area, published_s=published_s, scales=scales
        )
        return _by_level(configuration, observed.latency_s)

    return WanLatencies(plan, measured(plan.cheap), measured(plan.fast))


def _feed(chance: np.random.Generator) -> FlatFeed:
    """A feed of one to CONDITIONS_MAX equalities. Low values are more frequent, so that many feeds
    imply others."""
    count = int(chance.integers(1, CONDITIONS_MAX + 1))
    names = chance.choice(ATTRIBUTES, count, replace=False).tolist()
    values = np.minimum(chance.geometric(0.6, count) - 1, VALUES - 1).tolist()
    conditions = tuple(
        Comparison(f"a{name}", Relation.EQUAL, value)
        for name, value in zip(names, values, strict=True)
    )
    return FlatFeed.of("source", And(conditions))


def _by_level(configuration: Configuration, latency_s: Floats) -> list[LevelLatency]:
    levels = []
    for level in range(1, int(configuration.level.max(initial=0)) + 1):
        latencies = latency_s[configuration.level == level]
        levels.append(
            LevelLatency(
                level, len(latencies), 1e3 * float(latencies.mean()), 1e3 * float(latencies.max())
            )
        )
    return levels
