"""Simulated costs are the traffic of groups in which everyone is, and lead to a good choice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from bench.baselines.multiway.compile import SignatureBoxes
from bench.baselines.multiway.rows import TableChange
from bench.baselines.multiway.server import MultiwayServer
from bench.baselines.multiway.simulated_cost import simulated_costs
from tests.bench.multiway.histories import GRAPHS

from headgate.tables.boxes import Boxes
from headgate.tables.decompose import all_forms, decompose_greedy
from headgate.tables.join_graph import Signature
from headgate.tables.messages import MessageBatch

CHAIN = GRAPHS["chain"]
RST = Signature(("R", "S", "T"), CHAIN.edges)


def subscriptions(count: int) -> SignatureBoxes:
    chance = np.random.default_rng(4)
    low = chance.random((count, 3)) * 80
    return SignatureBoxes(RST, Boxes(np.arange(count), low, low + 20))


def rows(table: str, count: int, *, first: int = 0, values: int = 4) -> list[TableChange]:
    chance = np.random.default_rng([first, count])
    joins = 2 if table == "S" else 1
    return [
        TableChange(table, (n,), (n % values,) * joins, (float(chance.random() * 100),), b"logo")
        for n in range(first, first + count)
    ]


@dataclass(frozen=True)
class Unicast:
    """A network in which every subscription has a link of its own."""

    boxes: Boxes

    @classmethod
    def of(cls, boxes: Boxes, handled: MessageBatch | None) -> Unicast:
        assert handled is None or len(handled)
        return cls(boxes)

    def links(self, messages: MessageBatch) -> np.ndarray:
        bounds = list(zip(self.boxes.low.tolist(), self.boxes.high.tolist(), strict=True))
        return np.array(
            [
                sum(
                    m.region.holds((low[:1], low[1:]), (high[:1], high[1:])) for low, high in bounds
                )
                for m in messages
            ],
            np.int64,
        )


def test_a_group_costs_what_its_messages_cost() -> None:
    """By hand: all subscriptions in S^T, and its messages to each of them."""
    some, base = subscriptions(60), [*rows("R", 8), *rows("S", 20), *rows("T", 40)]
    events = [*rows("S", 10, first=100), *rows("T", 10, first=200)]
    costs = simulated_costs(CHAIN, [some], base, events, spread=Unicast.of)
    assert sorted(costs) == all_forms([RST])
    server = MultiwayServer(CHAIN)
    server.apply(base)
    choice = decompose_greedy([RST], {f: 0.0 if str(f) == "S^T" else 1.0 for f in all_forms([RST])})
    server.subscribe(RST, choice[RST], some.boxes)
    server.apply(events[:5])
    (group,) = (each for each in server.apply(events[5:]) if str(each.form) == "S^T")
    sizes, traffic = group.size_bytes.tolist(), 0
    for _, first, end in server.recipients(group).tolist():
        traffic += sum(sizes[first:end])
    assert traffic > 0
    assert costs[choice[RST]["S"]] == pytest.approx(traffic / 60)


def test_a_table_that_never_changes_is_the_better_filter() -> None:
    """R changes all the time and T never does; S is to be filtered by T."""
    base = [*rows("R", 8), *rows("S", 20), *rows("T", 8)]
    events = [each for n in range(10) for each in rows("R", 8, first=0 if n % 2 else 100)]
    events += [TableChange("R", (n,)) for n in range(8)]
    costs = simulated_costs(CHAIN, [subscriptions(60)], base, events, spread=Unicast.of)
    choice = decompose_greedy([RST], costs)[RST]
    assert str(choice["S"]) == "S^T"


def test_a_sample_keeps_shares() -> None:
    sample = subscriptions(200).sample(0.1, np.random.default_rng(1))
    assert len(sample.boxes.numbers) == 20
    assert len(set(sample.boxes.numbers.tolist())) == 20
    assert len(subscriptions(3).sample(0.01, np.random.default_rng(1)).boxes.numbers) == 1
