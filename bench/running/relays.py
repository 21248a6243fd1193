"""Delta at work with real relays: a process for each site, TCP on loopback ([Delta §5.5]).

10,000 views of which about 3,000 are unique, as in the paper, at twelve sites instead of 300
machines, since there are two cores: a process for each site, and one for the source. A document is
published when the one before is everywhere, with LOGA and without it in turn. Latency is measured
as in the paper, from the moment when the first tuple can leave the source until the home of the
view has the last one; what a relay takes to compute, encode and check is in it, and two cores do
the work of 300 machines. So seconds are this machine's, and what can be compared is the shape over
B_out and before and after LOGA. A first document, in which rewriting plans are made, does not
count.

Whatever is kept is compared with evaluating every view over the document itself, tuple by tuple.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench import Row, Say
from bench.configured.priced import Priced, told_limit
from bench.running.relay_processes import RelayProcesses, digest, loopback_addresses
from bench.workloads.xmark import documents
from bench.workloads.xmark_queries import popular_views
from headgate.model.errors import RelayError
from headgate.model.tree_pattern import PatternNode
from headgate.network.configuration import Configuration
from headgate.network.configuration_problem import UNLIMITED, Floats
from headgate.network.configure import configure
from headgate.network.explain_network import ViewLabel
from headgate.network.physical_plans import PricedPlans, price_rewritings
from headgate.network.wide_area import WideArea, uniform_area
from headgate.relay.client import Publisher
from headgate.relay.deployment import Deployment, deployment_of
from headgate.relay.received_store import read_shelf
from headgate.relay.tuple_frames import Shape, decode_tuples, encode_tuples
from headgate.views.document import Document
from headgate.views.equivalent_views import find_rewritings
from headgate.views.rewriting_plan import rewriting_plan
from headgate.views.run_levels import PatternSet
from headgate.views.run_rewriting import CompiledRewriting

LIMITS = (5, 10, 30, 50, 100, UNLIMITED)
SOURCE_LIMIT = 72
SITES = 12
TOGETHER_LIMIT, TOGETHER_DOCUMENTS = 30, 10
"""With this B_out, so many documents are published once more, at once."""
PLANNING_S = 60.0
START_S = 30.0
Lines = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Views at sites, what they are priced at, and the documents with what views hold of them."""

    views: Sequence[PatternNode]
    texts: Sequence[str]
    area: WideArea
    plans: PricedPlans
    priced: Priced
    digests: npt.NDArray[np.uint64]  # [document, view]

    def deployment(self, configuration: Configuration) -> Deployment:
        sites = [*(f"site{number}" for number in range(self.area.site_count - 1)), "source"]
        labels = [
            ViewLabel(f"v{number}", sites[at])
            for number, at in enumerate(self.area.view_site.tolist())
        ]
        return deployment_of(
            configuration,
            dict(enumerate(self.views)),
            labels,
            join_at=self.plans.join_at,
            addresses=loopback_addresses(sites),
            network="bench",
        )


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    latency_s: Floats  # [view, document], without the first one
    right: int
    wrong: int
    together_s: float
    """How long all documents took when they were published at once."""
    cpu_s: float
    """What all relays took for a document, on the processors."""


