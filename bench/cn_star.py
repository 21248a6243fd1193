"""CN*: traffic and hop latency against the size of repositories ([Select-Joins Fig. 11], 12).

100,000 subscriptions on 1,000 overlay nodes, payloads of 1,000 bytes, directories of 512 kB; R has
500 tuples for traffic and 200 for latency, so that many tuples of S are sent again and again. All
repository sizes see the same messages along the same trace. Every payload that a dispatcher gets is
compared with what the server sent.

Every insertion into R has a payload that nobody has seen. It must reach each node that dispatches
it, whatever is remembered: *at least* are these bytes, each payload once for each node. What CN*
can save is the rest. The paper does not say whether payloads repeat; where R's tuples are versions
of the same thing ("a PNG image … containing the company logo", §1) they do, and a row shows that.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bench import Plot, Result, Row, Say
from bench.workloads import select_joins as work
from bench.workloads.physical_network import OVERLAY_NODES, overlay_distances
from headgate.simulate.cn_star import CnStar
from headgate.simulate.content_network import SERVER, ContentNetwork
from headgate.simulate.join_simulation import JoinSimulation, PayloadIds
from headgate.simulate.network_metrics import NetworkCost
from headgate.simulate.routing_trace import MESSAGE, NODE
from headgate.tables.schemes import JoinScheme

CLU_PLUS, REF_J_PLUS = JoinScheme.REF_SJ_CLU_PLUS, JoinScheme.REF_J_PLUS
PAYLOAD_BYTES = 1_000
REPOSITORIES = 0, 100, 400, 1_600, 3_100
NAMED = 400
"""The size that the paper names."""
ON_TRAFFIC, ON_LATENCY = 500, 200
"""Tuples of R."""


def run(*, quick: bool, say: Say) -> Result:
    size, count, warming = (20_000, 1_000, 100) if quick else (100_000, 10_000, 300)
    say("20,000 physical nodes")
    distances = overlay_distances()
    boxes, rows = work.subscriptions(size), []
    lines: dict[int, dict[str, list[tuple[float, float]]]] = {ON_TRAFFIC: {}, ON_LATENCY: {}}
    for r_size in (ON_TRAFFIC, ON_LATENCY):
        events = work.events(count + warming, r_size=r_size)
        simulated = JoinSimulation(boxes, [events], distances, count, warming)
        workload = f"{size:,} subscriptions, R {r_size}, {count:,} events"
        for scheme in (REF_J_PLUS, CLU_PLUS):
            say(f"{scheme}, {r_size} tuples of R")
            network = simulated.zones(scheme)
            stars = [_star(network, entries) for entries in REPOSITORIES]
            ways = [(each, PAYLOAD_BYTES) for each in (simulated.plain(network), *stars)]
            plain, *costs = simulated.carried(scheme, network, ways)
            if r_size == ON_TRAFFIC:
                least = _least_bytes(simulated, scheme, network)
                rows += _traffic(
                    scheme, workload, plain=plain, costs=costs, least=least, count=count
                )
                lines[r_size] |= _by_size(scheme, [c.traffic_bytes / count / 1e3 for c in costs])
                lines[r_size][f"{scheme}, CN"] = [(0, plain.traffic_bytes / count / 1e3)]
            else:
                rows.append(_latency(scheme, workload, plain, costs))
                lines[r_size] |= _by_size(scheme, [c.latency_hops for c in costs])
        if r_size == ON_TRAFFIC:
            rows += _further(simulated, workload, say)
    events = work.events(50 + warming, r_size=ON_TRAFFIC)
    rows.append(_rel_sel(JoinSimulation(boxes, [events], distances, 50, warming), say))
    return Result(
        rows,
        Plot("Traffic with CN* (Fig. 11)", "entries of a repository", "kB", lines[ON_TRAFFIC]),
        {
            "latency": Plot(
                "Hop latency with CN* (Fig. 12)",
                "entries of a repository",
                "hops",
                lines[ON_LATENCY],
            )
        },
    )


def _star(network: ContentNetwork, entries: int, kinds: np.ndarray | None = None) -> CnStar:
    return CnStar(network.links, server=SERVER, is_star=kinds, repository_entries=entries)


def _by_size(scheme: JoinScheme, values: Iterable[float]) -> dict[str, list[tuple[float, float]]]:
    points = zip(map(float, REPOSITORIES), values, strict=True)
    return {f"{scheme}, CN*": list(points)}


def _least_bytes(
    simulated: JoinSimulation,
    scheme: JoinScheme,
    network: ContentNetwork,
    ids: PayloadIds = lambda own: own,
) -> int:
    """Each payload once for each node that dispatches it and is not the server's."""
    seen: set[int] = set()
    for _, arrivals, matched, load in simulated.trace(scheme, network):
        lines = arrivals.lines[(matched > 0) & (arrivals.lines[:, NODE] != SERVER)]
        known = ids(load.id)[lines[:, MESSAGE]]
        pairs = (known * OVERLAY_NODES + lines[:, NODE][:, None])[known >= 0]
        seen.update(np.unique(pairs).tolist())
    return PAYLOAD_BYTES * len(seen)


