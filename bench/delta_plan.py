"""Delta: which views can be computed from which, and the network that follows ([Delta §5.2–5.4]).

Tables 2 and 3, Fig. 5 and 6 on unique views over XMark (bench/workloads/xmark_queries.py), and how
all of it grows: the embedding graph, the rewritability graph with at most 30 rewritings for each
view, the configuration and LOGA. Times are of the wall clock with all cores, from patterns as
objects to arrays; kernels are compiled before. Baselines in the same run: Algorithm 3 as printed,
whose trie knows labels only, by tests and CPU time on a part of the views; and evaluating patterns
one by one. B_D is that of bench/configured/priced.py.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench import Plot, Result, Row, Say, seconds
from bench.baselines.label_only_trie import edges_by_labels
from bench.baselines.whole_graph_bound import whole_graph_bound
from bench.configured.changes import change_rows
from bench.configured.priced import Least, Priced, told_limit
from bench.configured.table_3 import PAPER_SIZE, loga_rows, table_3
from bench.workloads.xmark import documents
from bench.workloads.xmark_queries import popular_views, unique_views
from headgate.model.errors import PlanError
from headgate.model.tree_pattern import PatternNode
from headgate.network.configuration_problem import UNLIMITED
from headgate.network.configure import NetworkPlan, configure
from headgate.views.document import Document
from headgate.views.embedding_graph import EmbeddingGraph, EncodedViews, embedding_graph
from headgate.views.equivalent_views import find_rewritings
from headgate.views.rewrite_cgr import Rewritings, coverage_of, rewrite_cgr, rewrite_new
from headgate.views.run_levels import PatternSet

SIZES = (10_000, 30_000, 100_000, 300_000)
QUICK_SIZES = (1_000, 3_000, 10_000)
LIMITS = (30, 50, 100, UNLIMITED)
GRAPH_S_MAX = 40.0
NEW_VIEW_MS_MAX = 10.0
IN_ALL_S_MAX, MEMORY_GB_MAX = 120.0, 8.0
TIME_S_MAX, QUICK_TIME_S_MAX = 40.0, 5.0
"""For the configuration of 100,000 views or fewer."""

AT_ONCE = 20_000
"""Views whose tuples are held at the same time."""
PARTS = "embedding graph", "rewritability graph", "configuration", "LOGA"

Floats = npt.NDArray[np.float64]
Lines = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """The graphs of some views, and what they took."""

    views: Sequence[PatternNode]
    encoded: EncodedViews
    graph: EmbeddingGraph
    found: Rewritings
    graph_s: float
    rewriting_s: float


def planned(views: Sequence[PatternNode]) -> Planned:
    began = time.perf_counter()
    encoded = EncodedViews.of(views)
    graph = embedding_graph(encoded)
    graph_s = time.perf_counter() - began
    began = time.perf_counter()
    found = rewrite_cgr(encoded, graph)
    return Planned(views, encoded, graph, found, graph_s, time.perf_counter() - began)


def run(*, quick: bool, say: Say) -> Result:
    sizes = QUICK_SIZES if quick else SIZES
    shown = PAPER_SIZE if PAPER_SIZE in sizes else sizes[-1]
    time_s = QUICK_TIME_S_MAX if quick else TIME_S_MAX
    say("compiling")
    _compile()
    rows, growth, falls = list[Row](), Lines(), Lines()
    views = unique_views(sizes[-1])
    for size in sizes:
        say(f"{size:,} views")
        plan = planned(views[:size])
        if size == shown:
            rows += table_2(plan)
            rows += [label_trie_row(plan, 2_000 if quick else 10_000), new_view_row(plan)]
        say(f"{size:,} views, their sizes")
        priced = Priced.of(plan.found, view_bytes(plan.views))
        for limit in LIMITS if size == shown else LIMITS[:1]:
            say(f"{size:,} views, B_out {told_limit(limit)}")
            least, network = configured(priced, limit, time_s * max(1.0, size / PAPER_SIZE))
            if limit == LIMITS[0]:
                rows += growth_rows(plan, network, growth)
            if size == shown:
                rows += shown_rows(plan, network, limit, least, falls)
        del plan, priced, least, network
    say("popular views")
    rows.append(popular_row(3_000 if quick else 10_000))
    say("documents")
    rows.append(document_row(2_000 if quick else 10_000, 5 if quick else 20))
    grown = Plot("Planning a network of views", "views", "seconds, or GB", growth, scatter=True)
    fallen = Plot("Latency while LOGA runs", "seconds", "of the latency before", falls)
    return Result(rows, grown, {"loga": fallen})


def _compile() -> None:
    """All kernels, on few views; with prices, not HiGHS."""
    plan = planned(unique_views(300))
    priced = Priced.of(plan.found, view_bytes(plan.views))
    least, network = configured(priced, LIMITS[0], 1.0)
    growth_rows(plan, network, Lines())
    shown_rows(plan, network, LIMITS[0], least, Lines())


def configured(priced: Priced, limit: int, time_s: float) -> tuple[Least, NetworkPlan]:
    """How few views the source can feed, and a network in which it feeds few."""
    least = priced.least(limit)
    try:
        return least, configure(priced.problem(limit, priced.source_limit(least)), time_s=time_s)
    except PlanError:  # not proven, and yet too little for the repair
        return least, configure(priced.problem(limit, least.with_room), time_s=time_s)


def shown_rows(
    plan: Planned, network: NetworkPlan, limit: int, least: Least, falls: Lines
) -> list[Row]:
    """Table 3, Fig. 5 and 6 for one B_out; adds to the lines."""
    must = float((np.diff(plan.found.view_start) == 0).sum())
    if limit < UNLIMITED:
        coverage = coverage_of(plan.encoded, plan.graph)
        must = max(must, whole_graph_bound(coverage, least.price, limit))
    rows = table_3(network, limit, must)
    more, falls[f"B_out {told_limit(limit)}"] = loga_rows(network, limit)
    rows += more
    if limit == LIMITS[0]:
        rows += change_rows(network)
    return rows


def growth_rows(plan: Planned, network: NetworkPlan, lines: Lines) -> list[Row]:
    """What each part took, and all of them; adds to the lines."""
    size = len(plan.views)
    took = plan.graph_s, plan.rewriting_s, network.solving_s, network.latency_s
    memory_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    for part, took_s in zip(PARTS, took, strict=True):
        lines.setdefault(part, []).append((size, took_s))
    lines.setdefault("memory, GB", []).append((size, memory_gb))
    in_all_s, is_paper = sum(took), size == PAPER_SIZE
    rewritten = (np.diff(plan.found.view_start) > 0).mean()
    workload = f"{size:,} unique views, B_out {told_limit(LIMITS[0])}"
    return [
        Row(
            "growth",
            workload,
            f"EG {took[0]:.1f} s, {len(plan.graph.embedded):,} edges; RG {took[1]:.1f} s, "
            f"{len(plan.found.member_start) - 1:,} rewritings, {rewritten:.1%} rewritable; "
            f"{network.solver} {took[2]:.1f} s, gap ≤ {network.gap:.2%}, "
            f"{network.cheap.rewritten_share:.2%} rewritten; LOGA {took[3]:.1f} s",
        ),
        Row(
            "graphs, configuration and LOGA in all",
            workload,
            f"{in_all_s:.1f} s, at most {memory_gb:.1f} GB, load {os.getloadavg()[0]:.1f}",
            target=f"≤ {IN_ALL_S_MAX:g} s, ≤ {MEMORY_GB_MAX:g} GB" if is_paper else "",
            met=bool(in_all_s <= IN_ALL_S_MAX and memory_gb <= MEMORY_GB_MAX) if is_paper else None,
            paper="under 13 min on eight cores" if is_paper else "",
        ),
    ]


def view_bytes(views: Sequence[PatternNode]) -> Floats:
    """What each view holds of a document: identifiers and texts, as it would be sent."""
    document = Document.read(documents(1)[0])
    assert document is not None
    sizes: list[int] = []
    for first in range(0, len(views), AT_ONCE):
        held = PatternSet(views[first : first + AT_ONCE]).evaluate(document)
        sizes += [max(each.size_bytes(), 1) for each in held]
    return np.array(sizes, np.float64)


def table_2(plan: Planned) -> list[Row]:
    """The rows of Table 2, as it prints them."""
    size = len(plan.views)
    workload = f"{size:,} unique views"

    def row(figure: str, ours: str, paper: str, target: str = "", met: bool | None = None) -> Row:
        return Row(f"Table 2: {figure}", workload, ours, target, met, paper=paper)

    nodes = plan.encoded.patterns.nodes
    found, graph = plan.found, plan.graph
    rewritings, members = len(found.member_start) - 1, len(found.members)
    rewritten = int((np.diff(found.view_start) > 0).sum())
    predicates, returns = len(plan.encoded.patterns.predicates), int((nodes[:, 3] > 0).sum())
    limit = GRAPH_S_MAX * max(size / PAPER_SIZE, 0.1)
    return [
        row("predicates for each view", f"{predicates / size:.2f}", "0.72"),
        row("predicates for each node", f"{predicates / len(nodes):.2f}", "0.11"),
        row("nodes for each view", f"{len(nodes) / size:.2f}", "6.13"),
        row("return nodes for each view", f"{returns / size:.2f}", "2.52"),
        row("EG, edges", f"{len(graph.embedded):,}", "10,592,053"),
        row("EG, edges left out for cycles", f"{graph.edges_left_out:,}", "18,665"),
        row(
            "EG, views with an embedded one", f"{(np.diff(graph.start) > 0).mean():.2%}", "99.95 %"
        ),
        row(
            "EG, time",
            f"{plan.graph_s:.1f} s",
            "452 s",
            f"≤ {limit:g} s",
            plan.graph_s <= limit,
        ),
        row("RG, rewritings", f"{rewritings:,}", "2,692,139"),
        row("RG, edges", f"{members + rewritings + size:,}", "8,589,822"),
        row("RG, time", f"{plan.rewriting_s:.1f} s", "127 s"),
        row(
            "views rewritten by other views",
            f"{rewritten:,} ({rewritten / size:.1%})",
            "94,835 (the workload is set to it)",
        ),
        row("views for each rewriting", f"{members / max(rewritings, 1):.2f}", "2.15"),
        row("rewritings that read a view, mean", f"{members / size:.1f}", "57.9"),
    ]


def label_trie_row(plan: Planned, count: int) -> Row:
    """Candidates and time with labels alone, on as many views as bear it."""
    views = EncodedViews.of(plan.views[:count])
    rank = np.arange(count)
    began = time.process_time()
    ours = embedding_graph(views, threads=1)
    ours_s = time.process_time() - began
    began = time.process_time()
    edges, tests = edges_by_labels(views.patterns, rank)
    theirs_s = time.process_time() - began
    assert edges == len(ours.embedded), "both find the same edges"
    return Row(
        "Algorithm 3 with more than labels",
        f"{count:,} views, {edges:,} edges",
        f"{ours.candidates:,} tests, {ours_s:.2f} s",
        baseline=f"labels only: {tests:,} tests, {theirs_s:.2f} s",
    )


def new_view_row(plan: Planned) -> Row:
    """One more view: its candidates and its rewritings."""
    more = unique_views(300, seed=7)
    rewrite_new(plan.encoded, more[0])
    took = sorted(1e3 * seconds(lambda v=view: rewrite_new(plan.encoded, v)) for view in more)
    return Row(
        "rewritings of a new view",
        f"300 views, one by one, beside {len(plan.views):,}",
        f"{np.mean(took):.2f} ms, 99 % within {took[int(0.99 * len(took))]:.2f} ms",
        target=f"≤ {NEW_VIEW_MS_MAX:g} ms",
        met=bool(np.mean(took) <= NEW_VIEW_MS_MAX),
    )


def popular_row(count: int) -> Row:
    """§5.5: views of which a third is unique."""
    views = popular_views(count)
    took_s = seconds(lambda: find_rewritings(views))
    found = find_rewritings(views)
    rewritten = (np.diff(found.view_start) > 0).mean()
    return Row(
        "popular views",
        f"{count:,} views, {len(set(views)):,} unique",
        f"{took_s:.2f} s, {len(found.member_start) - 1:,} rewritings, {rewritten:.1%} rewritten",
        paper="10,000 views, ~3,000 unique",
    )


def document_row(count: int, sample: int) -> Row:
    """Many patterns over one document: together, and one by one."""
    views, texts = unique_views(count), documents(sample)
    read = [each for each in map(Document.read, texts) if each is not None]
    together = PatternSet(views)
    took_ms = 1e3 * seconds(lambda: [together.evaluate(each) for each in read]) / len(read)
    alone = [PatternSet([view]) for view in views]
    alone_ms = 1e3 * seconds(lambda: [each.evaluate(read[0]) for each in alone])
    nodes = sum(len(each.labels) for each in read) / len(read)
    return Row(
        "patterns over one document",
        f"{count:,} views, {len(together.steps):,} steps, {nodes:.0f} nodes a document",
        f"{took_ms:.0f} ms for each document, {1e3 * took_ms / count:.0f} µs for each view",
        paper="~100 ms for 72 views",
        baseline=f"one by one {alone_ms:.0f} ms",
    )
