"""Multi-way select-joins: traffic of all decompositions, the greedy one, and of the strawmen.

[Select-Joins Fig. 13] (general schema), Fig. 14 (star schema) and Appendix I, on the workloads of
bench/workloads/multiway_joins.py. Both figures are pictures; their numbers are those in the text.

Traffic is bytes × links: the subscriptions of each group are in a network of 1,000 zones (CAN), and
a message goes along a tree to all zones that its region meets. Zones are cut by the first 300
events, which are not measured, for each group and each strawman by itself. Insertions and deletions
both count. Decompositions are compared over several seeds of events, each with zones of its own, as
the paper repeats its experiments. It shows six decompositions and does not say which; S may be
filtered by R, T or U in twelve ways, and all of them are here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from bench import Plot, Result, Row, Say
from bench.baselines.multiway.group_messages import GroupMessages
from bench.baselines.multiway.rows import TableChange
from bench.baselines.multiway.server import MultiwayServer
from bench.baselines.multiway.simulated_cost import simulated_costs
from bench.baselines.multiway_strawmen import join_traffic, relaxed_traffic, row_bytes
from bench.simulated.multiway_network import GroupNetwork, Sent
from bench.workloads import multiway_joins as work
from headgate.tables.boxes import Boxes
from headgate.tables.decompose import (
    Choice,
    Decomposition,
    JoinStatistics,
    all_forms,
    decompose_greedy,
    decomposition_cost,
    parametric_costs,
)
from headgate.tables.join_graph import SemijoinForm, Signature

BATCH, WARMING = 100, 300
STUDENT = {2: 12.7, 5: 2.78}
"""By how many standard errors a mean of so many seeds may be off (95 %)."""
SAMPLE_SHARE, SAMPLE_EVENTS = 0.1, 600
MILLION_SHARE = 6.0
STAR_PAPER = "5 / 9 / 127"


@dataclass(frozen=True, slots=True, eq=False)
class Cost:
    """For each event: bytes × links, one for each seed, and bytes that leave the server."""

    by_seed: np.ndarray
    sent_bytes: float

    @property
    def traffic(self) -> float:
        return float(self.by_seed.mean())

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.by_seed + other.by_seed, self.sent_bytes + other.sent_bytes)

    @classmethod
    def of_seeds(cls, costs: Sequence[Cost]) -> Cost:
        sent = sum(each.sent_bytes for each in costs) / len(costs)
        return cls(np.concatenate([each.by_seed for each in costs]), sent)

    def spread(self, other: Cost) -> float:
        """How far the mean difference may be off."""
        seeds = len(self.by_seed)
        error = float((self.by_seed - other.by_seed).std(ddof=1)) / seeds**0.5
        return STUDENT[seeds] * error


@dataclass(slots=True)
class Meter:
    """Measures decompositions of one workload. What a group sends depends on its members alone, so
    it is measured once, whatever decompositions it is a part of."""

    workload: work.Workload
    groups: dict[tuple[SemijoinForm, frozenset[Signature]], Cost] = field(default_factory=dict)
    us: float = 0.0
    """CPU time of the server for each event, in the first decomposition."""
    subscribed_s: float = 0.0

    def measure(self, decomposition: Decomposition) -> Cost:
        members = {form: _members(decomposition, form) for form in all_forms(decomposition)}
        keys = [(form, own) for form, own in members.items() if own]
        if any(key not in self.groups for key in keys):
            self._run(decomposition, dict(keys))
        first, *rest = (self.groups[key] for key in keys)
        return sum(rest, start=first)

    def _run(
        self, decomposition: Decomposition, members: Mapping[SemijoinForm, frozenset[Signature]]
    ) -> None:
        workload, count = self.workload, len(self.workload.events) - WARMING
        server = MultiwayServer(workload.graph)
        server.apply(workload.rows)
        began = time.process_time()
        for each in workload.subscriptions:
            server.subscribe(each.signature, decomposition[each.signature], each.boxes)
        subscribed_s, took_s = time.process_time() - began, 0.0
        handled = {each.form: each for each in server.apply(_changes(workload, 0, WARMING))}
        networks = {
            form: _network(server, form, handled.get(form))
            for form, own in members.items()
            if (form, own) not in self.groups
        }
        traffic, sent = dict.fromkeys(networks, 0), dict.fromkeys(networks, 0)
        for first in range(WARMING, len(workload.events), BATCH):
            changes = _changes(workload, first, first + BATCH)
            began = time.process_time()
            groups = server.apply(changes)
            took_s += time.process_time() - began
            for group in groups:
                if group.form in networks:
                    sizes = group.size_bytes
                    links = networks[group.form].links(group.messages)
                    sent[group.form] += int(sizes.sum())
                    traffic[group.form] += int((sizes * links).sum())
        self.groups |= {
            (form, members[form]): Cost(np.array([traffic[form] / count]), sent[form] / count)
            for form in networks
        }
        if not self.us:
            self.us, self.subscribed_s = took_s / count * 1e6, subscribed_s


def _members(decomposition: Decomposition, form: SemijoinForm) -> frozenset[Signature]:
    return frozenset(
        signature for signature, choice in decomposition.items() if form in choice.values()
    )


def _network(
    server: MultiwayServer, form: SemijoinForm, handled: GroupMessages | None
) -> GroupNetwork:
    edge = server.edges[form.edge]
    tree = edge.groups[edge.forms.index(form)].tree
    numbers = tree.numbers()
    boxes = Boxes(numbers, *tree.bounds(numbers))
    return GroupNetwork.spread(boxes, None if handled is None else handled.messages)


def _changes(workload: work.Workload, first: int, end: int) -> list[TableChange]:
    return [change for event in workload.events[first:end] for change in event]


def parametric(workload: work.Workload) -> dict[SemijoinForm, float]:
    """Costs by the model: the rows tell how many share a join value; tables change alike often."""
    server = MultiwayServer(workload.graph)
    server.apply(workload.rows)
    rates = dict.fromkeys(workload.graph.tables, 1 / len(workload.graph.tables))
    known = JoinStatistics(rates, server.statistics().rows_per_value)
    return parametric_costs(all_forms(_signatures(workload)), known)


def simulated(workload: work.Workload) -> dict[SemijoinForm, float]:
    chance = np.random.default_rng(7)
    sample = [each.sample(SAMPLE_SHARE, chance) for each in workload.subscriptions]
    events = _changes(workload, 0, SAMPLE_EVENTS)
    spread = GroupNetwork.spread
    return simulated_costs(workload.graph, sample, workload.rows, events, spread=spread)


def _signatures(workload: work.Workload) -> list[Signature]:
    return [each.signature for each in workload.subscriptions]


def run(*, quick: bool, say: Say) -> Result:
    share, seeds, events, star_events = (0.1, 2, 300, 100) if quick else (1.0, 5, 4_000, 1_000)
    rows, plot = _figure_13(share, seeds, events, say)
    cases = ((False, False),) if quick else tuple(product((False, True), (False, True)))
    for fact_payload, facts_only in cases:
        rows.append(_figure_14(share, star_events, say, fact_payload, facts_only))
    rows.append(_payload(share, star_events, say))
    if not quick:
        rows.append(_million(say))
    return Result(rows, plot)


def _figure_13(share: float, seeds: int, events: int, say: Say) -> tuple[list[Row], Plot]:
    workload = work.general(WARMING + events, share=share)
    total = sum(len(each.boxes.numbers) for each in workload.subscriptions)
    name = f"general schema, {total:,} subscriptions, {seeds} × {events:,} events"
    say("costs by the model and by simulation")
    by_model = parametric(workload)
    began = time.process_time()
    by_sample = simulated(workload)
    sampled = f"{name}; a sample of {SAMPLE_SHARE:.0%}, {time.process_time() - began:.0f} s"
    signatures = _signatures(workload)
    others = (work.general(WARMING + events, share=share, seed=2026 + n) for n in range(1, seeds))
    meters = [Meter(each) for each in (workload, *others)]
    greedy = decompose_greedy(signatures, by_model)
    decompositions = {_label(greedy.values()): greedy}
    decompositions |= _all_decompositions(signatures, greedy)
    found: dict[tuple[str, ...], Cost] = {}
    for label, decomposition in decompositions.items():
        found[label] = Cost.of_seeds([meter.measure(decomposition) for meter in meters])
        say(f"  {' '.join(label)}: {found[label].traffic / 1e3:,.2f} kB")
    ours = found[_label(greedy.values())]
    say("  Rel-Sel")
    relaxed = relaxed_traffic(workload, warming=WARMING)
    rows = [
        _order("model", by_model, name),
        _order("simulation", by_sample, sampled),
        *_decomposition_rows(found, ours, name),
        _both_choose(greedy, decompose_greedy(signatures, by_sample), name),
        _ranks(found, decompositions, by_model, workload, name),
        Row(
            "Fig. 13, Rel-Sel",
            name,
            f"{relaxed / 1e3:,.1f} kB, {relaxed / ours.traffic:.1f} × greedy",
            paper="23 kB, about 9 × the best",
        ),
        _prohibitive(name),
        Row("time, greedy", name, f"{meters[0].us:,.0f} µs of CPU for each event"),
    ]
    bars = sorted(found.values(), key=lambda each: -each.traffic)
    line = [(float(at + 1), each.traffic / 1e3) for at, each in enumerate(bars)]
    lines = {"dearest first": line, "greedy": [(float(bars.index(ours) + 1), ours.traffic / 1e3)]}
    title = "Traffic of all decompositions (Fig. 13)"
    return rows, Plot(title, "decomposition", "kB for each event", lines)


def _all_decompositions(
    signatures: list[Signature], greedy: Decomposition
) -> dict[tuple[str, ...], Decomposition]:
    """Every way to filter S, one for all subscriptions of a signature; other tables have one."""
    found = {}
    for forms in product(*(each.forms("S") for each in signatures)):
        pairs = zip(signatures, forms, strict=True)
        made: Decomposition = {each: {**greedy[each], "S": form} for each, form in pairs}
        found[_label(made.values())] = made
    return found


def _label(choices: object) -> tuple[str, ...]:
    some: list[Choice] = list(choices)
    return tuple(str(choice["S"]) for choice in some)


def _order(estimator: str, costs: Mapping[SemijoinForm, float], workload: str) -> Row:
    own = {str(form): cost for form, cost in costs.items() if form.base == "S"}
    ranked = sorted(own, key=lambda each: -own[each])
    is_least = ranked[-1] == "S^T"
    return Row(
        f"§6.3, c(S^·) by {estimator}",
        workload,
        " > ".join(f"{each} {own[each]:.3g}" for each in ranked),
        target="as printed" if estimator == "model" else "c(S^T) is the least",
        met=ranked == ["S^R", "S^U", "S^T"] if estimator == "model" else is_least,
        paper="c(S^R) > c(S^U) > c(S^T)",
    )


def _decomposition_rows(
    found: dict[tuple[str, ...], Cost], greedy: Cost, workload: str
) -> list[Row]:
    least = min(each.traffic for each in found.values())
    worst = max(each.traffic for each in found.values())
    rows = []
    for label in sorted(found, key=lambda each: -found[each].traffic):
        each, is_greedy = found[label], found[label] is greedy
        apart = f"greedy {each.traffic - greedy.traffic:+,.0f} ± {each.spread(greedy):,.0f} B"
        below = f"{1 - each.traffic / worst:.0%} below the worst"
        rows.append(
            Row(
                "Fig. 13, greedy" if is_greedy else "Fig. 13",
                f"{workload}; S in RS, RST, RSTU, STU: {', '.join(label)}",
                f"{each.traffic / 1e3:,.2f} kB, {below if is_greedy else apart}; "
                f"{each.sent_bytes:,.0f} B sent",
                target="the cheapest of all" if is_greedy else "",
                met=each.traffic == least if is_greedy else None,
                paper="the cheapest, about 20 % below the worst" if is_greedy else "",
            )
        )
    return rows


def _both_choose(one: Decomposition, other: Decomposition, workload: str) -> Row:
    same = one == other
    ours = "the same decomposition" if same else f"{_label(one.values())}, {_label(other.values())}"
    return Row("Appendix D, both estimators", workload, ours, target="both choose alike", met=same)


def _ranks(
    found: dict[tuple[str, ...], Cost],
    decompositions: dict[tuple[str, ...], Decomposition],
    costs: Mapping[SemijoinForm, float],
    workload: work.Workload,
    name: str,
) -> Row:
    """How well the model's order of decompositions is that of their traffic."""
    counts = {each.signature: len(each.boxes.numbers) for each in workload.subscriptions}
    told = [decomposition_cost(each, counts, costs) for each in decompositions.values()]
    real = [found[label].traffic for label in decompositions]
    ranks = [np.argsort(np.argsort(each)) for each in (told, real)]
    correlation = float(np.corrcoef(*ranks)[0, 1])
    return Row(
        "§4, the model against the traffic",
        name,
        f"rank correlation {correlation:.2f} over {len(real)}",
    )


