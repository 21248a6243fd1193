"""Generated regions and histories of a network, with `Region.holds` as the oracle."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from tests.tables.histories import NUMBERS, Bounds, box, boxes

from headgate.simulate.content_network import ZoneNetwork
from headgate.simulate.filter_network import FilterNetwork
from headgate.simulate.regions import Regions
from headgate.simulate.routing_trace import MESSAGE, NODE, Arrivals
from headgate.tables.messages import JoinSide, Point, Region

Step = tuple[str, int, Bounds] | tuple[str, int] | tuple[str, list[Region]]
EVERYONE = (math.inf, -math.inf)


def points(size: int) -> st.SearchStrategy[Point]:
    return st.lists(NUMBERS, min_size=size, max_size=size).map(tuple)


@st.composite
def regions(draw: st.DrawFn, dimensions: tuple[int, int]) -> Region:
    own_side = draw(st.sampled_from(JoinSide))
    width, other = dimensions[own_side], dimensions[own_side.other]
    pair = st.tuples(points(other), points(other)) | st.just(
        tuple((each,) * other for each in EVERYONE)
    )
    return Region(
        own_side,
        draw(points(width) | st.just((-math.inf,) * width)),
        tuple(draw(st.lists(points(width), max_size=3))),
        tuple(draw(st.lists(pair, min_size=1, max_size=3))),
    )


def flat(some: list[Region], dimensions: tuple[int, int]) -> Regions:
    """Regions as the arrays that the kernels take."""
    numbers: list[float] = []
    lines = []
    for region in some:
        lines.append((region.own, len(numbers), len(region.excluded), len(region.pairs)))
        for point in (
            region.selected,
            *region.excluded,
            *(p for pair in region.pairs for p in pair),
        ):
            numbers += point
    columns = np.array(lines, np.int64).reshape(-1, 4).T.copy()
    return Regions(*columns, np.array(numbers), np.array(dimensions, np.int64))


def holds(region: Region, bounds: Bounds, dimensions: tuple[int, int]) -> bool:
    (low, high), left = bounds, dimensions[0]
    return region.holds((low[:left], low[left:]), (high[:left], high[left:]))


def histories(dimensions: tuple[int, int]) -> st.SearchStrategy[list[Step]]:
    """Some subscriptions, then any steps, with messages in between."""
    size, number = sum(dimensions), st.integers(0, 40)
    some = st.lists(boxes(size), max_size=40)
    first = some.map(
        lambda all_: [("subscribe", position, each) for position, each in enumerate(all_)]
    )
    step = st.one_of(
        st.tuples(st.just("subscribe"), number, boxes(size)),
        st.tuples(st.just("unsubscribe"), number),
        st.tuples(st.just("join"), st.integers(1, 8)),
        st.tuples(st.just("split"), number),
        st.tuples(st.just("publish"), st.lists(regions(dimensions), min_size=1, max_size=4)),
    )
    return st.tuples(first, st.lists(step, max_size=12)).map(lambda all_: [*all_[0], *all_[1]])


@dataclass
class World:
    """A network, and the bounds of its subscriptions as a dictionary."""

    dimensions: tuple[int, int]
    network: ZoneNetwork | FilterNetwork
    bounds: dict[int, Bounds] = field(default_factory=dict)
    last: list[Region] = field(default_factory=list)

    def take(self, step: Step) -> None:
        match step:
            case ("subscribe", int(number), bounds) if number not in self.bounds:
                self.bounds[number] = bounds
                self._subscribe(number, bounds)
            case ("unsubscribe", int(number)) if number in self.bounds:
                del self.bounds[number]
                self.network.unsubscribe(np.array([number]))
            case ("join", int(count)) if isinstance(self.network, ZoneNetwork):
                handled = flat(self.last, self.dimensions) if count % 2 else None
                self.network.join(count, handled=handled)
            case ("split", int(number)) if isinstance(self.network, ZoneNetwork):
                zone = number % len(self.network)
                if self.network.zones.middle_cut(zone) is not None:
                    self.network.split(zone)
            case ("publish", list(some)):
                self.publish(some)

    def publish(self, some: list[Region]) -> Arrivals:
        """Publish and check: exactly the subscriptions in a region get its message, once."""
        self.last = some
        flat_regions = flat(some, self.dimensions)
        arrivals = self.network.route(flat_regions)
        result = self.network.subscriptions.deliveries(arrivals, flat_regions).lines
        got = Counter(
            (int(arrivals.lines[position, MESSAGE]), int(number))
            for position, number in result.tolist()
        )
        expected = Counter(
            (position, number)
            for position, region in enumerate(some)
            for number, bounds in self.bounds.items()
            if holds(region, bounds, self.dimensions)
        )
        assert got == expected
        homes = self.network.subscriptions.nodes_of(result[:, 1])
        assert (arrivals.lines[result[:, 0], NODE] == homes).all()
        return arrivals

    def _subscribe(self, number: int, bounds: Bounds) -> None:
        if isinstance(self.network, ZoneNetwork):
            self.network.subscribe(box(number, bounds))
        else:
            nodes = len(self.network.links.start) - 1
            self.network.subscribe(box(number, bounds), np.array([number * 7 % nodes]))
