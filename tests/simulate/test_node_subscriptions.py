"""The subscriptions of nodes, after any additions, removals and splits."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headgate.simulate.node_subscriptions import NodeSubscriptions

NODES = 3
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9), st.integers(1, 60)),
        st.tuples(st.just("remove"), st.integers(1, 80)),
        st.tuples(st.just("split"), st.integers(0, 9), st.integers(0, 99)),
        st.tuples(st.just("look")),
    ),
    max_size=12,
)


@given(steps=steps)
def test_dispatchers_find_exactly_the_subscriptions_of_their_node(
    steps: list[tuple[object, ...]],
) -> None:
    expected: dict[int, tuple[int, float]] = {}
    subscriptions, nodes, next_ = NodeSubscriptions(2, nodes=NODES), NODES, 0
    for step in steps:
        match step:
            case ("add", int(node), int(count)):
                numbers = np.arange(next_, next_ + count)
                values = numbers * 37.0 % 100
                homes = (node + numbers % 2) % nodes
                subscriptions.add(homes, numbers, np.stack([values, values + 1], axis=1))
                next_ += count
                expected |= dict(
                    zip(
                        numbers.tolist(),
                        zip(homes.tolist(), values.tolist(), strict=True),
                        strict=True,
                    )
                )
            case ("remove", int(count)):
                removed = np.array(sorted(expected)[:count], np.int64)
                subscriptions.remove(removed)
                for number in removed.tolist():
                    del expected[number]
            case ("split", int(node), int(value)):
                node %= nodes
                leaving = subscriptions.points(node)[:, 0] >= value
                assert subscriptions.split(node, leaving) == nodes
                for number, (home, coordinate) in expected.items():
                    if home == node and coordinate >= value:
                        expected[number] = nodes, coordinate
                nodes += 1
            case _:
                assert len(subscriptions.blocks.first) == nodes
    check(subscriptions, expected, nodes)
    assert subscriptions.holds(np.arange(-1, next_ + 1)).tolist() == [
        number in expected for number in range(-1, next_ + 1)
    ]


def check(
    subscriptions: NodeSubscriptions, expected: dict[int, tuple[int, float]], nodes: int
) -> None:
    blocks = subscriptions.blocks
    result: dict[int, tuple[int, float]] = {}
    for node in range(nodes):
        first = int(blocks.first[node])
        for block in range(first, first + int(blocks.length[node])):
            places = slice(16 * block, 16 * block + 16)
            taken = blocks.subscription[places] >= 0
            points = blocks.points[places][taken]
            assert (blocks.least[block] <= points).all()
            assert (points <= blocks.most[block]).all()
            assert np.isnan(blocks.points[places][~taken]).all()
            for number, value in zip(blocks.subscription[places][taken], points[:, 0], strict=True):
                assert int(number) not in result
                result[int(number)] = node, float(value)
    assert result == expected
    sizes = np.bincount([home for home, _ in expected.values()], minlength=nodes)
    assert subscriptions.sizes.tolist() == sizes.tolist()