def _prohibitive(workload: str) -> Row:
    """How many join results an insertion makes, counted; each would be a message or several."""
    sizes = work.ROWS_PER_VALUE
    results = [
        np.prod([sizes[each] for each in tables if each != table])
        for table in "RSTU"
        for tables in work.MIX
        if table in tables
    ]
    return Row(
        "Fig. 13, Ref-J and Enum-J",
        workload,
        f"{sum(results) / 4:,.0f} new join results for each insertion (counted)",
        paper="prohibitively expensive",
    )


def _figure_14(share: float, events: int, say: Say, fact_payload: bool, facts_only: bool) -> Row:
    """Facts alone are not in the paper; Rel-Sel, which has sent all dimensions before, wins."""
    workload = work.star(
        WARMING + events, fact_payload=fact_payload, facts_only=facts_only, share=share
    )
    name = (
        f"star schema, fact table {'with 100 B' if fact_payload else 'without'} payload, "
        f"{'facts only' if facts_only else 'all tables change'}, {events:,} events"
    )
    say(name)
    greedy = decompose_greedy(_signatures(workload), parametric(workload))
    ours, joined = Meter(workload).measure(greedy).traffic, join_traffic(workload, warming=WARMING)
    others = relaxed_traffic(workload, warming=WARMING), joined.ref_j, joined.enum_j
    printed = "less, yet by a wide margin" if fact_payload else f"{STAR_PAPER} × better"
    return Row(
        "Fig. 14, Ref-SJ-Clu+ against Rel-Sel / Ref-J / Enum-J",
        name,
        f"{ours:,.0f} B; {' / '.join(f'{each / ours:.1f}' for each in others)} × better",
        target="" if facts_only else "below all",
        met=None if facts_only else ours < min(others),
        paper="" if facts_only else printed,
    )


