"""Select-joins over a simulated network: the events of a workload, scheme by scheme.

Each scheme begins with the same rows. Its first events, which are not measured, decide how its
zones are cut (`simulate/zones.py`), so that each scheme has zones that suit it. Schemes that
address each subscription need no zones.

A workload may be several draws of events, each of which begins anew with rows of its own, over the
same subscriptions and zones: what joins with what is drawn once for each join value, so that one
draw differs much from another (the paper repeats runs with other seeds, too).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bench.joins import Ready
from bench.workloads import select_joins as work
from bench.workloads.physical_network import OVERLAY_NODES
from headgate.simulate.cn_star import Carried, CnStar, Load
from headgate.simulate.content_network import SERVER, ContentNetwork, ZoneNetwork
from headgate.simulate.network_metrics import NetworkCost, overlay_cost, unicast_cost
from headgate.simulate.regions import Regions, load_of, regions_of
from headgate.simulate.routing_trace import MESSAGE, Arrivals
from headgate.tables.boxes import Boxes
from headgate.tables.messages import MessageBatch
from headgate.tables.recipients import recipients
from headgate.tables.schemes import SCHEMES, JoinScheme
from headgate.tables.server import SelectJoinServer

PAYLOAD_BYTES = len(work.PAYLOAD)
HANDLED_MOST = 1_000
Ids = Callable[[np.ndarray], np.ndarray]
BATCH = 50


@dataclass(slots=True, eq=False)
class Simulation:
    """Of each draw, `warming` events come before those that are measured, `count` in all."""

    boxes: Boxes
    draws: Sequence[work.Events]
    distances: np.ndarray
    count: int
    warming: int
    ready: list[Ready] = field(init=False)
    _zones: dict[JoinScheme, ZoneNetwork] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.count % len(self.draws) == 0, "each draw is measured alike"
        none = Boxes(self.boxes.numbers[:0], self.boxes.low[:0], self.boxes.high[:0])
        base = Ready.make(self.boxes, self.draws[0]).base
        self.ready = [replace(Ready.make(none, each), base=base) for each in self.draws]

    def zones(self, scheme: JoinScheme, *, in_turn: bool = False) -> ZoneNetwork:
        """Zones for a scheme's messages, or cut by one coordinate after the other."""
        if not in_turn and scheme in self._zones:
            return self._zones[scheme]
        network = ZoneNetwork(self.boxes.low.shape[1])
        network.subscribe(self.boxes)
        network.join(OVERLAY_NODES - 1, handled=None if in_turn else self._handled(scheme))
        if not in_turn:
            self._zones[scheme] = network
        return network

    def cost(self, scheme: JoinScheme) -> NetworkCost:
        """What the measured events cost, without CN*."""
        if SCHEMES[scheme].is_unicast:
            return self._unicast(scheme)
        network = self.zones(scheme)
        return self.carried(scheme, network, [(self.plain(network), PAYLOAD_BYTES)])[0]

    def plain(self, network: ContentNetwork) -> CnStar:
        """No CN* nodes."""
        kinds = np.zeros(OVERLAY_NODES, np.bool_)
        return CnStar(network.links, server=SERVER, is_star=kinds, distance=self.distances)

    def carried(
        self,
        scheme: JoinScheme,
        network: ContentNetwork,
        ways: Sequence[tuple[CnStar, int]],
        *,
        ids: Ids = lambda own: own,
        uncounted: int = 0,
    ) -> list[NetworkCost]:
        """The same events in several ways: what carries them, and how long payloads are.

        `ids` says which payloads are the same. So many events are carried without being counted.
        """
        costs = [NetworkCost() for _ in ways]
        for batch, (messages, arrivals, matched, load) in enumerate(self.trace(scheme, network)):
            known = ids(load.id)
            for at, (carrier, size) in enumerate(ways):
                sizes = np.where(known >= 0, size, 0)
                sent = carrier.carry(arrivals, Load(load.bare_bytes, known, known, sizes), matched)
                assert is_as_sent(sent, arrivals, matched, known)
                if batch * BATCH >= uncounted:
                    costs[at] += overlay_cost(messages, arrivals, matched, sent)
        return costs

    def trace(
        self, scheme: JoinScheme, network: ContentNetwork
    ) -> Iterator[tuple[MessageBatch, Arrivals, np.ndarray, Load]]:
        """Messages, where they arrive, how many subscriptions want them there, and payloads."""
        for server, messages in self._messages(scheme):
            regions = regions_of(messages)
            arrivals = network.route(regions)
            left, right = (table.index.number for table in server.tables)
            matched = network.subscriptions.counts(arrivals, regions)
            yield messages, arrivals, matched, load_of(messages, (left, right))

    def _messages(self, scheme: JoinScheme) -> Iterator[tuple[SelectJoinServer, MessageBatch]]:
        end = self.warming + self.count // len(self.draws)
        for ready in self.ready:
            server = ready.server(scheme)
            server.apply(ready.events.batch(0, self.warming))
            for first in range(self.warming, end, BATCH):
                yield server, server.apply(ready.events.batch(first, min(BATCH, end - first)))

    def _handled(self, scheme: JoinScheme) -> Regions:
        """Some of the messages before the measured ones, evenly."""
        found, numbers, used = [], [], 0
        for ready in self.ready:
            messages = ready.server(scheme).apply(ready.events.batch(0, self.warming))
            most = HANDLED_MOST // len(self.draws)
            some = np.linspace(0, len(messages) - 1, min(len(messages), most)).astype(int)
            regions = regions_of(messages)
            lines = np.stack(regions[:4])[:, some]
            lines[1] += used
            found.append(lines)
            numbers.append(regions.numbers)
            used += len(regions.numbers)
        own, start, excluded, pairs = np.concatenate(found, axis=1)
        return Regions(own, start, excluded, pairs, np.concatenate(numbers), regions.widths)

    def _unicast(self, scheme: JoinScheme) -> NetworkCost:
        """Every subscription is at a node of its own choice."""
        chance = np.random.default_rng(2026)
        homes = chance.integers(0, OVERLAY_NODES, len(self.boxes.numbers))
        cost = NetworkCost()
        for server, messages in self._messages(scheme):
            lines = recipients(server, messages).lines
            nodes = homes[lines[:, 0]]
            cost += unicast_cost(messages, lines, nodes, server=SERVER, distances=self.distances)
        return cost


def is_as_sent(
    sent: Carried, arrivals: Arrivals, matched: np.ndarray, contents: np.ndarray
) -> bool:
    """Whether every dispatcher got the payloads that the server sent."""
    wanted = matched > 0
    return bool((sent.contents[wanted] == contents[arrivals.lines[wanted, MESSAGE]]).all())
