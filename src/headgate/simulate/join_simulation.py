"""Select-joins over a simulated content network: the same events by scheme ([Select-Joins §6]).

    table changes ──► SelectJoinServer ──► messages ──► ContentNetwork.route ──► Arrivals
                                                             └──► CnStar.carry ──► NetworkCost

Every scheme starts with the same rows. The events before the measured ones decide how the zones of
a scheme are cut (zones.py), so each scheme has zones that suit its messages. Schemes that address
each subscription individually need no zones.

A workload may have several draws of events over the same subscriptions and zones, each with its own
initial rows. One draw is not enough, because the mean of each join value is drawn only once, and
results differ much between draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.simulate.cn_star import Carried, CnStar, Load
from headgate.simulate.content_network import SERVER, ContentNetwork, ZoneNetwork
from headgate.simulate.join_workload import PAYLOAD, JoinEvents
from headgate.simulate.network_metrics import NetworkCost, overlay_cost, unicast_cost
from headgate.simulate.regions import Regions, load_of, regions_of
from headgate.simulate.routing_trace import MESSAGE, Arrivals
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.boxes import Boxes
from headgate.tables.messages import MessageBatch
from headgate.tables.recipients import recipients
from headgate.tables.rows_state import restore, save
from headgate.tables.schemes import SCHEMES, JoinScheme
from headgate.tables.server import SelectJoinServer

PAYLOAD_BYTES = len(PAYLOAD)
HANDLED_MAX = 1_000
"""The size of the sample of messages that decides where zones are cut."""
BATCH = 50
HOME_SEED = 2026
"""The seed that places subscriptions at nodes for unicast schemes."""

PayloadIds = Callable[[Longs], Longs]
"""Maps payload ids of messages to ids that are equal if the payloads are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class StartState:
    """The initial state for every scheme: indexes of subscriptions, and the rows of both tables."""

    base: SelectJoinServer
    events: JoinEvents
    rows: bytes

    @staticmethod
    def make(boxes: Boxes, events: JoinEvents) -> StartState:
        base = SelectJoinServer()
        base.subscribe(boxes)
        return StartState.of_server(base, events)

    @staticmethod
    def of_server(base: SelectJoinServer, events: JoinEvents) -> StartState:
        filled = SelectJoinServer(scheme=JoinScheme.REL_SEL)
        filled.apply(events.filling())
        return StartState(base, events, save(filled.rows))

    def server(self, scheme: JoinScheme) -> SelectJoinServer:
        server = SelectJoinServer(scheme=scheme)
        server.trees, server.clusters = self.base.trees, self.base.clusters
        restore(server.rows, self.rows)
        return server


