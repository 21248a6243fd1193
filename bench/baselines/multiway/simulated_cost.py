"""What a semijoin R^S costs, from samples of subscriptions and events (Appendix D).

    sample of subscriptions ──► a server in which every form has all who may choose it
    rows, sample of events  ──► messages of each group ──► bytes × links that they go over
                                                           ───────────────────────────────  = c(R^S)
                                                           subscriptions of the group

Every subscription stands here for one two-way join on each of its edges, R ⋈ S, which has both R^S
and S^R. So each group has all who may choose it; "such assignments do not collectively form a valid
decomposition", and need not.

How far a message goes is the network's matter: `spread` makes one of the subscriptions of a group
and of messages that it has handled before, by which networks place subscriptions. For these a
quarter of the events is taken; they are not counted.

It knows where ranges and values really are, and costs a run over the sample; so it is done now and
then, and not for each subscription. The sample keeps the shares of signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from bench.baselines.multiway.compile import SignatureBoxes
from bench.baselines.multiway.graph import JoinGraph
from bench.baselines.multiway.rows import TableChange
from bench.baselines.multiway.server import MultiwayServer
from headgate.tables.box_tree_kernels import Longs
from headgate.tables.boxes import Boxes
from headgate.tables.join_graph import Edge, SemijoinForm, Signature
from headgate.tables.messages import MessageBatch
from headgate.tables.schemes import JoinScheme

BATCH = 1_000


class Reach(Protocol):
    """A network that subscriptions of one group are in."""

    def links(self, messages: MessageBatch) -> Longs:
        """Over how many links each message goes."""
        ...


Spread = Callable[[Boxes, MessageBatch | None], Reach]
"""Makes a network of subscriptions and of messages that it has handled, if there were any."""


def simulated_costs(
    graph: JoinGraph,
    subscriptions: Sequence[SignatureBoxes],
    rows: Iterable[TableChange],
    events: Sequence[TableChange],
    *,
    spread: Spread,
    scheme: JoinScheme = JoinScheme.REF_SJ_CLU_PLUS,
) -> dict[SemijoinForm, float]:
    """c(R^S) of each form that one of the subscriptions may choose: bytes × links for each of them,
    summed over the events, which follow upon the rows."""
    assert events, "costs are those of events"
    server = MultiwayServer(graph, scheme=scheme)
    server.apply(rows)
    members: dict[SemijoinForm, Boxes] = {}
    first = 0
    for edge in dict.fromkeys(edge for each in subscriptions for edge in each.signature.edges):
        boxes = _on_edge(graph, edge, subscriptions, first)
        pair = Signature((edge.left, edge.right), (edge,))
        both = {table: SemijoinForm(table, edge) for table in pair.tables}
        server.subscribe(pair, both, boxes)
        members |= dict.fromkeys(both.values(), boxes)
        first += len(boxes.numbers)
    start = len(events) // 4
    handled = {group.form: group.messages for group in server.apply(events[:start])}
    networks = {form: spread(boxes, handled.get(form)) for form, boxes in members.items()}
    costs = dict.fromkeys(members, 0.0)
    for at in range(start, len(events), BATCH):
        for group in server.apply(events[at : at + BATCH]):
            traffic = group.size_bytes * networks[group.form].links(group.messages)
            costs[group.form] += float(traffic.sum())
    return {form: cost / len(members[form].numbers) for form, cost in costs.items()}


def _on_edge(
    graph: JoinGraph, edge: Edge, subscriptions: Iterable[SignatureBoxes], first: int
) -> Boxes:
    """The ranges of all subscriptions that have the edge, on its two tables; numbered anew."""
    low, high = [], []
    for each in subscriptions:
        if edge in each.signature.edges:
            columns = graph.columns(each.signature)
            sides = np.r_[columns[edge.left], columns[edge.right]]
            low.append(each.boxes.low[:, sides])
            high.append(each.boxes.high[:, sides])
    lows, highs = np.concatenate(low), np.concatenate(high)
    return Boxes(np.arange(first, first + len(lows)), lows, highs)