def relay_rows(*, quick: bool, say: Say) -> tuple[list[Row], Lines]:
    """Fig. 8 and 9 with real relays, and lines for a plot over the places of LIMITS."""
    count, published, sites = (1_000, 4, 4) if quick else (10_000, 20, SITES)
    say(f"{count:,} views for relays")
    world = make_world(count, published, sites)
    rows: list[Row] = []
    lines: Lines = {}
    for at, limit in enumerate(LIMITS):
        if quick and limit != TOGETHER_LIMIT:
            continue
        _, needed = world.priced.least_from_source(limit)
        source = max(SOURCE_LIMIT * count // 10_000, needed)
        plan = configure(world.priced.problem(limit, source), time_s=PLANNING_S)
        say(f"relays, B_out {told_limit(limit)}")
        found = measure(world, (plan.cheap, plan.fast), together=limit == TOGETHER_LIMIT)
        for name, each in zip(("before LOGA", "after LOGA"), found, strict=True):
            latency_s = each.latency_s
            lines.setdefault(f"relays, mean, {name}", []).append((at, float(latency_s.mean())))
            lines.setdefault(f"relays, most, {name}", []).append((at, float(latency_s.max())))
        rows += _rows(world, limit, found[0], found[1])
    say("kill -9 of relays")
    return [*rows, kills_row(quick=quick)], lines


def make_world(count: int, published: int, sites: int) -> World:
    views, texts = popular_views(count), documents(published + 1)
    digests, sizes = _direct(views, texts)
    rewritings = find_rewritings(views)
    bytes_ = float(np.mean([len(text) for text in texts]))
    area = uniform_area(np.maximum(sizes, 1.0), document_bytes=bytes_, sites=sites)
    plans = price_rewritings(rewritings, area)
    alone = int((np.diff(rewritings.view_start) == 0).sum())
    return World(views, texts, area, plans, Priced(rewritings, plans.costs, alone), digests)


def _direct(
    views: Sequence[PatternNode], texts: Sequence[str]
) -> tuple[npt.NDArray[np.uint64], Floats]:
    """What each view holds of each document, as digests, and its bytes on average."""
    unique = list(dict.fromkeys(views))
    patterns, shapes = PatternSet(unique), [Shape(each) for each in unique]
    number = {view: at for at, view in enumerate(unique)}
    of = np.array([number[view] for view in views])
    digests, sizes = [], np.zeros(len(unique))
    for text in texts:
        document = Document.read(text)
        assert document is not None
        held = zip(patterns.evaluate(document), shapes, strict=True)
        encoded = [encode_tuples(tuples, shape) for tuples, shape in held]
        digests.append([digest(each) for each in encoded])
        sizes += [len(each) for each in encoded]
    _warm_up(unique[0], encoded[0])
    return np.array(digests, np.uint64)[:, of], (sizes / len(texts))[of]


def _warm_up(view: PatternNode, content: bytes) -> None:
    """Kernels that relays need are loaded here, before they are forked."""
    tuples = decode_tuples(content, Shape(view))
    CompiledRewriting(rewriting_plan(view, {0: view})).run({0: tuples})


def measure(
    world: World, configurations: Sequence[Configuration], *, together: bool
) -> list[Measured]:
    """All configurations run at the same time, and get documents in turn: so what else this
    machine does meanwhile is the same for all of them."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        networks = []
        for number, each in enumerate(configurations):
            folder = Path(name, str(number))
            folder.mkdir()
            networks.append(RelayProcesses(world.deployment(each), folder))
        with stack:
            for each in networks:
                stack.enter_context(each)
            published = asyncio.run(_publish(networks, world.texts, together=together))
        return [_measured(world, *each) for each in zip(networks, *published, strict=True)]


def _measured(world: World, relays: RelayProcesses, first: int, together_s: float) -> Measured:
    by_site, evaluated_s = relays.seen(), relays.evaluated_s()
    seen = np.concatenate(by_site)
    views, count, published = len(world.views), len(world.texts), len(evaluated_s)
    at = seen["document"] - first
    right = seen["digest"] == world.digests[at % count, seen["view"]]
    times = np.zeros((published, views), np.int64)
    np.add.at(times, (at[right], seen["view"][right]), 1)
    began_s = np.array([evaluated_s[first + each] for each in range(published)])
    latency_s = np.full((views, published), np.nan)
    latency_s[seen["view"], at] = seen["at_s"] - began_s[at]
    once = int((times == 1).sum()) if len(seen) == published * views else 0
    cpu_s = sum(_cpu_s(each, first, first + count - 1) for each in by_site) / (count - 1)
    return Measured(latency_s[:, 1:count], once, published * views - once, together_s, cpu_s)


def _cpu_s(seen: npt.NDArray[np.void], first: int, last: int) -> float:
    """What a relay took for the documents after the first one."""
    until = [seen["cpu_s"][seen["document"] == each].max(initial=0.0) for each in (first, last)]
    return float(until[1] - until[0])


async def _publish(
    networks: Sequence[RelayProcesses], texts: Sequence[str], *, together: bool
) -> tuple[list[int], list[float]]:
    """For each network the number of the first document, and how long all took at once."""
    publishers = [await _connect(each) for each in networks]
    try:
        numbers = [[await _everywhere(each, texts[:1])] for each in publishers]
        for text in texts[1:]:
            for publisher, own in zip(publishers, numbers, strict=True):
                own.append(await _everywhere(publisher, [text]))
        took_s = []
        for publisher in publishers:
            began = time.perf_counter()
            if together:
                await _everywhere(publisher, texts[:TOGETHER_DOCUMENTS])
            took_s.append(time.perf_counter() - began)
        return [own[0] for own in numbers], took_s
    finally:
        for each in publishers:
            await each.close()


async def _everywhere(publisher: Publisher, texts: Sequence[str]) -> int:
    """Publish, wait until all sites have all of them, and tell the last one's number."""
    numbers = [await publisher.publish(text) for text in texts]
    await publisher.wait_until_everywhere(numbers[-1])
    return numbers[-1]


async def _connect(relays: RelayProcesses) -> Publisher:
    until = time.monotonic() + START_S
    while True:
        try:
            return await Publisher.connect(relays.deployment, relays.secret)
        except RelayError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)


