"""Select-joins over a content-driven network: traffic, hops, stress and last hop of all schemes.

[Select-Joins Fig. 6], 7, 9, 10, 17 to 20 and Table 3, on a simulated network of 1,000 overlay
nodes in a power law of 20,000, without CN* (that is `cn-star`). Each scheme has zones that were cut
by its own messages. An event is an insertion into R and the deletion of its oldest tuple; they come
from five draws of the workload. Traffic is bytes between overlay nodes; the paper prints curves and
no numbers for it, so what is compared are ratios.
"""

from __future__ import annotations

import numpy as np

from bench import Plot, Result, Row, Say
from bench.joins import STOCKS, TABLE_3
from bench.workloads import select_joins as work
from bench.workloads.physical_network import OVERLAY_NODES, overlay_distances
from headgate.simulate.filter_network import FilterNetwork
from headgate.simulate.join_simulation import PAYLOAD_BYTES, JoinSimulation
from headgate.simulate.network_metrics import NetworkCost
from headgate.simulate.topology import overlay_tree
from headgate.tables.boxes import Boxes
from headgate.tables.schemes import SCHEMES, JoinScheme

Costs = dict[JoinScheme, NetworkCost]
CLU_PLUS, REL_SEL = JoinScheme.REF_SJ_CLU_PLUS, JoinScheme.REL_SEL
STRAWMEN = JoinScheme.ENUM_J, REL_SEL, JoinScheme.REF_J, JoinScheme.REF_J_PLUS
SOME = *STRAWMEN, JoinScheme.ENUM_SJ, JoinScheme.REF_SJ_TUP, CLU_PLUS
PRINTED = 100_000, 300_000, 500_000
SIZES_RATES_OVERLAPS = (1_000, 16_000, 31_000), (100, 5_100, 10_100), (1, 3_000, 6_000)


def run(*, quick: bool, say: Say) -> Result:
    counts = (20_000,) if quick else (100_000, 300_000, 1_000_000)
    usual, draws, count, warming = (counts[0], 2, 50, 50) if quick else (counts[0], 5, 300, 60)
    say("20,000 physical nodes")
    distances = overlay_distances()

    def simulation(size: int = usual, *, overlap: int = 0, **events: int) -> JoinSimulation:
        boxes = work.subscriptions(size, overlap=overlap)
        seeds = range(2026, 2026 + draws)
        made = [work.events(count + warming, seed=seed, **events) for seed in seeds]
        return JoinSimulation(boxes, made, distances, count, warming)

    rows: list[Row] = []
    base = simulation()
    found: dict[int, Costs] = {}
    for size in counts:
        found[size] = {}
        simulated = base if size == usual else simulation(size)
        for scheme in JoinScheme:
            say(f"{size:,} subscriptions, {scheme}")
            found[size][scheme] = simulated.cost(scheme)
        rows += _at(size, found[size], count)
    rows += _networks(base, say, count)
    rows.append(_payloads(base, say, count))
    say("stocks")
    rows.append(_stocks(work.subscriptions(usual), distances, count, draws * warming))
    sizes, rates, overlaps = ((1_000,), (100,), (6_000,)) if quick else SIZES_RATES_OVERLAPS
    by_size = {f"{each:,}": simulation(r_size=each) for each in sizes}
    rows.append(_varied("Fig. 7, traffic", "by tuples of R", by_size, say))
    by_rate = {f"{each // 100}": simulation(s_size=each) for each in rates}
    rows.append(_varied("Fig. 9, traffic", "by join results for each event", by_rate, say))
    by_overlap = {f"x = {each:,}": simulation(overlap=each) for each in overlaps}
    rows.append(_varied("Fig. 19, traffic", "by overlap", by_overlap, say))
    return Result(rows, _plot(found, count))