def _traffic(
    scheme: JoinScheme,
    workload: str,
    *,
    plain: NetworkCost,
    costs: list[NetworkCost],
    least: int,
    count: int,
) -> list[Row]:
    named, best = costs[REPOSITORIES.index(NAMED)], costs[-1]
    ratio = plain.traffic_bytes / best.traffic_bytes
    kilobytes = [f"{n:,}: {c.traffic_bytes / count / 1e3:.1f}" for n, c in _sized(costs)]
    saved = (plain.traffic_bytes - least) / max(1, best.traffic_bytes - least)
    return [
        Row(
            f"Fig. 11, traffic: {scheme}",
            workload,
            f"by entries, kB: {'; '.join(kilobytes)}; at best {ratio:.1f} × less. At least "
            f"{least / count / 1e3:.1f} kB; what is above that: {saved:.1f} × less",
            target="CN* ≥ 10 × below CN",
            met=ratio >= 10,
            paper="another order of magnitude",
            baseline=f"CN {plain.traffic_bytes / count / 1e3:.1f} kB for each event",
        ),
        Row(
            f"§6.2, server stress: {scheme}",
            f"{workload}, {NAMED} entries",
            f"{named.stress[SERVER] / count / 1e3:.2f} kB, "
            f"{plain.stress[SERVER] / named.stress[SERVER]:.1f} × less",
            paper="7 × less" if scheme is REF_J_PLUS else "3 × less",
            baseline=f"CN {plain.stress[SERVER] / count / 1e3:.2f} kB",
        ),
    ]


def _sized(costs: list[NetworkCost]) -> Iterable[tuple[int, NetworkCost]]:
    return zip(REPOSITORIES, costs, strict=True)


def _latency(
    scheme: JoinScheme, workload: str, plain: NetworkCost, costs: list[NetworkCost]
) -> Row:
    hops = [f"{entries:,}: {cost.latency_hops:.2f}" for entries, cost in _sized(costs)]
    ratio = costs[REPOSITORIES.index(NAMED)].latency_hops / plain.latency_hops
    return Row(
        f"Fig. 12, hop latency: {scheme}",
        workload,
        f"by entries: {'; '.join(hops)}; × {ratio:.2f} at {NAMED}",
        target=f"≤ × 1.1 at {NAMED} entries",
        met=ratio <= 1.1,
        paper="not much more even at small sizes",
        baseline=f"CN {plain.latency_hops:.2f}",
    )