PAPER_LATENCY = {5: "0.03 to 3.7 s; LOGA up to −20 %", UNLIMITED: "at most 4.7 s"}


def _rows(world: World, limit: int, cheap: Measured, fast: Measured) -> list[Row]:
    views, published = len(world.views), len(world.texts) - 1
    where = f"{views:,} views at {world.area.site_count - 1} relays, B_out {told_limit(limit)}"
    checked, wrong = cheap.right + fast.right, cheap.wrong + fast.wrong
    return [
        Row(
            "Fig. 8, view latency, real relays",
            where,
            f"{_range(fast.latency_s)} ({_change(fast.latency_s, cheap.latency_s):+.0%})",
            paper=PAPER_LATENCY.get(limit, "1.6 s on average"),
            baseline=f"before LOGA: {_range(cheap.latency_s)}",
        ),
        Row(
            "Fig. 9, document delivery, real relays",
            f"{where}, {published} documents",
            f"{_range(_slowest(fast))} ({_change(_slowest(fast), _slowest(cheap)):+.0%})",
            paper="2–2.5 s on average",
            baseline=f"before LOGA: {_range(_slowest(cheap))}",
        ),
        Row(
            "processors' time for a document, real relays",
            where,
            f"{fast.cpu_s:.2f} s ({fast.cpu_s / cheap.cpu_s - 1:+.0%})",
            baseline=f"before LOGA: {cheap.cpu_s:.2f} s",
        ),
        *_together_rows(
            where, min(published + 1, TOGETHER_DOCUMENTS), limit, cheap.together_s, fast.together_s
        ),
        Row(
            "results equal to direct evaluation",
            where,
            f"{checked:,} of {checked + wrong:,}, each once",
            "all",
            wrong == 0,
        ),
    ]


def _together_rows(
    where: str, published: int, limit: int, cheap_s: float, fast_s: float
) -> list[Row]:
    if limit != TOGETHER_LIMIT:
        return []
    return [
        Row(
            "documents at once, real relays",
            where,
            f"{published / fast_s:.2f} documents/s",
            baseline=f"before LOGA: {published / cheap_s:.2f} documents/s",
        )
    ]


def _slowest(measured: Measured) -> Floats:
    found: Floats = measured.latency_s.max(axis=0)
    return found


def _change(now: Floats, before: Floats) -> float:
    return float(now.mean() / before.mean()) - 1


def _range(values: Floats) -> str:
    return f"{values.mean():.3f} s, {values.min():.3f} to {values.max():.3f} s"


def kills_row(*, quick: bool) -> Row:
    """kill -9 of one relay after the other, the source too, while documents come in."""
    count, published, kills = (300, 10, 3) if quick else (1_000, 60, 20)
    world = make_world(count, published - 1, 5)
    _, needed = world.priced.least_from_source(30)
    plan = configure(world.priced.problem(30, needed), time_s=PLANNING_S)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        relays = RelayProcesses(world.deployment(plan.fast), Path(name), shelves=True)
        with relays:
            first = asyncio.run(_publish_and_kill(relays, world.texts, kills))
        lost, wrong = _judge(relays, world, first)
    took_s = time.perf_counter() - began
    return Row(
        "kill -9 of relays and the source",
        f"{kills} kills, {count:,} views, {published} documents ({took_s:,.0f} s)",
        f"{lost} lost or twice, {wrong} wrong",
        "0 lost or twice, 0 wrong",
        lost == wrong == 0,
    )


async def _publish_and_kill(relays: RelayProcesses, texts: Sequence[str], kills: int) -> int:
    chance = random.Random(1)
    sites = list(relays.deployment.addresses)
    first, number, killed = -1, -1, 0
    for at, text in enumerate(texts):
        key = at.to_bytes(16)
        while True:  # with the same key until it is accepted: the source may just have died
            try:
                publisher = await _connect(relays)
                number = await publisher.publish(text, key=key)
                await publisher.close()
                break
            except (RelayError, OSError, EOFError):
                await asyncio.sleep(0.05)
        first = number if first < 0 else first
        if killed < kills and (at + 1) * kills // len(texts) > killed:
            await asyncio.sleep(chance.uniform(0.0, 0.3))
            victim = sites[killed % len(sites)]
            relays.kill(victim)
            relays.start(victim)
            killed += 1
    publisher = await _connect(relays)
    await publisher.wait_until_everywhere(number)
    await publisher.close()
    return first


def _judge(relays: RelayProcesses, world: World, first: int) -> tuple[int, int]:
    lost, wrong = len(world.texts) * len(world.views), 0
    for site in relays.deployment.addresses:
        for view, document, content in read_shelf(relays.shelf_of(site)):
            lost -= 1
            wrong += digest(content) != world.digests[document - first, int(view[1:])]
    return lost, wrong
