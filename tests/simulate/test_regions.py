"""Select-joins through a network: clients have the join, with any scheme and network."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulate.region_worlds import flat, holds, regions
from tests.simulate.test_content_network import PARENTS
from tests.tables.histories import Bounds, box, boxes, changes, insertions

from headgate.simulate.cn_star import CnStar
from headgate.simulate.content_network import SERVER, ContentNetwork, ZoneNetwork
from headgate.simulate.filter_network import FilterNetwork
from headgate.simulate.network_metrics import NetworkCost, overlay_cost, unicast_cost
from headgate.simulate.recent_entries import NONE
from headgate.simulate.regions import core, load_of, meets, regions_of
from headgate.simulate.routing_trace import MESSAGE
from headgate.tables.changes import JoinChange
from headgate.tables.clients import JoinClient
from headgate.tables.messages import JoinSide, MessageBatch, Region
from headgate.tables.recipients import content, recipients
from headgate.tables.schemes import SCHEMES, JoinScheme
from headgate.tables.server import SelectJoinServer

SHARED = [scheme for scheme in JoinScheme if not SCHEMES[scheme].is_unicast]


def made(kind: str, all_: list[Bounds]) -> ContentNetwork:
    network: ZoneNetwork | FilterNetwork
    if kind == "zones":
        network = ZoneNetwork(2)
        for number, bounds in enumerate(all_):
            network.subscribe(box(number, bounds))
        network.join(7)
        return network
    network = FilterNetwork(2, PARENTS, parts=2)
    for number, bounds in enumerate(all_):
        network.subscribe(box(number, bounds), np.array([number % len(PARENTS)]))
    return network


@pytest.mark.parametrize("kind", ["zones", "filters"])
@given(
    scheme=st.sampled_from(SHARED),
    all_=st.lists(boxes(2), min_size=1, max_size=8),
    first=st.tuples(insertions(JoinSide.RIGHT, 1), insertions(JoinSide.LEFT, 1)),
    rest=st.lists(changes((1, 1)), max_size=10),
)
def test_clients_behind_a_network_have_the_join(
    kind: str,
    *,
    scheme: JoinScheme,
    all_: list[Bounds],
    first: tuple[list[JoinChange], list[JoinChange]],
    rest: list[JoinChange],
) -> None:
    network, server = made(kind, all_), SelectJoinServer(scheme=scheme)
    clients = [JoinClient(SCHEMES[scheme].keeps_unjoined) for _ in all_]
    for number, bounds in enumerate(all_):
        server.subscribe(box(number, bounds))
    star = CnStar(network.links, server=SERVER, repository_entries=2)
    for change in [*first[0], *first[1], *rest]:
        messages = server.apply([change])
        for number, position in delivered(server, network, star, messages):
            client = clients[number]
            assert client.receive(client.expected, list(messages)[position]) is None
    for number, client in enumerate(clients):
        held = {row.number for row in client.rows()}
        assert held == {row.number for row in content(server, number)}


def delivered(
    server: SelectJoinServer, network: ContentNetwork, star: CnStar, messages: MessageBatch
) -> list[tuple[int, int]]:
    """Subscriptions and messages as the network delivers them, in the order of messages."""
    regions = regions_of(messages)
    arrivals = network.route(regions)
    result = network.subscriptions.deliveries(arrivals, regions).lines
    pairs = [(int(n), int(arrivals.lines[position, MESSAGE])) for position, n in result.tolist()]
    assert sorted(pairs) == sorted(recipients(server, messages))
    left, right = (table.index.number for table in server.tables)
    load = load_of(messages, (left, right))
    matched = network.subscriptions.counts(arrivals, regions)
    carried = star.carry(arrivals, load, matched)
    got = defaultdict(set)
    for position, _ in result.tolist():
        got[int(arrivals.lines[position, MESSAGE])].add(tuple(carried.contents[position].tolist()))
    for position, message in enumerate(messages):
        is_paid = message.kind == 0
        expected = [row.number for row in message.rows] if is_paid else []
        assert got[position] <= {tuple([*expected, NONE, NONE][:2])}
    return sorted(pairs, key=lambda pair: pair[1])


def test_sizes_are_those_of_the_messages() -> None:
    server = SelectJoinServer(scheme=JoinScheme.REF_J)
    server.subscribe(box(0, ((0.0, 0.0), (9.0, 9.0))))
    server.apply([JoinChange(JoinSide.RIGHT, (1,), ("x",), (5.0,), b"r" * 30)])
    messages = server.apply([JoinChange(JoinSide.LEFT, (1,), ("x",), (5.0,), b"l" * 20)])
    left, right = (table.index.number for table in server.tables)
    load = load_of(messages, (left, right))
    assert load.payload_bytes.tolist() == [[20, 30]]
    assert (load.bare_bytes + load.payload_bytes.sum(axis=1)).tolist() == list(messages.size_bytes)
    removed = server.apply([JoinChange(JoinSide.LEFT, (1,))])
    left, right = (table.index.number for table in server.tables)
    assert load_of(removed, (left, right)).id.tolist() == [[NONE, NONE]]


def one_message() -> tuple[SelectJoinServer, MessageBatch]:
    server = SelectJoinServer(scheme=JoinScheme.REL_SEL)
    for number in range(3):
        server.subscribe(box(number, ((0.0, 0.0), (9.0, 9.0))))
    return server, server.apply([JoinChange(JoinSide.LEFT, (1,), ("x",), (5.0,), b"p" * 92)])


def test_cost_of_an_overlay() -> None:
    _, messages = one_message()
    network = FilterNetwork(2, np.array([-1, 0, 1]))
    for number, node in enumerate((0, 2, 2)):
        network.subscribe(box(number, ((0.0, 0.0), (9.0, 9.0))), np.array([node]))
    regions = regions_of(messages)
    arrivals = network.route(regions)
    matched = network.subscriptions.counts(arrivals, regions)
    star = CnStar(network.links, server=SERVER, is_star=np.zeros(3, np.bool_))
    load = load_of(messages, (np.arange(9), np.arange(9)))
    cost = overlay_cost(messages, arrivals, matched, star.carry(arrivals, load, matched))
    # 4 bytes each for join value and value, and the payload; nothing is described.
    assert (cost.traffic_bytes, cost.hops, cost.last_hop_bytes) == (200, 2, 300)
    assert cost.stress.tolist() == [100, 100, 0]
    assert (cost.deliveries, cost.latency_hops) == (3, 4 / 3)
    twice = cost + cost
    assert (twice.traffic_bytes, twice.latency_hops) == (400, 4 / 3)
    assert twice.stress.tolist() == [200, 200, 0]
    assert (NetworkCost() + cost).stress.tolist() == [100, 100, 0]


def test_cost_of_unicast() -> None:
    server, messages = one_message()
    far = np.array([[0, 3], [3, 0]])
    lines = recipients(server, messages).lines
    cost = unicast_cost(messages, lines, np.array([0, 1, 1]), server=0, distances=far)
    assert (cost.traffic_bytes, cost.physical_bytes, cost.hops) == (300, 600, 3)
    assert cost.stress.tolist() == [300, 0]
    assert cost.latency_hops == 1


# Regions and boxes: `meets` is exact for points and boxes, and the core is correct.

BOTH = [(1, 1), (2, 1), (1, 2)]


def small(dimensions: tuple[int, int]) -> st.SearchStrategy[tuple[Region, list[list[int]]]]:
    """A region and a box of small integers, so that all points of the space can be tried."""
    size, most = 2 * sum(dimensions), 4 if sum(dimensions) == 2 else 2
    number = st.integers(0, most)
    sides = st.tuples(number, number).map(sorted)
    return st.tuples(
        regions(dimensions).map(lambda region: _within(region, most)),
        st.lists(sides, min_size=size, max_size=size),
    )


def _within(region: Region, most: int) -> Region:
    def cut(point: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(min(max(each, 0), most) for each in point)

    return Region(
        region.own,
        cut(region.selected),
        tuple(map(cut, region.excluded)),
        tuple((cut(x), cut(y)) for x, y in region.pairs),
    )


def _holds(region: Region, point: tuple[float, ...], dimensions: tuple[int, int]) -> bool:
    half = len(point) // 2
    return holds(region, (point[:half], point[half:]), dimensions)


@pytest.mark.parametrize("dimensions", BOTH)
@given(data=st.data())
def test_a_point_is_met_if_the_region_holds_it(
    dimensions: tuple[int, int], data: st.DataObject
) -> None:
    region = data.draw(regions(dimensions))
    bounds: Bounds = data.draw(boxes(sum(dimensions)))
    point = np.array([[*bounds[0], *bounds[1]]])
    assert meets(flat([region], dimensions), 0, point, point, 0) == holds(
        region, bounds, dimensions
    )


@pytest.mark.parametrize("dimensions", BOTH)
@given(data=st.data())
def test_a_box_is_met_if_one_of_its_points_is(
    dimensions: tuple[int, int], data: st.DataObject
) -> None:
    region, sides = data.draw(small(dimensions))
    least, most = np.array(sides, float).T[:, None].copy()
    inside = product(*(range(low, high + 1) for low, high in sides))
    expected = any(_holds(region, point, dimensions) for point in inside)
    assert meets(flat([region], dimensions), 0, least, most, 0) == expected


def test_an_empty_place_meets_no_region() -> None:
    everyone = Region(0, (-np.inf,), (), (((np.inf,), (-np.inf,)),))  # type: ignore[arg-type]
    nobody = np.full((1, 4), np.nan)
    assert not meets(flat([everyone], (1, 1)), 0, nobody, nobody, 0)


@pytest.mark.parametrize("dimensions", BOTH)
@given(data=st.data())
def test_the_region_contains_all_points_between_it_and_its_core(
    dimensions: tuple[int, int], data: st.DataObject
) -> None:
    region, _ = data.draw(small(dimensions))
    size, top = 2 * sum(dimensions), 4 if sum(dimensions) == 2 else 2
    space = list(product(range(top + 1), repeat=size))
    least, most = np.empty(size), np.empty(size)
    held = [point for point in space if _holds(region, point, dimensions)]
    if not core(flat([region], dimensions), 0, least, most):
        assert not held
        return
    seeing = [point for point in space if (least <= point).all() and (point <= most).all()]
    assert set(seeing) <= set(held)
    for one, other in product(data.draw(_some(seeing)), data.draw(_some(held))):
        sides = (range(min(pair), max(pair) + 1) for pair in zip(one, other, strict=True))
        assert all(_holds(region, point, dimensions) for point in product(*sides))


def _some(points: list[tuple[int, ...]]) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.sampled_from(points), max_size=3) if points else st.just([])
