"""`headgate simulate`: size a network before it is built.

content    traffic of join schemes in a content-driven network
cn-star    traffic and hops with payload repositories, by their size
wan        latency of views in a wide area, by level, with and without LOGA
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from headgate.cli.network_views import SolverOption
from headgate.cli.options import AsJson
from headgate.cli.output import print_error, print_json, print_text, stderr, stdout
from headgate.network.configure import solver_named
from headgate.network.explain_network import explain_plan
from headgate.simulate.charts import draw_bars, draw_lines
from headgate.simulate.sizing import (
    FILTERS,
    ZONES,
    EventCost,
    JoinNetworkSize,
    WanSize,
    content_traffic,
    repository_costs,
    wan_latencies,
)
from headgate.tables.schemes import JoinScheme, find_scheme

simulate = typer.Typer(
    help="Simulators: what a network would cost, before it is built.", no_args_is_help=True
)

SCHEMES_DEFAULT = (
    JoinScheme.ENUM_SJ,
    JoinScheme.REL_SEL,
    JoinScheme.REF_J_PLUS,
    JoinScheme.REF_SJ_CLU_PLUS,
)
REPOSITORIES_DEFAULT = (0, 25, 100, 400)

Nodes = Annotated[int, typer.Option("--nodes", min=2, help="Nodes of the overlay network.")]
Subscriptions = Annotated[
    int, typer.Option("--subscriptions", min=1, help="Generated subscriptions.")
]
Events = Annotated[int, typer.Option("--events", min=1, help="Table changes that are measured.")]
Rate = Annotated[float, typer.Option("--rate", min=0.001, help="Events or documents per second.")]
PayloadBytes = Annotated[int, typer.Option("--payload-bytes", min=0, help="Payload of each row.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same figures.")]
Picture = Annotated[
    Path | None, typer.Option("--picture", metavar="FILE.svg", help="Draw a chart, as SVG.")
]


@simulate.command()
def content(
    nodes: Nodes = 100,
    subscriptions: Subscriptions = 2_000,
    events: Events = 200,
    rate: Rate = 10.0,
    *,
    scheme: Annotated[
        list[str] | None,
        typer.Option("--scheme", metavar="NAME", help="A join scheme; may be repeated."),
    ] = None,
    filters: Annotated[
        bool, typer.Option("--filters", help="A tree of nodes with filters instead of zones.")
    ] = False,
    payload_bytes: PayloadBytes = 100,
    seed: Seed = 2026,
    picture: Picture = None,
    json: AsJson = False,
) -> None:
    """Compare the traffic of join schemes in a content-driven network.

    [bold]headgate simulate content --nodes 200 --subscriptions 10000[/bold]
    """
    _check_picture(picture)
    schemes = [find_scheme(name) for name in scheme] if scheme else list(SCHEMES_DEFAULT)
    size = JoinNetworkSize(nodes, subscriptions, events, payload_bytes=payload_bytes, seed=seed)
    network = FILTERS if filters else ZONES
    with stderr.status("simulating …") as status:
        costs = list(
            content_traffic(
                size,
                schemes,
                network=network,
                progress=lambda text: status.update(f"simulating, {text} …"),
            )
        )
    if picture is not None:
        bars = {cost.name: cost.traffic_bytes / 1e3 for cost in costs}
        _write(picture, draw_bars(f"Traffic per event over {network}", "kB", bars))
    _print_costs("scheme", costs, rate=rate, json=json)


@simulate.command("cn-star")
def cn_star(
    nodes: Nodes = 100,
    subscriptions: Subscriptions = 10_000,
    events: Events = 1_000,
    rate: Rate = 10.0,
    *,
    scheme: Annotated[str, typer.Option("--scheme", metavar="NAME", help="The join scheme.")] = str(
        JoinScheme.REF_SJ_CLU_PLUS
    ),
    repository: Annotated[
        list[int] | None,
        typer.Option(
            "--repository",
            min=0,
            metavar="ENTRIES",
            help="Payloads that a node keeps; may be repeated.",
        ),
    ] = None,
    payload_bytes: PayloadBytes = 1_000,
    seed: Seed = 2026,
    picture: Picture = None,
    json: AsJson = False,
) -> None:
    """Show how much traffic payload repositories save, by their size.

    [bold]headgate simulate cn-star --repository 100 --repository 1000[/bold]
    """
    _check_picture(picture)
    size = JoinNetworkSize(
        nodes, subscriptions, events, payload_bytes=payload_bytes, r_rows=500, seed=seed
    )
    sizes = sorted(repository or REPOSITORIES_DEFAULT)
    with stderr.status("simulating …") as status:
        costs = repository_costs(
            size,
            find_scheme(scheme),
            sizes,
            progress=lambda text: status.update(f"simulating, {text} …"),
        )
    if picture is not None:
        plain, *stars = (cost.traffic_bytes / 1e3 for cost in costs)
        lines = {
            "without CN*": [(float(entries), plain) for entries in sizes],
            "with CN*": list(zip(map(float, sizes), stars, strict=True)),
        }
        title = f"Traffic per event, {scheme}"
        _write(picture, draw_lines(title, "entries of a repository", "kB", lines))
    _print_costs("repository", costs, rate=rate, json=json)


@simulate.command()
def wan(
    views: Annotated[int, typer.Option("--views", min=1, help="Generated views.")] = 500,
    sites: Annotated[int, typer.Option("--sites", min=1, help="Machines, in nine cities.")] = 45,
    documents: Annotated[
        int, typer.Option("--documents", min=1, help="Documents that are published.")
    ] = 100,
    rate: Rate = 5.0,
    *,
    document_bytes: Annotated[
        float, typer.Option("--document-bytes", min=1.0, help="The size of a document.")
    ] = 25_000.0,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="How many views a view may feed.")
    ] = 10,
    source_limit: Annotated[
        int | None, typer.Option("--source-limit", min=0, help="How many the source may feed.")
    ] = None,
    solver: SolverOption = "auto",
    time: Annotated[
        float, typer.Option("--time", min=1.0, metavar="SECONDS", help="For the solver.")
    ] = 10.0,
    seed: Seed = 2026,
    picture: Picture = None,
    json: AsJson = False,
) -> None:
    """Measure the latency of views in a wide area, by level, with and without LOGA.

    [bold]headgate simulate wan --views 2000 --sites 45 --rate 2[/bold]
    """
    _check_picture(picture)
    chosen = solver_named(solver)
    size = WanSize(
        views,
        sites,
        documents,
        rate,
        document_bytes=document_bytes,
        limit=limit,
        source_limit=source_limit,
        seed=seed,
    )
    with stderr.status("simulating …") as status:
        measured = wan_latencies(
            size,
            solver=chosen,
            time_s=time,
            progress=lambda text: status.update(f"simulating, {text} …"),
        )
    both = {"without LOGA": measured.cheap, "with LOGA": measured.fast}
    if picture is not None:
        lines = {
            name: [(float(each.level), each.mean_ms) for each in levels]
            for name, levels in both.items()
        }
        _write(picture, draw_lines("Mean latency of views by level", "level", "ms", lines))
    if json:
        plan = {"solver": measured.plan.solver, "gap": measured.plan.gap}
        print_json(plan | {name: list(map(asdict, levels)) for name, levels in both.items()})
        return
    rows = [
        [name, f"{each.level}", f"{each.views:,}", f"{each.mean_ms:,.1f}", f"{each.max_ms:,.1f}"]
        for name, levels in both.items()
        for each in levels
    ]
    _print_table(["configuration", "level", "views", "mean ms", "max ms"], rows)
    print_text(explain_plan(measured.plan))


def _print_costs(first: str, costs: Sequence[EventCost], *, rate: float, json: bool) -> None:
    if json:
        print_json({"rate_per_s": rate, "costs": [asdict(cost) for cost in costs]})
        return
    heads = [first, "kB/event", "kB/s", "server kB/s", "hops/event", "latency hops", "requests"]
    rows = [
        [
            cost.name,
            f"{cost.traffic_bytes / 1e3:,.2f}",
            f"{rate * cost.traffic_bytes / 1e3:,.1f}",
            f"{rate * cost.server_bytes / 1e3:,.1f}",
            f"{cost.hops:,.1f}",
            f"{cost.latency_hops:.2f}",
            f"{cost.requests:,.2f}",
        ]
        for cost in costs
    ]
    _print_table(heads, rows)


def _print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_row(*(Text(head, style="bold") for head in heads))
    for name, *figures in rows:
        table.add_row(Text(name), *(Text(figure, justify="right") for figure in figures))
    stdout.print(table)


def _check_picture(picture: Path | None) -> None:
    if picture is not None and picture.suffix != ".svg":
        raise typer.BadParameter(f"a picture is written as SVG: name it '{picture.stem}.svg'")


def _write(picture: Path, content: str) -> None:
    try:
        picture.write_text(content, encoding="utf-8")
    except OSError as error:
        print_error(f"{picture} cannot be written: {error.strerror}")
        raise typer.Exit(2) from None
    stderr.print(f"picture: {picture}")
