"""`headgate statistics`: measure how often atoms are true and how much comes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.catalog.catalog import Catalog
from headgate.catalog.statistics import SourceStatistics
from headgate.cli.backtest import Local, Master
from headgate.cli.options import CATALOG_DEFAULT, FOLDER_DEFAULT, AsJson, CatalogUrl, RunFolder
from headgate.cli.output import print_json, print_line, print_table, stderr
from headgate.cli.stats import rate_text
from headgate.cli.stored import Since, ago, folder_of, since_moment, tell_damaged
from headgate.pipeline.jobs.job import choose_runner
from headgate.pipeline.jobs.measure import Measurer, asked_of_all


def statistics(
    since: Since = "30d",
    top: Annotated[int, typer.Option(min=1, help="Sources and atoms that are shown.")] = 20,
    master: Master = "",
    local: Local = False,
    *,
    folder: RunFolder = FOLDER_DEFAULT,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Measure how much comes from each source, and how often each atom of each feed is true.

    It is kept in the catalog for the optimisers.

    [bold]headgate statistics --since 7d[/bold]
    """
    run_folder, now = folder_of(folder), datetime.now(UTC)
    moment = since_moment(since, now)
    assert moment is not None
    with Catalog.open(catalog) as opened, stderr.status("planning all feeds …") as status:
        asked = asked_of_all(opened.definitions())
        prepared = Measurer.prepare(asked.by_source, run_folder, since=moment)
        runner = choose_runner(prepared.files, master=master or None, local=local)
        found = prepared.run(runner, run_folder, lambda text: status.update(f"{text} …"))
        status.update("writing to the catalog …")
        kept = opened.record_statistics(found.statistics)
    tell_damaged(found.damaged)
    for feed, reason in asked.refused.items():
        stderr.print(f"{feed} has no plan: {reason}")
    if json:
        print_json({"ran": runner.name, "sources": [_as_json(each) for each in found.statistics]})
        return
    print_line(f"{kept:,} sources over {ago(moment, now)}, {runner.name}")
    if found.statistics:
        _print_sources(found.statistics, top)
        _print_atoms(found.statistics, top)
    else:
        print_line("-- nothing has come")


def _print_sources(measured: Sequence[SourceStatistics], top: int) -> None:
    ordered = sorted(measured, key=lambda each: (-each.items, each.source))
    rows = [
        [f"{each.items:,}", each.source, rate_text(each.rate_per_s), f"{len(each.matched):,}"]
        for each in ordered[:top]
    ]
    print_line("")
    print_table(["items", "source", "rate", "atoms"], rows)
    _print_rest(len(ordered) - top, "source")


def _print_atoms(measured: Sequence[SourceStatistics], top: int) -> None:
    """Those that are true most often first: they let the most through to what comes behind them."""
    atoms = [
        (matched / each.items, each.source, atom, matched)
        for each in measured
        for atom, matched in each.matched.items()
    ]
    atoms.sort(key=lambda each: (-each[0], each[1:]))
    if atoms:
        rows = [
            [f"{matched:,}", f"{share:.3%}", source, atom]
            for share, source, atom, matched in atoms[:top]
        ]
        print_line("")
        print_table(["true", "of all", "source", "atom"], rows)
        _print_rest(len(atoms) - top, "atom")


def _print_rest(count: int, noun: str) -> None:
    if count > 0:
        print_line(f"-- and {count:,} more {noun}{'' if count == 1 else 's'}; --json has all")


def _as_json(each: SourceStatistics) -> dict[str, object]:
    return {
        "source": each.source,
        "items": each.items,
        "span_s": each.span_s,
        "rate_per_s": each.rate_per_s,
        "atoms": each.matched,
    }