def _payload(share: float, events: int, say: Say) -> Row:
    """A selection whose rows have photos, plain and as a join with payloads apart."""
    say("select with payload")
    workload = work.payload(WARMING + events, subscriptions=round(100_000 * share))
    greedy = decompose_greedy(_signatures(workload), parametric(workload))
    apart, plain = Meter(workload).measure(greedy).traffic, _plain_selection(workload)
    return Row(
        "Appendix I, select with payload",
        f"100 products, photos of 1,000 B, {events:,} new ratings",
        f"{apart / 1e3:,.1f} kB for each event, {plain / apart:.1f} × less",
        baseline=f"{plain / 1e3:,.1f} kB as a selection of whole rows",
        target="less",
        met=apart < plain,
    )


def _plain_selection(workload: work.Workload) -> float:
    """A new rating goes with its photo to all who select it, and to the others that it is gone."""
    (own,) = workload.subscriptions
    photo = next(len(row.payload) for row in workload.rows if row.table == "Photo")
    values = {row.key: np.array(row.values) for row in workload.rows if row.table == "Rating"}
    sent = Sent()
    for event, (change,) in enumerate(workload.events):
        before, now = values[change.key], np.array(change.values)
        sent.send(event, row_bytes(change) + photo, now)
        sent.send(event, row_bytes(change), before, now)
        values[change.key] = now
    traffic = sent.traffic(own.boxes.low[:, :1], own.boxes.high[:, :1], warming=WARMING)
    return traffic / (len(workload.events) - WARMING)


def _million(say: Say) -> Row:
    """The same mix with a million subscriptions."""
    workload = work.general(WARMING + 1_000, share=MILLION_SHARE)
    total = sum(len(each.boxes.numbers) for each in workload.subscriptions)
    say(f"{total:,} subscriptions")
    meter = Meter(workload)
    found = meter.measure(decompose_greedy(_signatures(workload), parametric(workload)))
    return Row(
        "time, greedy",
        f"general schema, {total:,} subscriptions, 1,000 events",
        f"{meter.us:,.0f} µs of CPU for each event, {found.traffic / 1e3:,.1f} kB; "
        f"subscribed in {meter.subscribed_s:.1f} s of CPU",
    )