def _further(simulated: JoinSimulation, workload: str, say: Say) -> list[Row]:
    """Payloads that repeat, and networks of which only some nodes are CN* nodes."""
    say("payloads that repeat")
    count, network = simulated.count, simulated.zones(CLU_PLUS)
    [events] = simulated.draws

    def by_join_value(ids: np.ndarray) -> np.ndarray:
        """Rows are numbered as they came: S, then R. All of R with one join value are alike."""
        of_r = np.clip(ids - len(events.s_join), 0, None)
        return np.where(ids >= len(events.s_join), 10**9 + events.r_join[of_r], ids)

    ways = [
        (each, PAYLOAD_BYTES)
        for each in (simulated.plain(network), _star(network, NAMED), _star(network, 3_100))
    ]
    plain, named, best = simulated.carried(CLU_PLUS, network, ways, ids=by_join_value)
    least = _least_bytes(simulated, CLU_PLUS, network, by_join_value)
    ratio = plain.traffic_bytes / best.traffic_bytes
    rows = [
        Row(
            f"Fig. 11, R's payloads by join value: {CLU_PLUS}",
            workload,
            f"{NAMED} entries {named.traffic_bytes / count / 1e3:.1f} kB, 3,100 entries "
            f"{best.traffic_bytes / count / 1e3:.1f} kB, {ratio:.1f} × less. At least "
            f"{least / count / 1e3:.1f} kB",
            target="CN* ≥ 10 × below CN",
            met=ratio >= 10,
            paper="another order of magnitude",
            baseline=f"CN {plain.traffic_bytes / count / 1e3:.1f} kB for each event",
        )
    ]
    rows.append(_warm(simulated, network, workload, by_join_value))
    say("CN* and plain nodes")
    chance, shares = np.random.default_rng(2026).random(OVERLAY_NODES), (0.25, 0.5, 0.75, 1.0)
    ways = [(_star(network, 3_100, chance < share), PAYLOAD_BYTES) for share in shares]
    costs = simulated.carried(CLU_PLUS, network, ways, ids=by_join_value)
    told = "; ".join(
        f"{share:.0%}: {cost.traffic_bytes / count / 1e3:.1f} kB"
        for share, cost in zip(shares, costs, strict=True)
    )
    return [
        *rows,
        Row(
            "Appendix H, share of CN* nodes",
            f"{workload}, R's payloads by join value",
            told,
            paper="commensurate improvement",
            baseline=f"CN {plain.traffic_bytes / count / 1e3:.1f} kB for each event",
        ),
    ]


def _warm(
    simulated: JoinSimulation, network: ContentNetwork, workload: str, ids: PayloadIds
) -> Row:
    """The second half of the events, when most of what is needed has been sent before."""
    half = simulated.count // 2
    ways = [(each, PAYLOAD_BYTES) for each in (simulated.plain(network), _star(network, 3_100))]
    plain, best = simulated.carried(CLU_PLUS, network, ways, ids=ids, uncounted=half)
    ratio = plain.traffic_bytes / best.traffic_bytes
    return Row(
        f"Fig. 11, R's payloads by join value, second half: {CLU_PLUS}",
        workload,
        f"3,100 entries {best.traffic_bytes / half / 1e3:.1f} kB, {ratio:.1f} × less",
        target="CN* ≥ 10 × below CN",
        met=ratio >= 10,
        paper="another order of magnitude",
        baseline=f"CN {plain.traffic_bytes / half / 1e3:.1f} kB for each event",
    )


def _rel_sel(simulated: JoinSimulation, say: Say) -> Row:
    say("Rel-Sel")
    scheme = JoinScheme.REL_SEL
    network = simulated.zones(scheme)
    [cost] = simulated.carried(scheme, network, [(simulated.plain(network), PAYLOAD_BYTES)])
    return Row(
        "Fig. 11, 12: Rel-Sel, CN",
        f"{len(simulated.boxes.numbers):,} subscriptions, {simulated.count} events",
        f"{cost.traffic_bytes / simulated.count / 1e3:.1f} kB, hop latency {cost.latency_hops:.2f}",
        paper="higher hop latency",
    )