def _at(size: int, costs: Costs, count: int) -> list[Row]:
    workload, ours = f"{size:,} subscriptions", costs[CLU_PLUS]
    traffic = [
        _against_ours(
            f"Fig. 6, traffic: {scheme}",
            workload,
            f"{cost.traffic_bytes / count / 1e3:,.2f} kB for each event, "
            f"{cost.physical_bytes / cost.traffic_bytes:.1f} physical hops",
            cost.traffic_bytes / ours.traffic_bytes,
            is_strawman=scheme in STRAWMEN,
        )
        for scheme, cost in costs.items()
    ]
    hops = [
        _against_ours(
            f"Fig. 17, hops: {scheme}",
            workload,
            f"{cost.hops / count:,.1f} for each event, hop latency {cost.latency_hops:.1f}",
            cost.hops / ours.hops,
            is_strawman=scheme in STRAWMEN,
        )
        for scheme, cost in costs.items()
    ]
    stress = [_stress(scheme, workload, size, costs[scheme], count) for scheme in TABLE_3]
    return [*traffic, *hops, *stress, _last_hop(workload, costs, count)]


def _against_ours(figure: str, workload: str, told: str, ratio: float, *, is_strawman: bool) -> Row:
    return Row(
        figure,
        workload,
        f"{told}; {ratio:,.1f} × Clu+",
        target="≥ 10 × Clu+" if is_strawman else "",
        met=ratio >= 10 if is_strawman else None,
        paper="≥ an order of magnitude" if is_strawman else "",
    )


def _stress(scheme: JoinScheme, workload: str, size: int, cost: NetworkCost, count: int) -> Row:
    printed = TABLE_3[scheme][PRINTED.index(size)] if size in PRINTED else 0
    others = "" if SCHEMES[scheme].is_unicast else f", {cost.stress[1:].max() / count / 1e3:.2f} kB"
    return Row(
        f"Table 3, server stress: {scheme}",
        workload,
        f"{cost.stress[0] / count / 1e3:,.2f} kB for each event"
        + (f"{others} at the busiest other node" if others else ""),
        paper=f"{printed:,.2f} kB" if printed else "",
    )


def _last_hop(workload: str, costs: Costs, count: int) -> Row:
    """Fig. 20: with the way from overlay nodes to clients."""
    totals = {
        scheme: (cost.traffic_bytes + cost.last_hop_bytes) / count / 1e3
        for scheme, cost in costs.items()
        if scheme in SOME
    }
    strawman = min(totals[each] for each in STRAWMEN) / totals[CLU_PLUS]
    return Row(
        "Fig. 20, traffic with last hop",
        workload,
        "; ".join(f"{scheme} {total:,.1f} kB" for scheme, total in totals.items()),
        target="Clu+ ≥ 10 × below strawmen",
        met=strawman >= 10,
        paper="Enum-SJ least, Clu+ slightly higher",
    )


def _networks(simulated: JoinSimulation, say: Say, count: int) -> list[Row]:
    """The same messages over zones cut in turn, and over a tree with filters."""
    boxes, rows = simulated.boxes, []
    chance = np.random.default_rng(2026)
    anywhere = chance.integers(0, OVERLAY_NODES, len(boxes.numbers))
    parents = overlay_tree(simulated.distances)
    for scheme in (CLU_PLUS, REL_SEL):
        say(f"other networks, {scheme}")
        zones = simulated.zones(scheme)
        networks = {"zones": zones, "zones cut in turn": simulated.zones(scheme, in_turn=True)}
        homes = {"filters": zones.subscriptions.nodes_of(boxes.numbers)}
        for name, nodes in {**homes, "filters, homes at random": anywhere}.items():
            networks[name] = FilterNetwork(2, parents)
            networks[name].subscribe(boxes, nodes)
        told = []
        for name, network in networks.items():
            way = simulated.plain(network), PAYLOAD_BYTES
            cost = simulated.carried(scheme, network, [way])[0]
            told.append(
                f"{name} {cost.traffic_bytes / count / 1e3:,.2f} kB, {cost.hops / count:,.0f} "
                f"hops, latency {cost.latency_hops:.1f}"
            )
        workload = f"{len(boxes.numbers):,} subscriptions"
        rows.append(Row(f"kinds of networks: {scheme}", workload, "; ".join(told)))
    return rows