@dataclass(slots=True, eq=False)
class JoinSimulation:
    """The simulation of a workload. Each draw has `warming` events before the measured ones; all
    draws together measure `count` events."""

    boxes: Boxes
    draws: Sequence[JoinEvents]
    distances: Longs
    """[node, node]: physical hops between the nodes of the overlay."""
    count: int
    warming: int
    payload_bytes: int = PAYLOAD_BYTES
    _states: list[StartState] = field(init=False)
    _zones: dict[JoinScheme, ZoneNetwork] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.count % len(self.draws) == 0, "all draws measure the same number of events"
        base = SelectJoinServer()
        base.subscribe(self.boxes)
        self._states = [StartState.of_server(base, events) for events in self.draws]

    @property
    def nodes(self) -> int:
        return len(self.distances)

    def zones(self, scheme: JoinScheme, *, in_turn: bool = False) -> ZoneNetwork:
        """Zones for a scheme's messages, or zones cut by one coordinate after the other."""
        if not in_turn and scheme in self._zones:
            return self._zones[scheme]
        network = ZoneNetwork(self.boxes.low.shape[1])
        network.subscribe(self.boxes)
        network.join(self.nodes - 1, handled=None if in_turn else self._handled(scheme))
        if not in_turn:
            self._zones[scheme] = network
        return network

    def cost(self, scheme: JoinScheme, network: ContentNetwork | None = None) -> NetworkCost:
        """The cost of the measured events without CN*, over this network or the scheme's zones."""
        if SCHEMES[scheme].is_unicast:
            return self._unicast(scheme)
        network = self.zones(scheme) if network is None else network
        return self.carried(scheme, network, [(self.plain(network), self.payload_bytes)])[0]

    def plain(self, network: ContentNetwork) -> CnStar:
        """A network without CN* nodes."""
        is_star = np.zeros(self.nodes, np.bool_)
        return CnStar(network.links, server=SERVER, is_star=is_star, distance=self.distances)

    def carried(
        self,
        scheme: JoinScheme,
        network: ContentNetwork,
        ways: Sequence[tuple[CnStar, int]],
        *,
        ids: PayloadIds = lambda numbers: numbers,
        uncounted: int = 0,
    ) -> list[NetworkCost]:
        """The cost of the same events for several pairs of CN* nodes and a payload size.

        The first `uncounted` events are carried, but their cost is not counted.
        """
        costs = [NetworkCost() for _ in ways]
        for batch, (messages, arrivals, matched, load) in enumerate(self.trace(scheme, network)):
            payloads = ids(load.id)
            for way, (carrier, size) in enumerate(ways):
                sizes = np.where(payloads >= 0, size, 0)
                loaded = Load(load.bare_bytes, payloads, payloads, sizes)
                sent = carrier.carry(arrivals, loaded, matched)
                assert is_as_sent(sent, arrivals, matched, payloads)
                if batch * BATCH >= uncounted:
                    costs[way] += overlay_cost(messages, arrivals, matched, sent)
        return costs

    def trace(
        self, scheme: JoinScheme, network: ContentNetwork
    ) -> Iterator[tuple[MessageBatch, Arrivals, Longs, Load]]:
        """Batch by batch: messages, their trace, matching subscriptions by arrival, payloads."""
        for server, messages in self._messages(scheme):
            regions = regions_of(messages)
            arrivals = network.route(regions)
            left, right = (table.index.number for table in server.tables)
            matched = network.subscriptions.counts(arrivals, regions)
            yield messages, arrivals, matched, load_of(messages, (left, right))

    def _messages(self, scheme: JoinScheme) -> Iterator[tuple[SelectJoinServer, MessageBatch]]:
        end = self.warming + self.count // len(self.draws)
        for state in self._states:
            server = state.server(scheme)
            server.apply(state.events.batch(0, self.warming))
            for first in range(self.warming, end, BATCH):
                yield server, server.apply(state.events.batch(first, min(BATCH, end - first)))

    def _handled(self, scheme: JoinScheme) -> Regions:
        """A sample of the messages before the measured ones."""
        sampled, numbers, used = [], [], 0
        for state in self._states:
            messages = state.server(scheme).apply(state.events.batch(0, self.warming))
            most = HANDLED_MAX // len(self.draws)
            chosen = np.linspace(0, len(messages) - 1, min(len(messages), most)).astype(int)
            regions = regions_of(messages)
            lines = np.stack(regions[:4])[:, chosen]
            lines[1] += used
            sampled.append(lines)
            numbers.append(regions.numbers)
            used += len(regions.numbers)
        own_side, start, excluded, pairs = np.concatenate(sampled, axis=1)
        return Regions(own_side, start, excluded, pairs, np.concatenate(numbers), regions.widths)

    def _unicast(self, scheme: JoinScheme) -> NetworkCost:
        """The cost of a unicast scheme; subscriptions are placed at random nodes."""
        chance = np.random.default_rng(HOME_SEED)
        homes = chance.integers(0, self.nodes, len(self.boxes.numbers))
        cost = NetworkCost()
        for server, messages in self._messages(scheme):
            lines = recipients(server, messages).lines
            nodes = homes[lines[:, 0]]
            cost += unicast_cost(messages, lines, nodes, server=SERVER, distances=self.distances)
        return cost


def is_as_sent(sent: Carried, arrivals: Arrivals, matched: Longs, contents: Longs) -> bool:
    """Whether every dispatcher received the payloads that the server sent."""
    is_needed = matched > 0
    received = sent.contents[is_needed]
    return bool((received == contents[arrivals.lines[is_needed, MESSAGE]]).all())
