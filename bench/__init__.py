"""Benchmarks: one file for each table or figure, run with `headgate bench NAME`.

A benchmark is a module with a first docstring line that says what it shows, and

    def run(*, quick: bool, say: Say) -> Result

`quick` is a smaller run of the same code that ends within a minute. Baselines are taken in the same
run, since machines are noisy and ratios count. Workloads are frozen: never edited, only added.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

Say = Callable[[str], None]
"""Tells the user what is going on."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: what the paper (or the target's author) says, a baseline, and what we measured.

    `met` is None where there is no target.
    """

    figure: str
    workload: str
    ours: str
    target: str = ""
    met: bool | None = None
    paper: str = ""
    baseline: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over a common x axis; with `scatter` points, both axes logarithmic."""

    title: str
    x_label: str
    y_label: str
    lines: dict[str, list[tuple[float, float]]]
    scatter: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """`plots` are further ones, each with the name that tells its file from the first one's."""

    rows: list[Row]
    plot: Plot | None = None
    plots: dict[str, Plot] = field(default_factory=dict)


def seconds(action: Callable[[], object]) -> float:
    """How long it takes, on the wall clock."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def write_plot(plot: Plot, path: Path) -> None:
    """The plot as SVG; the same numbers give the same file."""
    import matplotlib as mpl  # noqa: PLC0415 - slow to import, and only needed here

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = plot.title
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for name, points in plot.lines.items():
        style = "none" if plot.scatter else "-"
        axes.plot(*zip(*points, strict=True), marker="o", linestyle=style, label=name)
    axes.set(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
    if plot.scatter:
        axes.loglog()
    else:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
