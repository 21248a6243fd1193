"""Payloads arrive as sent even if soft state is lost, at the cost of Algorithm 1."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulate.cn_star_oracle import Payloads, PlainCnStar
from tests.simulate.region_worlds import Step, World, flat, histories, regions

from headgate.model.errors import InvalidValue
from headgate.simulate.cn_star import (
    BYTES,
    EXTRA_BYTES,
    FAILED_REQUESTS,
    HOPS,
    ID_BYTES,
    REQUESTED,
    Carried,
    CnStar,
    Links,
    Load,
)
from headgate.simulate.content_network import SERVER, ZoneNetwork
from headgate.simulate.filter_network import FilterNetwork
from headgate.simulate.recent_entries import NONE
from headgate.simulate.routing_trace import MESSAGE
from headgate.tables.boxes import Boxes
from headgate.tables.messages import JoinSide, Region

PARENTS = np.array([-1, 0, 0, 1, 1, 2, 5, 5, 3, 0])
DATA = [bytes([at]) * (3 * at + 1) for at in range(8)]


def load_of(payloads: list[Payloads], bare: list[int]) -> Load:
    """The payloads as a `Load`; contents are integers that differ from the ids."""
    ids = [[NONE if each is None else each[0] for each in some] for some in payloads]
    contents = [[NONE if each is None else 1_000 + each[0] for each in some] for some in payloads]
    sizes = [[0 if each is None else len(each[1]) for each in some] for some in payloads]
    arrays = (np.array(each, np.int64) for each in (bare, ids, contents, sizes))
    return Load(*arrays)


def kinds_of(nodes: int, pattern: int) -> np.ndarray:
    """Which nodes are CN* nodes: all, none, or a mix."""
    return np.array(
        [pattern == 1 or (pattern > 1 and position % pattern != 1) for position in range(nodes)]
    )


payloads = st.lists(st.none() | st.integers(0, 7), min_size=2, max_size=2, unique=True).map(
    lambda some: tuple(None if each is None else (each, DATA[each]) for each in some)
)
messages = st.lists(st.tuples(regions((1, 1)), payloads), min_size=1, max_size=8)
steps_of_payloads = st.lists(
    st.one_of(
        messages,
        messages,
        st.tuples(st.just("forget"), st.integers(0, 30)),
        st.tuples(st.just("join"), st.integers(1, 4)),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("kind", ["zones", "filters"])
@given(
    history=histories((1, 1)),
    steps=steps_of_payloads,
    pattern=st.integers(0, 4),
    repository=st.integers(0, 4),
    directory=st.sampled_from([0, 1, 3, 100]),
)
def test_kernels_equal_the_oracle(
    *,
    kind: str,
    history: list[Step],
    steps: list[object],
    pattern: int,
    repository: int,
    directory: int,
) -> None:
    network = ZoneNetwork(2) if kind == "zones" else FilterNetwork(2, PARENTS, parts=2)
    world = World((1, 1), network)
    for step in [*history, ("join", 12)]:
        world.take(step)
    kinds = kinds_of(len(network.links.start) - 1, pattern)
    entries = {"repository_entries": repository, "directory_entries": directory}
    ours = CnStar(network.links, server=SERVER, is_star=kinds, **entries)
    plain = PlainCnStar(kinds.tolist(), server=SERVER, repository=repository, directory=directory)
    total: Counter[int] = Counter()
    for step in steps:
        match step:
            case ("forget", int(number)):
                ours.forget(number % len(plain.nodes))
                plain.forget(number % len(plain.nodes))
            case ("join", _):
                world.take(step)
                kinds = kinds_of(len(network.links.start) - 1, pattern)
                ours.relink(network.links, is_star=kinds)
                plain.relink(kinds.tolist())
            case list(some):
                publish(world, ours, plain, some, total)
    assert total[BYTES] == sum(plain.stress.values())
    assert (total[HOPS], total[REQUESTED], total[FAILED_REQUESTS]) == (
        plain.hops,
        plain.requests,
        plain.failed_requests,
    )


def publish(
    world: World,
    ours: CnStar,
    plain: PlainCnStar,
    some: list[tuple[Region, Payloads]],
    total: Counter[int],
) -> None:
    flat_regions, sent = flat([region for region, _ in some], (1, 1)), [each for _, each in some]
    arrivals = world.publish([region for region, _ in some])
    matched = world.network.subscriptions.counts(arrivals, flat_regions)
    bare = [10 + position for position in range(len(some))]
    before = Counter(plain.stress)
    carried = ours.carry(arrivals, load_of(sent, bare), matched)
    got, when = plain.carry(arrivals, sent, bare, matched.tolist())
    for position, line in enumerate(arrivals.lines.tolist()):
        if not matched[position]:
            continue
        expected = [NONE if each is None else 1_000 + each[0] for each in sent[line[MESSAGE]]]
        assert carried.contents[position].tolist() == expected
        assert got[position] == dict(each for each in sent[line[MESSAGE]] if each is not None)
        assert carried.hops[position] == when[position]
    stress = {position: int(each) for position, each in enumerate(carried.stress) if each}
    assert stress == dict(Counter(plain.stress) - before)
    for position, each in enumerate(carried.total.tolist()):
        total[position] += each


def chain(length: int) -> tuple[World, Region]:
    """A tree without branches, a subscription at its end, and a message for it."""
    world = World((1, 1), FilterNetwork(2, np.arange(length) - 1))
    bounds = np.zeros((1, 2)), np.ones((1, 2))
    world.network.subscribe(Boxes(np.array([0]), *bounds), np.array([length - 1]))
    world.bounds[0] = (0.0, 0.0), (1.0, 1.0)
    return world, Region(JoinSide.LEFT, (0.5,), (), (((0.5,), (0.5,)),))


def send(world: World, region: Region, star: CnStar, size: int = 1_000) -> Carried:
    flat_regions = flat([region], (1, 1))
    arrivals = world.publish([region])
    load = Load(
        np.array([20]), np.array([[7, NONE]]), np.array([[99, NONE]]), np.array([[size, 0]])
    )
    carried = star.carry(arrivals, load, world.network.subscriptions.counts(arrivals, flat_regions))
    assert carried.contents[-1].tolist() == [99, NONE]
    return carried


def test_the_second_time_only_the_id_is_sent() -> None:
    world, region = chain(4)
    star = CnStar(world.network.links, server=SERVER)
    assert send(world, region, star).total[BYTES] == 3 * (20 + EXTRA_BYTES + 1_000 + ID_BYTES)
    second = send(world, region, star)
    assert second.total[BYTES] == 3 * (20 + EXTRA_BYTES)
    assert second.hops[-1] == 3


def test_without_repositories_the_last_node_requests_from_the_server() -> None:
    world, region = chain(4)
    star = CnStar(world.network.links, server=SERVER, repository_entries=0)
    send(world, region, star)
    second = send(world, region, star)
    assert second.total[REQUESTED] == 1
    assert second.hops[-1] == 3 + 2
    assert second.total[BYTES] == 3 * (20 + EXTRA_BYTES) + 2 * ID_BYTES + 4 + 1_000


def test_a_crashed_node_requests_from_source() -> None:
    world, region = chain(4)
    star = CnStar(world.network.links, server=SERVER)
    send(world, region, star)
    star.forget(3)
    second = send(world, region, star)
    assert (second.total[REQUESTED], second.total[FAILED_REQUESTS], second.hops[-1]) == (1, 0, 5)
    assert second.stress[2] == 20 + EXTRA_BYTES + ID_BYTES + 1_000
    star.forget(3)
    star.forget(2)
    third = send(world, region, star)
    # Node 2 has lost its directory and repository: it requests from Source, which is node 1.
    assert (third.total[REQUESTED], third.total[FAILED_REQUESTS], third.hops[-1]) == (1, 0, 5)
    assert third.stress[1] == 20 + EXTRA_BYTES + ID_BYTES + 1_000


def test_a_request_to_a_source_without_the_payload_fails() -> None:
    world = World((1, 1), FilterNetwork(2, np.array([-1, 0, 1, 1])))
    low = np.array([[0.0, 0.0], [5.0, 5.0]])
    world.network.subscribe(Boxes(np.arange(2), low, low + 1), np.array([2, 3]))
    world.bounds = {0: ((0.0, 0.0), (1.0, 1.0)), 1: ((5.0, 5.0), (6.0, 6.0))}
    star = CnStar(world.network.links, server=SERVER, repository_entries=1)
    a, b, at_2, at_3 = (1, b"a" * 50), (2, b"b" * 60), 0.0, 5.0

    def send_(value: float, *sent: tuple[int, bytes] | None) -> Carried:
        region = Region(JoinSide.LEFT, (value,), (), (((value,), (value,)),))
        arrivals = world.publish([region])
        matched = world.network.subscriptions.counts(arrivals, flat([region], (1, 1)))
        return star.carry(arrivals, load_of([sent], [20]), matched)

    send_(at_3, b, None)
    send_(at_2, a, None)
    star.forget(2)
    # Node 1 has a and needs b for its link to 2; storing b evicts a.
    last = send_(at_2, a, b)
    assert last.contents[-1].tolist() == [1_001, 1_002]
    assert (last.total[REQUESTED], last.total[FAILED_REQUESTS]) == (2, 1)
    assert last.hops[-1] == 2 + 2 + 4


def test_plain_nodes_cost_what_a_plain_network_does() -> None:
    world, region = chain(4)
    star = CnStar(world.network.links, server=SERVER, is_star=np.zeros(4, np.bool_))
    for _ in range(2):
        assert send(world, region, star).total[BYTES] == 3 * 1_020


def test_a_payload_is_sent_again_to_a_plain_node_only() -> None:
    world, region = chain(4)
    kinds = np.array([True, True, False, True])
    star = CnStar(world.network.links, server=SERVER, is_star=kinds)
    send(world, region, star)
    second = send(world, region, star)
    sizes = 20 + EXTRA_BYTES, 1_020 + EXTRA_BYTES
    # 0 → 1 sends the id; 1 → 2 and 2 → 3 the payload, which 3 acknowledges.
    assert second.total[BYTES] == sizes[0] + 2 * sizes[1] + ID_BYTES


def test_distances_count_for_physical_traffic() -> None:
    world, region = chain(3)
    distances = np.array([[0, 2, 9], [2, 0, 5], [9, 5, 0]])
    kinds = np.zeros(3, np.bool_)
    star = CnStar(world.network.links, server=SERVER, is_star=kinds, distance=distances)
    assert send(world, region, star).total[1] == 1_020 * (2 + 5)


@pytest.mark.parametrize("entries", [{"repository_entries": -1}, {"directory_entries": -1}])
def test_negative_capacities_are_rejected(entries: dict[str, int]) -> None:
    with pytest.raises(InvalidValue, match="negative number of entries"):
        CnStar(Links(np.array([0, 0]), np.array([], np.int64)), server=0, **entries)


def test_is_star_of_wrong_size_is_rejected() -> None:
    with pytest.raises(InvalidValue, match="do not match 1 nodes"):
        CnStar(
            Links(np.array([0, 0]), np.array([], np.int64)), server=0, is_star=np.array([True] * 2)
        )


def test_a_trace_with_newer_nodes_is_rejected() -> None:
    network = ZoneNetwork(2)
    low = np.arange(40.0).reshape(20, 2)
    network.subscribe(Boxes(np.arange(20), low, low + 50))
    star = CnStar(network.links, server=SERVER)
    network.join(5)
    region = Region(JoinSide.LEFT, (30.0,), (), (((30.0,), (30.0,)),))
    flat_regions = flat([region], (1, 1))
    arrivals = network.route(flat_regions)
    matched, load = (
        network.subscriptions.counts(arrivals, flat_regions),
        load_of([(None, None)], [9]),
    )
    with pytest.raises(InvalidValue, match="relink first"):
        star.carry(arrivals, load, matched)
    star.relink(network.links)
    assert star.carry(arrivals, load, matched).total[HOPS] == len(arrivals) - 1
    with pytest.raises(InvalidValue, match="0 counts for"):
        star.carry(arrivals, load, matched[:0])
