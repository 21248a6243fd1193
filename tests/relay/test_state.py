"""Relays in any weather: what arrives is what direct evaluation gives, in order and once."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model.errors import RelayError
from headgate.model.tree_pattern import PatternNode
from headgate.relay.deployment import Address, Deployment, RelayView
from headgate.relay.state import RelayState
from headgate.relay.streams import Position, RelayMessage, Result

ANY = PatternNode("a")
SITES = ["source", "A", "B", "C"]


@dataclass(frozen=True, slots=True)
class Traced:
    """A result that says how it came about: the document, and all views on the way."""

    trace: object
    size_bytes: int = 1


@st.composite
def deployments(draw: st.DrawFn) -> Deployment:
    """Views that read earlier ones, at few sites, so that sites feed each other both ways."""
    views: list[RelayView] = []
    for number in range(draw(st.integers(1, 8))):
        reads = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        at = draw(st.sampled_from(SITES))
        place = draw(st.sampled_from([at, *(views[each].site for each in sorted(reads))]))
        views.append(RelayView(f"v{number}", at, ANY, tuple(sorted(reads)), place if reads else ""))
    addresses = {site: Address("127.0.0.1", 1 + at) for at, site in enumerate(SITES)}
    return Deployment("test", "source", addresses, tuple(views))


def expected(deployment: Deployment, view: int, document: int) -> Traced:
    reads = deployment.views[view].reads
    below = tuple(expected(deployment, each, document).trace for each in reads)
    return Traced((document, view, below))


class World:
    """Relays, what is under way between them, and what their homes have kept for good."""

    def __init__(self, deployment: Deployment, documents: int, window: int) -> None:
        self.deployment, self.documents, self.window = deployment, documents, window
        self.kept: dict[tuple[int, int], Result] = {}
        self.again = 0
        self.mark, self.evaluated = 0, 0
        self.sites: dict[str, RelayState] = {}
        self.wires: dict[tuple[str, str], tuple[deque[RelayMessage], deque[tuple[int, int]]]] = {}
        for site in SITES:
            self.start(site)

    def start(self, site: str) -> None:
        """Start a relay, or kill it and start it again: only what was kept survives."""
        for ends in [each for each in self.wires if site in each]:
            del self.wires[ends]
        self.sites[site] = RelayState(self.deployment.parts[site], window=self.window)
        if site == "source":
            self.evaluated = self.mark
            self.sites[site].begin_source(self.mark)

    def cut(self, ends: tuple[str, str]) -> None:
        """A connection is lost with all that is under way."""
        self.wires.pop(ends, None)

    def connect(self, supplier: str, reader: str) -> None:
        self.wires[supplier, reader] = deque(), deque()
        state = self.sites[reader]
        self.sites[supplier].resume(reader, state.positions(supplier), window=state.window)
        state.take_acknowledgements(supplier)

    def wanted(self) -> list[tuple[str, str]]:
        return [
            (supplier, site)
            for site, part in self.deployment.parts.items()
            for supplier in part.suppliers
        ]

    def step(self, site: str) -> bool:
        """Whatever a relay can do by itself."""
        state, did = self.sites[site], False
        if site == "source" and self.evaluated < self.documents and state.has_room(self.evaluated):
            own = self.from_documents(site)
            state.published({n: expected(self.deployment, n, self.evaluated) for n in own})
            self.evaluated += 1
            did = bool(own)
        while (job := state.next_job()) is not None:
            traces = tuple(job.inputs[each].trace for each in self.deployment.views[job.view].reads)
            state.computed(job, Traced((job.document, job.view, traces)))
            did = True
        if kept := state.take_to_keep():
            self.keep(kept)
            state.kept(kept)
            did = True
        if site == "source":
            assert state.settled_by_all() >= self.mark
            self.mark = max(self.mark, state.settled_by_all())
        return did

    def from_documents(self, site: str) -> list[int]:
        own = self.deployment.parts[site].views.values()
        return [each.number for each in own if not each.supplier and not each.reads]

    def keep(self, messages: list[RelayMessage]) -> None:
        for each in messages:
            key = each.view, each.document
            if key in self.kept:
                self.again += 1
                assert self.kept[key] == each.result
            else:
                earlier = [doc for view, doc in self.kept if view == each.view]
                assert each.document == max(earlier, default=-1) + 1, "in the order of documents"
                self.kept[key] = each.result

    def transfer(self, ends: tuple[str, str], *, twice: bool = False) -> bool:
        supplier, reader = ends
        there, back = self.wires[ends]
        there.extend(self.sites[supplier].take_messages(reader, bytes_max=3))
        starts = self.sites[supplier].take_starts(reader)
        for view, document in starts.items():
            self.sites[reader].start(supplier, view, document)
        back.extend(self.sites[reader].take_acknowledgements(supplier))
        did = bool(there or back or starts)
        for _ in range(min(len(there), 2)):
            each = there.popleft()
            assert isinstance(each.result, Traced)
            self.sites[reader].receive(supplier, each.view, each.document, each.result)
            if twice:
                assert not self.sites[reader].receive(
                    supplier, each.view, each.document, each.result
                )
        for _ in range(min(len(back), 2)):
            self.sites[supplier].acknowledge(reader, *back.popleft())
        return did

    def settle(self) -> None:
        """Good weather, until nothing is left to do."""
        for ends in self.wanted():
            if ends not in self.wires:
                self.connect(*ends)
        while any([self.step(site) for site in SITES] + [self.transfer(e) for e in self.wires]):
            pass

    def check_windows(self) -> None:
        for state in self.sites.values():
            assert all(next_ - settled <= self.window for _, next_, settled in state.marks())

    def check(self) -> None:
        views = range(len(self.deployment.views))
        assert self.kept == {
            (view, document): expected(self.deployment, view, document)
            for view in views
            for document in range(self.documents)
        }
        assert self.mark == self.documents
        for state in self.sites.values():
            assert state.held_bytes == 0
            # A relay that was started after the last document does not know where it is.
            assert {mark for _, *marks in state.marks() for mark in marks} <= {self.documents, -1}


disasters = st.lists(
    st.tuples(st.sampled_from(["kill", "kill", "cut", "nothing"]), st.integers(0, 30)), max_size=12
)


@settings(deadline=None)
@given(deployments(), st.integers(1, 8), st.integers(1, 3), disasters, st.integers(0, 2**32))
def test_any_weather_gives_what_direct_evaluation_gives(
    deployment: Deployment, documents: int, window: int, weather: list[tuple[str, int]], seed: int
) -> None:
    world, random = World(deployment, documents, window), Random(seed)
    links = world.wanted()
    for what, which in weather:
        for _ in range(random.choice([0, 5, 20, 60])):
            ends = random.choice(links) if links else None
            if ends is None or random.random() < 0.3:
                world.step(random.choice(SITES))
            elif ends not in world.wires:
                world.connect(*ends)
            else:
                world.transfer(ends, twice=random.random() < 0.2)
            world.check_windows()
        if what == "kill":
            world.start(SITES[which % len(SITES)])
        elif what == "cut" and links:
            world.cut(links[which % len(links)])
    world.settle()
    world.check()


def pair() -> Deployment:
    addresses = {site: Address("127.0.0.1", 1 + at) for at, site in enumerate(SITES)}
    views = (RelayView("v0", "A", ANY), RelayView("v1", "B", ANY, (0,)))
    return Deployment("test", "source", addresses, views)


def test_a_view_goes_from_a_site_to_another_once() -> None:
    parts = pair().parts
    assert parts["source"].views[0].readers == ["A"]
    assert parts["A"].views[0].readers == ["B"]
    assert parts["B"].views[0].used_by == [1]
    assert parts["C"].views == {}


def test_what_a_peer_must_not_do_is_refused() -> None:
    state = RelayState(pair().parts["A"])
    with pytest.raises(RelayError, match="B sends view 0, which A has not asked for"):
        state.receive("B", 0, 0, Traced(0))
    with pytest.raises(RelayError, match="source sends view 1, which A has not asked for"):
        state.receive("source", 1, 0, Traced(0))
    with pytest.raises(RelayError, match="C reads nothing from A"):
        state.resume("C", [], window=1)
    with pytest.raises(RelayError, match="B is not a reader of view 1 at A"):
        state.acknowledge("B", 1, 0)
    assert state.receive("source", 0, 5, Traced(0))
    assert not state.receive("source", 0, 5, Traced(0))
    with pytest.raises(RelayError, match="sends document 7 of view 0, expected 6"):
        state.receive("source", 0, 7, Traced(0))
    with pytest.raises(RelayError, match="B acknowledges view 0 up to 6, which it has not"):
        state.acknowledge("B", 0, 6)
    with pytest.raises(RelayError, match="has settled more of view 0 than it has"):
        state.resume("B", [Position(0, 5, 6)], window=1)


def test_a_slow_reader_holds_back_no_more_than_its_window() -> None:
    state = RelayState(pair().parts["source"], window=3)
    state.begin_source(10)
    for document in range(10, 13):
        assert state.has_room(document)
        state.published({0: Traced(document)})
    assert not state.has_room(13)
    state.resume("A", [Position(0, -1, -1)], window=2)
    sent = [each.document for each in state.take_messages("A", bytes_max=100)]
    assert sent == [10, 11]
    assert state.take_messages("A", bytes_max=100) == []
    state.acknowledge("A", 0, 11)
    assert [each.document for each in state.take_messages("A", bytes_max=100)] == [12]
    assert state.has_room(13)
    assert state.held_bytes == 2


def test_large_documents_narrow_the_window() -> None:
    state = RelayState(pair().parts["A"], window=8, held_bytes_max=100)
    assert state.window == 8
    state.receive("source", 0, 0, Traced(0, size_bytes=40))
    assert state.window == 2
    state.receive("source", 0, 1, Traced(0, size_bytes=4000))
    assert state.window == 1
    for document in range(2, 12):
        state.receive("source", 0, document, Traced(0, size_bytes=1))
    assert state.window == 8
