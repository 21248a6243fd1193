"""The oracle of the CN* kernels: Algorithm 1 as printed, with dictionaries and real bytes."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field

from headgate.simulate.cn_star import EXTRA_BYTES, ID_BYTES, REQUEST_BYTES
from headgate.simulate.routing_trace import FROM, LINK, MESSAGE, NODE, Arrivals

Payloads = tuple[tuple[int, bytes] | None, ...]
"""Of a message: (id, bytes), or None."""


class Recent(OrderedDict[int, object]):
    """A least-recently-used map; the most recently used entry is last."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def use(self, id_: int) -> object | None:
        if id_ not in self:
            return None
        self.move_to_end(id_)
        return self[id_]

    def remember(self, id_: int, value: object) -> None:
        if self.capacity == 0:
            return
        if id_ not in self and len(self) == self.capacity:
            self.popitem(last=False)
        self[id_] = value
        self.move_to_end(id_)


@dataclass
class Node:
    is_star: bool
    directory: Recent
    repository: Recent


@dataclass
class Visit:
    """A message at a node: the payloads it came with, its Source for each id, and the payloads that
    were requested, with the hops that took."""

    message: int
    node: int
    came: dict[int, bytes]
    source: dict[int, int]
    at: int
    requested: dict[int, tuple[bytes, int]] = field(default_factory=dict)


class PlainCnStar:
    def __init__(self, kinds: list[bool], *, server: int, repository: int, directory: int) -> None:
        self.server = server
        self.capacity = directory, repository
        self.nodes = [Node(kind, Recent(directory), Recent(repository)) for kind in kinds]
        self.stress: Counter[int] = Counter()
        self.hops = self.requests = self.failed_requests = 0

    def carry(
        self,
        arrivals: Arrivals,
        payloads: list[Payloads],
        bare: list[int],
        matched: list[int],
    ) -> tuple[dict[int, dict[int, bytes]], dict[int, int]]:
        """The payloads that dispatchers get, and the hops until then, by line of the trace."""
        visits: list[Visit] = []
        got: dict[int, dict[int, bytes]] = {}
        when: dict[int, int] = {}
        for position, line in enumerate(arrivals.lines.tolist()):
            message_payloads = [each for each in payloads[line[MESSAGE]] if each is not None]
            if line[FROM] < 0:
                visit = Visit(line[MESSAGE], line[NODE], dict(message_payloads), {}, 0)
                visit.source = dict.fromkeys(visit.came, self.server)
            else:
                visit = self.forward(
                    visits[line[FROM]], line[NODE], line[LINK], message_payloads, bare
                )
            visits.append(visit)
            self.query(visit, message_payloads)
            if matched[position]:
                result = {id_: self.payload(visit, id_, data) for id_, data in message_payloads}
                got[position] = {id_: data for id_, (data, _) in result.items()}
                when[position] = visit.at + max((hops for _, hops in result.values()), default=0)
        return got, when

    def query(self, visit: Visit, message_payloads: list[tuple[int, bytes]]) -> None:
        node = self.nodes[visit.node]
        if not node.is_star:
            return
        for id_, _ in message_payloads:
            bits = node.directory.use(id_)
            node.directory.remember(id_, set() if bits is None else bits)
            if id_ in visit.came:
                node.repository.remember(id_, visit.came[id_])
            else:
                node.repository.use(id_)

    def forward(
        self,
        visit: Visit,
        receiver: int,
        link: int,
        message_payloads: list[tuple[int, bytes]],
        bare: list[int],
    ) -> Visit:
        node, next_ = self.nodes[visit.node], self.nodes[receiver]
        extra = EXTRA_BYTES if any(each.is_star for each in self.nodes) else 0
        sent, waits, size = Visit(visit.message, receiver, {}, {}, 0), 0, bare[visit.message]
        for id_, data in message_payloads:
            bits = node.directory.get(id_, set())
            assert isinstance(bits, set)
            sent.source[id_], size = visit.source[id_], size + extra
            if not (node.is_star and link in bits):
                sent.came[id_], hops = self.payload(visit, id_, data)
                waits, size = max(waits, hops), size + len(sent.came[id_])
                if next_.is_star:
                    self.stress[receiver] += ID_BYTES
                    bits.add(link)
            if node.is_star and id_ in node.repository:
                sent.source[id_] = visit.node
        self.hops += 1
        self.stress[visit.node] += size
        sent.at = visit.at + 1 + waits
        return sent

    def payload(self, visit: Visit, id_: int, original: bytes) -> tuple[bytes, int]:
        """The payload at a node, and how many hops it took to get it."""
        node = self.nodes[visit.node]
        if id_ in visit.came:
            return visit.came[id_], 0
        assert node.is_star, "a plain node always gets the payload"
        if id_ not in visit.requested:
            stored = node.repository.use(id_)
            if stored is not None:
                assert isinstance(stored, bytes)
                visit.requested[id_] = stored, 0
            else:
                visit.requested[id_] = self.request(visit, id_, original)
                node.repository.remember(id_, visit.requested[id_][0])
        return visit.requested[id_]

    def request(self, visit: Visit, id_: int, original: bytes) -> tuple[bytes, int]:
        source, hops = visit.source[id_], 0
        if visit.node == self.server:
            return original, 0
        self.requests += 1
        if source not in (self.server, visit.node):
            self.stress[visit.node] += REQUEST_BYTES
            stored, hops = self.nodes[source].repository.use(id_), 2
            if stored is not None:
                assert isinstance(stored, bytes)
                self.stress[source] += ID_BYTES + len(stored)
                return stored, hops
            self.stress[source] += ID_BYTES
            self.failed_requests += 1
        self.stress[visit.node] += REQUEST_BYTES
        self.stress[self.server] += ID_BYTES + len(original)
        return original, hops + 2

    def forget(self, node: int) -> None:
        self.nodes[node].directory.clear()
        self.nodes[node].repository.clear()

    def relink(self, kinds: list[bool]) -> None:
        directory, repository = self.capacity
        for node in self.nodes:
            node.directory.clear()
        for position, kind in enumerate(kinds):
            if position == len(self.nodes):
                self.nodes.append(Node(kind, Recent(directory), Recent(repository)))
            self.nodes[position].is_star = kind
