"""`headgate bench`: run the benchmarks of the source tree on this machine."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from headgate.cli.options import AsJson
from headgate.cli.output import print_json, print_line, print_table, stderr

ROOT = Path(__file__).parents[3]
"""The source tree. It holds the benchmarks, which are not part of an installed package."""


def bench(
    name: Annotated[
        str, typer.Argument(help="The benchmark; without a name, all are listed.")
    ] = "",
    quick: Annotated[bool, typer.Option(help="A smaller run that ends within a minute.")] = False,
    json: AsJson = False,
    plots: Annotated[Path, typer.Option(help="The folder for the plots.")] = Path("bench-results"),
) -> None:
    """Run a benchmark and print the paper's figures next to those measured now.

    [bold]headgate bench catalog --quick[/bold]
    """
    if not (ROOT / "bench" / "__init__.py").exists():
        raise typer.BadParameter("benchmarks are run from the source tree")
    names = sorted(path.stem.replace("_", "-") for path in (ROOT / "bench").glob("[a-z]*.py"))
    if name and name not in names:
        raise typer.BadParameter(f"there is no benchmark '{name}': expected {', '.join(names)}")
    sys.path.insert(0, str(ROOT))
    if not name:
        _print_names({known: _first_line(_load(known)) for known in names}, as_json=json)
        return
    with stderr.status(f"{name} …") as status:
        result = _load(name).run(quick=quick, say=lambda text: status.update(f"{name}: {text} …"))
    rows = [asdict(row) for row in result.rows]
    if json:
        print_json({"bench": name, "rows": rows})
    else:
        _print_rows(name, rows)
    plot_of = {} if result.plot is None else {name: result.plot}
    plot_of |= {f"{name}-{suffix}": plot for suffix, plot in result.plots.items()}
    for stem, plot in plot_of.items():
        plots.mkdir(parents=True, exist_ok=True)
        path = plots / f"{stem}.svg"
        importlib.import_module("bench").write_plot(plot, path)
        stderr.print(f"plot: {path}")


def _load(name: str) -> ModuleType:
    return importlib.import_module(f"bench.{name.replace('-', '_')}")


def _first_line(module: ModuleType) -> str:
    return (module.__doc__ or "").strip().split("\n")[0]


def _print_names(described: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json(described)
        return
    print_table(["bench", "what it shows"], [[name, what] for name, what in described.items()])


def _print_rows(name: str, rows: list[dict[str, str | bool | None]]) -> None:
    print_line(f"{name}, {datetime.now(UTC):%Y-%m-%d}, {machine()}")
    print_line("")
    columns = ["figure", "workload", "paper", "baseline", "ours", "target", "met"]
    cells = [[_CELL_TEXTS.get(row[column], str(row[column])) for column in columns] for row in rows]
    print_table(columns, cells)


_CELL_TEXTS: dict[str | bool | None, str] = {True: "yes", False: "NO", None: ""}


def machine() -> str:
    """Cores, memory and Python version, as benchmark tables state them."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, {memory_gb:.0f} GiB, Python {platform.python_version()}"
