"""The network cost of a batch of messages ([Select-Joins §6], "Evaluation Metrics").

    traffic        bytes between overlay nodes, including ids, requests and acknowledgements
    hops           messages sent along links of the overlay
    stress         bytes that each node sends
    hop latency    successive hops until a dispatcher has the message and its payloads, on average
                   over all deliveries; requesting a payload takes two more
    last hop       bytes from dispatchers to clients, one message each; regions are not sent there
    physical       bytes times hops of the physical network

Schemes that address each subscription (Enum-J, Enum-SJ) use no overlay: the server sends directly
to the node of the subscription, one message for each change and subscription.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from headgate.simulate.cn_star import BYTES, FAILED_REQUESTS, HOPS, PHYSICAL, REQUESTED, Carried
from headgate.simulate.routing_trace import MESSAGE, Arrivals
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.messages import MessageBatch


@dataclass(frozen=True, slots=True, eq=False)
class NetworkCost:
    """Sums over messages; they can be added."""

    traffic_bytes: int = 0
    physical_bytes: int = 0
    hops: int = 0
    requests: int = 0
    """Payloads that nodes requested from another node or from the server."""
    failed_requests: int = 0
    """Requests to a Source that no longer had the payload."""
    deliveries: int = 0
    waited_hops: int = 0
    """The sum of hop latencies over deliveries."""
    last_hop_bytes: int = 0
    stress: Longs = field(default_factory=lambda: np.zeros(1, np.int64))

    def __add__(self, other: NetworkCost) -> NetworkCost:
        return NetworkCost(
            self.traffic_bytes + other.traffic_bytes,
            self.physical_bytes + other.physical_bytes,
            self.hops + other.hops,
            self.requests + other.requests,
            self.failed_requests + other.failed_requests,
            self.deliveries + other.deliveries,
            self.waited_hops + other.waited_hops,
            self.last_hop_bytes + other.last_hop_bytes,
            self.stress + other.stress,
        )

    @property
    def latency_hops(self) -> float:
        return self.waited_hops / max(1, self.deliveries)


def overlay_cost(
    messages: MessageBatch, arrivals: Arrivals, matched: Longs, carried: Carried
) -> NetworkCost:
    """The cost of messages that were carried along a trace; `matched` has the number of matching
    subscriptions of each arrival."""
    last = messages.size_bytes - messages.description_bytes
    total = carried.total.tolist()
    return NetworkCost(
        traffic_bytes=total[BYTES],
        physical_bytes=total[PHYSICAL],
        hops=total[HOPS],
        requests=total[REQUESTED],
        failed_requests=total[FAILED_REQUESTS],
        deliveries=int(matched.sum()),
        waited_hops=int((matched * carried.hops).sum()),
        last_hop_bytes=int((matched * last[arrivals.lines[:, MESSAGE]]).sum()),
        stress=carried.stress,
    )


def unicast_cost(
    messages: MessageBatch,
    lines: Longs,
    nodes: Longs,
    *,
    server: int,
    distances: Longs,
) -> NetworkCost:
    """The cost of messages sent directly to nodes: `lines` (subscription, first, end) as in
    `tables.recipients.Recipients`, and the node of each line's subscription."""
    sizes = messages.size_bytes - messages.description_bytes
    before = np.concatenate([[0], np.cumsum(sizes)])
    sent = before[lines[:, 2]] - before[lines[:, 1]]
    stress = np.zeros(len(distances), np.int64)
    stress[server] = sent.sum()
    return NetworkCost(
        traffic_bytes=int(sent.sum()),
        physical_bytes=int((sent * distances[server, nodes]).sum()),
        hops=len(lines),
        deliveries=int((lines[:, 2] - lines[:, 1]).sum()),
        waited_hops=int((lines[:, 2] - lines[:, 1]).sum()),
        stress=stress,
    )