def _payloads(simulated: JoinSimulation, say: Say, count: int) -> Row:
    """Fig. 18: both tables' payloads grow."""
    sizes, told, ratios = (1, 100, 10_000, 100_000), [], []
    kinds = JoinScheme.REF_J_PLUS, REL_SEL, JoinScheme.REF_SJ_TUP, CLU_PLUS
    costs: dict[JoinScheme, list[NetworkCost]] = {}
    for scheme in kinds:
        say(f"payloads, {scheme}")
        zones = simulated.zones(scheme)
        ways = [(simulated.plain(zones), size) for size in sizes]
        costs[scheme] = simulated.carried(scheme, zones, ways)
    for at, size in enumerate(sizes):
        traffic = {scheme: costs[scheme][at].traffic_bytes / count / 1e3 for scheme in kinds}
        told.append(f"{size:,} B: " + " / ".join(f"{each:,.1f}" for each in traffic.values()))
        ratios.append(min(traffic[each] for each in kinds[:2]) / traffic[CLU_PLUS])
    return Row(
        "Fig. 18, traffic: " + " / ".join(kinds) + ", kB",
        f"{len(simulated.boxes.numbers):,} subscriptions, by size of payloads",
        "; ".join(told) + f"; strawmen ≥ {min(ratios):.1f} × Clu+",
        paper="absolute differences grow; skylines matter less",
    )


def _varied(figure: str, by: str, simulated: dict[str, JoinSimulation], say: Say) -> Row:
    """Traffic of Rel-Sel, Ref-J+ and Ref-SJ-Clu+ as one parameter varies."""
    told, least, size = [], [], 0
    for name, each in simulated.items():
        say(f"{figure}, {name}")
        kinds = REL_SEL, JoinScheme.REF_J_PLUS, CLU_PLUS
        traffic = [each.cost(scheme).traffic_bytes / each.count / 1e3 for scheme in kinds]
        told.append(f"{name}: " + " / ".join(f"{kb:,.2f}" for kb in traffic))
        least.append(min(traffic[:-1]) / traffic[-1])
        size = len(each.boxes.numbers)
    return Row(
        f"{figure}: Rel-Sel / Ref-J+ / Ref-SJ-Clu+, kB",
        f"{size:,} subscriptions, {by}",
        "; ".join(told) + f"; others ≥ {min(least):.1f} × Clu+",
        paper="Clu+ usually more than an order of magnitude better",
    )


def _stocks(boxes: Boxes, distances: np.ndarray, count: int, warming: int) -> Row:
    """Fig. 10."""
    known, events = STOCKS.exists(), count + warming
    made = work.stock_events(STOCKS, events) if known else work.events(events, s_size=2_300)
    simulated = JoinSimulation(boxes, [made], distances, count, warming)
    kinds = (*STRAWMEN, JoinScheme.ENUM_SJ, CLU_PLUS)
    traffic = {scheme: simulated.cost(scheme).traffic_bytes / count / 1e3 for scheme in kinds}
    least = min(traffic[each] for each in kinds[:-1]) / traffic[CLU_PLUS]
    return Row(
        "Fig. 10, traffic, stocks" if known else "Fig. 10, traffic, generated",
        f"{len(boxes.numbers):,} subscriptions, 100 stocks, 2,300 ratings",
        "; ".join(f"{scheme} {kb:,.2f} kB" for scheme, kb in traffic.items()),
        target="Clu+ ≥ 10 × below all",
        met=least >= 10,
        paper="at least an order of magnitude",
    )


def _plot(found: dict[int, Costs], count: int) -> Plot:
    lines = {
        str(scheme): [
            (float(size), costs[scheme].traffic_bytes / count / 1e3)
            for size, costs in found.items()
        ]
        for scheme in JoinScheme
    }
    return Plot("Traffic for each event (Fig. 6)", "subscriptions", "kB", lines, scatter=True)
