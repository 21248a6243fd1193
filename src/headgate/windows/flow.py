"""The state of the join stage, and one step of items through the graph (stage.py has the
invariant).

    leaf ──► μ ──► ∪ ──► ω        nodes run by number, so that each has all its input of the step
      └────────► ⋈ ◄─────┘        before the nodes above it; only nodes with input run

The primary items of a join arrive when they are due, and are decided then. Rows of the window that
arrived after that instant are excluded by their arrival time.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headgate.model.filters import Filter
from headgate.model.items import Annotation, Item
from headgate.model.tree_pattern import PatternNode
from headgate.plan.algebra import Join, Match, Union, Window
from headgate.windows.arrivals import NEVER_US, Element, FeedOutput, instant_of
from headgate.windows.embed_patterns import embeds_patterns
from headgate.windows.graph import Graph, leaf_of
from headgate.windows.probe import Joined, Probe
from headgate.windows.similar_index import PrimaryWords
from headgate.windows.window_state import WindowState

SWEPT_WINDOWS = 8
"""Windows that are checked for expired items in each step, besides those with new items."""


class WaitingItem(NamedTuple):
    """An item of a node that is not yet due at the joins above it."""

    node: int
    element: Element


class Flow:
    """Windows, probes and the items between nodes within a step."""

    def __init__(self, graph: Graph, *, lateness_us: int, kept_us: int) -> None:
        self.graph = graph
        self.windows: dict[int, WindowState] = {}
        self.probes: dict[tuple[int, Filter], Probe] = {}
        """By window and predicate; joins that have both in common share a probe."""
        self.probe_of: dict[int, Probe] = {}
        """By number of a join."""
        self._lateness_us = lateness_us
        self._inbox: dict[int, list[Element]] = {}
        self._to_run: list[int] = []
        self._touched: list[WindowState] = []
        self._probed: set[Probe] = set()
        self._words = PrimaryWords()
        self._swept = 0
        self._known_from: Mapping[str, int] = {}
        for number, node in enumerate(graph.nodes):
            if isinstance(node, Window):
                self.windows[number] = WindowState(node.size, kept_us=kept_us)
            elif isinstance(node, Join):
                key = graph.number_of[node.window], node.predicate
                if key not in self.probes:
                    self.probes[key] = Probe(node.predicate, key[0], self.windows[key[0]])
                self.probe_of[number] = self.probes[key]
        self._all_windows = list(self.windows.values())
        self.spent_ns = [0] * len(graph.nodes)
        """For each node its CPU time; whoever reads it resets it."""
        self.uncertain_until: list[int] = []
        self.set_known_from({})

    def step(
        self, instant_us: int, leaves: Mapping[int, list[Element]], due: Sequence[WaitingItem]
    ) -> tuple[list[FeedOutput], list[WaitingItem]]:
        """Send items of leaves and items that are due up the graph; return the outputs of feeds and
        the waiting items."""
        outputs = _Outputs(self.graph)
        waiting: list[WaitingItem] = []
        for waiting_item in due:
            for join in self.graph.joins[waiting_item.node]:
                self._send(join, [waiting_item.element])
        for number, elements in leaves.items():
            self._send(number, elements)
        while self._to_run:
            number = heapq.heappop(self._to_run)
            began_ns = time.thread_time_ns()
            output = self._run(number, self._inbox.pop(number))
            self.spent_ns[number] += time.thread_time_ns() - began_ns
            if not output:
                continue
            outputs.take(number, output)
            self._send_on(number, output)
            if self.graph.joins[number]:
                waiting += self._wait_or_send(number, output, instant_us)
        self._end(instant_us)
        return outputs.in_order(), waiting

    def _send(self, number: int, elements: list[Element]) -> None:
        if number not in self._inbox:
            self._inbox[number] = []
            heapq.heappush(self._to_run, number)
        self._inbox[number] += elements

    def _send_on(self, number: int, output: list[Element]) -> None:
        """Send the output of a node to the nodes above that take it at once."""
        patterns: list[tuple[int, PatternNode]] = []
        for above in self.graph.flows[number]:
            node = self.graph.nodes[above]
            if isinstance(node, Match):
                patterns.append((above, node.pattern))
            else:
                self._send(above, output)
        # Document by document, so that each is parsed once for all patterns.
        for element in output if patterns else ():
            embedded = embeds_patterns([pattern for _, pattern in patterns], element.item)
            for (above, _), is_in in zip(patterns, embedded, strict=True):
                if is_in:
                    self._send(above, [element])

    def _wait_or_send(
        self, number: int, output: list[Element], instant_us: int
    ) -> list[WaitingItem]:
        """Send items that are due to the joins above a node; return the others."""
        due = [each for each in output if each.due_us <= instant_us]
        if due:
            for join in self.graph.joins[number]:
                self._send(join, due)
        return [WaitingItem(number, each) for each in output if each.due_us > instant_us]

    def _run(self, number: int, elements: list[Element]) -> list[Element]:
        match self.graph.nodes[number]:
            case Join(id_):
                return self._join(number, id_, elements)
            case Window():
                self.windows[number].insert(elements)
                self._touched.append(self.windows[number])
                return []
            case Union():
                # The same item may come through several inputs, always with the same instants.
                return list({each.item: each for each in elements}.values())
        return elements  # of a leaf, or of a pattern: see `_send_on`

    def _join(self, number: int, id_: str, elements: list[Element]) -> list[Element]:
        probe = self.probe_of[number]
        self._probed.add(probe)
        uncertain_before = probe.uncertain_us
        joined = probe.join(
            elements, self._words, window_uncertain_us=self.uncertain_until[probe.number]
        )
        if probe.uncertain_us != uncertain_before:
            self.uncertain_until = self._uncertain_until()
        return [
            Element(
                _annotated(element.item, id_, partners),
                element.time_us,
                element.due_us,
                element.due_us,
            )
            for element, partners in zip(elements, joined, strict=True)
            if partners
        ]

    def _end(self, instant_us: int) -> None:
        """Drop what no later step needs."""
        for probe in self._probed:
            probe.end_step()
        self._probed.clear()
        self._words.forget()
        windows = self._all_windows
        for position in range(self._swept, self._swept + min(SWEPT_WINDOWS, len(windows))):
            self._touched.append(windows[position % len(windows)])
        self._swept = (self._swept + SWEPT_WINDOWS) % max(1, len(windows))
        for window in self._touched:
            window.expire(instant_us)
        self._touched = []

    def set_known_from(self, known_from: Mapping[str, int]) -> None:
        """Items of these sources until the given times will not be pushed (rebuild.py)."""
        self._known_from = known_from
        self.uncertain_until = self._uncertain_until()

    def is_complete(self, instant_us: int) -> bool:
        """Whether the state is the same as if all items had been pushed."""
        primaries = (number for number, joins in enumerate(self.graph.joins) if joins)
        return all(
            window.is_complete(instant_us, self.uncertain_until[number])
            for number, window in self.windows.items()
        ) and all(
            self.uncertain_until[primary] <= instant_us - self._lateness_us for primary in primaries
        )

    def _uncertain_until(self) -> list[int]:
        """For each node, until which time its items may be wrong or missing."""
        uncertain: list[int] = []
        for number, node in enumerate(self.graph.nodes):
            leaf = leaf_of(node)
            if leaf is not None:
                uncertain.append(self._known_from.get(leaf[0], NEVER_US))
                continue
            below = [uncertain[each] for each in self.graph.inputs(number)]
            if isinstance(node, Join):
                probe = self.probe_of[number]
                size_us = probe.window.size_us
                if size_us is None:
                    below[1] = probe.uncertain_us
                elif below[1] > NEVER_US:
                    below[1] += size_us
            uncertain.append(max(below, default=NEVER_US))
        return uncertain


def _annotated(item: Item, id_: str, joined: Joined) -> Item:
    """As `Item.annotated`, but four times as fast: an item may be in thousands of feeds."""
    notes = item.annotations | {Annotation(id_, joined)}
    return Item(item.id, item.source, item.time, item.attributes, notes)


class _Outputs:
    """The outputs of one step: each item once, with all feeds that have it."""

    def __init__(self, graph: Graph) -> None:
        self._feeds = graph.feeds
        self._entries: dict[Item, tuple[Element, int, set[str]]] = {}

    def take(self, number: int, elements: Sequence[Element]) -> None:
        feeds = self._feeds.get(number)
        if feeds:
            for element in elements:
                self._entries.setdefault(element.item, (element, number, set()))[2].update(feeds)

    def in_order(self) -> list[FeedOutput]:
        """By instant, then item; copies of an item with different annotations by node number."""
        entries = sorted(
            self._entries.values(),
            key=lambda entry: (
                entry[0].arrived_us,
                entry[0].time_us,
                entry[0].item.source,
                entry[0].item.id,
                entry[1],
            ),
        )
        return [
            FeedOutput(tuple(sorted(feeds)), element.item, instant_of(element.arrived_us))
            for element, _, feeds in entries
        ]
