"""The simulator against a plain one with Python's heap, and against the latency model."""

from __future__ import annotations

import heapq
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.network.configuration_problems import problems, rewritings_of
from tests.network.wide_areas import area_of

from headgate.model.errors import InvalidValue, PlanError
from headgate.network.configuration import SOURCE, Configuration
from headgate.network.configuration_problem import Floats, Limits, Problem
from headgate.network.configure import configure
from headgate.network.physical_plans import AT_VIEW, PricedPlans, price_rewritings
from headgate.network.wide_area import (
    PROCESSING,
    READING,
    RECEIVING,
    SENDING,
    WideArea,
    uniform_area,
)
from headgate.simulate.wan_simulator import run_configuration


class Plain:
    """The same network, with closures as events."""

    def __init__(self, configuration: Configuration, plans: PricedPlans, area: WideArea) -> None:
        self.area, self.configuration, self.plans = area, configuration, plans
        self.events: list[tuple[float, int, str, int, int]] = []
        self.made = itertools.count()
        self.link: dict[int, float] = {}
        self.processor: dict[int, float] = {}

    def members(self, view: int) -> list[int]:
        r = int(self.configuration.choice[view])
        if r == SOURCE:
            return []
        rewritings = self.configuration.problem.rewritings
        own = slice(*rewritings.member_start[r : r + 2].tolist())
        return list(rewritings.members[own].tolist())

    def place(self, view: int) -> int:
        position = int(self.plans.join_at[self.configuration.choice[view]])
        owner = view if position == AT_VIEW else self.members(view)[position]
        return int(self.area.view_site[owner])

    def at(self, time: float, kind: str, view: int, document: int) -> None:
        heapq.heappush(self.events, (time, next(self.made), kind, view, document))

    def sent(self, now: float, start: int, end: int, size: float) -> float:
        if start == end:
            return now
        area, begin = self.area, max(now, self.link.get(start, 0.0))
        done = begin + area.start_s + size * area.seconds_per_byte[start, SENDING]
        self.link[start] = done
        delay = area.delay_s[area.region[start], area.region[end]]
        return float(done + delay + size * area.seconds_per_byte[end, RECEIVING])

    def run(self, published_s: Floats, scales: Floats) -> Floats:
        area, views = self.area, range(len(self.configuration.choice))
        result = np.zeros((len(views), len(scales)))
        missing = {(v, d): len(self.members(v)) for v in views for d in range(len(scales))}
        for document, (time, scale) in enumerate(zip(published_s, scales, strict=True)):
            for view in views:
                if self.configuration.choice[view] == SOURCE:
                    site, size = int(area.view_site[view]), area.view_bytes[view] * scale
                    ready = self.sent(time, area.source_site, site, size)
                    ready += area.start_s if site == area.source_site else 0.0
                    self.at(ready, "ready", view, document)
        while self.events:
            now, _, kind, view, document = heapq.heappop(self.events)
            site, size = int(area.view_site[view]), area.view_bytes[view] * scales[document]
            if kind == "ready":
                result[view, document] = now - published_s[document]
                read = now + size * area.seconds_per_byte[site, READING]
                for reader in views:
                    if view in self.members(reader):
                        arrives = self.sent(read, site, self.place(reader), size)
                        self.at(arrives, "arrived", reader, document)
            elif kind == "arrived":
                missing[view, document] -= 1
                if not missing[view, document]:
                    place = self.place(view)
                    total = sum(area.view_bytes[self.members(view)]) * scales[document]
                    work = area.start_s + total * area.seconds_per_byte[place, PROCESSING]
                    self.processor[place] = max(now, self.processor.get(place, 0.0)) + work
                    self.at(self.processor[place], "joined", view, document)
            else:
                self.at(self.sent(now, self.place(view), site, size), "ready", view, document)
        return result


@given(problems(), st.integers(0, 999), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_the_simulator_equals_the_plain_one(
    problem: Problem, seed: int, sites: int, documents: int
) -> None:
    area = area_of(problem.rewritings.view_count, sites=sites, seed=seed)
    plans = price_rewritings(problem.rewritings, area)
    try:
        plan = configure(Problem(problem.rewritings, plans.costs, problem.limits))
    except PlanError:
        return
    chance = np.random.default_rng(seed)
    published_s = np.cumsum(chance.integers(0, 3, documents) / 16)
    scales = chance.integers(1, 5, documents) / 2
    result = run_configuration(plan.fast, plans, area, published_s=published_s, scales=scales)
    expected = Plain(plan.fast, plans, area).run(published_s, scales)
    assert result.latency_s == pytest.approx(expected)
    assert result.delivery_s == pytest.approx(expected.max(axis=0))


def test_a_chain_without_queues_takes_the_latency_of_the_model() -> None:
    rewritings = rewritings_of([[], [(0,)], [(1,)], [(2,)]])
    area = uniform_area(np.array([4000.0, 900.0, 500.0, 90.0]), document_bytes=5000.0)
    plans = price_rewritings(rewritings, area)
    plan = configure(Problem(rewritings, plans.costs, Limits.uniform(4, source=1)))
    result = run_configuration(
        plan.fast, plans, area, published_s=np.array([7.0]), scales=np.ones(1)
    )
    assert result.latency_s[:, 0].tolist() == pytest.approx(plan.fast.latencies_s().tolist())


def test_a_view_with_many_readers_delays_them() -> None:
    """The same views, all from one view or in a tree: the flat one is slower for its last."""
    count = 2000
    flat = rewritings_of([[], *([(0,)] for _ in range(1, count))])
    tree = rewritings_of([[], *([((view - 1) // 8,)] for view in range(1, count))])
    area = uniform_area(np.full(count, 100.0), document_bytes=5000.0)
    slowest = []
    for rewritings in (flat, tree):
        plans = price_rewritings(rewritings, area)
        plan = configure(Problem(rewritings, plans.costs, Limits.uniform(count, source=1)))
        result = run_configuration(
            plan.fast, plans, area, published_s=np.zeros(1), scales=np.ones(1)
        )
        slowest.append(float(result.delivery_s[0]))
    assert slowest[0] > 5 * slowest[1]


def test_each_document_has_a_time_and_a_size() -> None:
    rewritings = rewritings_of([[]])
    area = uniform_area(np.ones(1), document_bytes=10.0)
    plans = price_rewritings(rewritings, area)
    plan = configure(Problem(rewritings, plans.costs, Limits.uniform(1)))
    with pytest.raises(InvalidValue, match="2 times, scales has 1"):
        run_configuration(plan.fast, plans, area, published_s=np.zeros(2), scales=np.ones(1))
