"""`headgate network run`: files of sources through the planned configuration, level by level."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from headgate.api.check_run import check_data_root
from headgate.catalog.catalog import Catalog
from headgate.cli.network_views import (
    LIMIT_DEFAULT,
    TIME_DEFAULT_S,
    FeedLimit,
    PlanningTime,
    SolverOption,
    SourceLimit,
    UseLoga,
    planned,
)
from headgate.cli.options import CATALOG_DEFAULT, AsJson, CatalogUrl, JobMaster, Local
from headgate.cli.output import print_error, print_json, print_line, print_table, stderr
from headgate.language.schemas import schemas_of
from headgate.language.statements import (
    RegisterDocuments,
    RegisterFeed,
    RegisterStream,
    RegisterTable,
    Statement,
)
from headgate.pipeline.jobs.compile_network import PATTERNS, ConfiguredViews, RunSource
from headgate.pipeline.jobs.run_network import (
    IN_PROCESS,
    GroupReport,
    NetworkReport,
    NetworkRun,
    TaskRunner,
)
from headgate.pipeline.source_groups import GroupKind, group_sources

BYTES_FOR_SPARK = 10_000_000
OUTPUT_DEFAULT = Path("network-data")
MASTER_DEFAULT = "local[*]"
LEFT_OUT_SHOWN_MAX = 10

Data = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Files of sources are looked for below this folder.")
]
"""There is no default: statements may read every file below it."""
Output = Annotated[
    Path, typer.Option("--output", metavar="FOLDER", help="Where a folder for this run is made.")
]
Check = Annotated[
    bool, typer.Option("--check", help="Compare what each view has with direct evaluation.")
]


def run(
    data: Data,
    catalog: CatalogUrl = CATALOG_DEFAULT,
    limit: FeedLimit = LIMIT_DEFAULT,
    source_limit: SourceLimit = None,
    *,
    time: PlanningTime = TIME_DEFAULT_S,
    solver: SolverOption = "auto",
    loga: UseLoga = True,
    output: Output = OUTPUT_DEFAULT,
    check: Check = False,
    master: JobMaster = "",
    local: Local = False,
    json: AsJson = False,
) -> None:
    """Run the planned network over the files of all sources: feeds of level 1 are computed from
    documents and items, all others from feeds that they read.

    [bold]headgate network run --data examples --check[/bold]
    """
    check_data_root(data, {"--output": output}, catalog=catalog)
    views, plan = planned(
        catalog,
        limit=limit,
        source_limit=source_limit,
        time_s=time,
        solver=solver,
        use_loga=loga,
    )
    with Catalog.open(catalog) as opened:
        sources, refused = _sources(opened.definitions())
    folder = output / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    configured = ConfiguredViews(views.labels, plan.fast.reads(), views.patterns, views.flat)
    network = NetworkRun(configured, sources, folder, data, refused=refused, check=check)
    with stderr.status("running …") as status, ExitStack() as stack:
        choose = partial(_choose, master=master, local=local, stack=stack)
        try:
            report = network.run(choose, lambda text: status.update(f"{text} …"))
        except OSError as error:
            print_error(f"{error.filename or folder} cannot be written: {error.strerror}")
            raise typer.Exit(2) from None
    if json:
        print_json(asdict(report))
    else:
        _print(report)
    if report.differing:
        raise typer.Exit(1)


def _sources(definitions: Mapping[str, Statement]) -> tuple[dict[str, RunSource], dict[str, str]]:
    """The sources that read files, and for the others why they cannot be run."""
    kinds = RegisterFeed | RegisterStream | RegisterTable | RegisterDocuments
    readable = {name: each for name, each in definitions.items() if isinstance(each, kinds)}
    schemas = {name: next(iter(schemas_of(name, definitions))) for name in readable}
    grouped = group_sources(readable, schemas)
    sources: dict[str, RunSource] = {}
    refused = dict(grouped.refused)
    for group in grouped.groups.values():
        for listed in group.sources:
            if group.kind is GroupKind.FILES:
                sources[listed.name] = RunSource(listed, group.schema)
            else:
                refused[listed.name] = f"it comes from {group.kind}, and not from files"
    return sources, refused


def _choose(size: int, *, master: str, local: bool, stack: ExitStack) -> TaskRunner:
    """In this process for small files, which are done before Spark would have started."""
    is_small = not master and size < BYTES_FOR_SPARK
    if local or is_small or importlib.util.find_spec("pyspark") is None:
        return IN_PROCESS
    # Late, so that a process which needs no Spark does not load it.
    from headgate.pipeline.jobs.job import run_parts_on_spark, tasks_of  # noqa: PLC0415
    from headgate.pipeline.session import start_session  # noqa: PLC0415

    spark_master = master or MASTER_DEFAULT
    session = start_session(spark_master, name="headgate network")
    stack.callback(session.stop)
    return TaskRunner(
        f"on Spark, {spark_master}", partial(run_parts_on_spark, session=session), tasks_of(session)
    )


def _print(report: NetworkReport) -> None:
    for group_name, group in report.groups.items():
        _print_group(group_name, group, checked=report.checked)
    for name, reason in report.problems.items():
        stderr.print(f"{name}: {reason}")
    for view, reason in list(report.left_out.items())[:LEFT_OUT_SHOWN_MAX]:
        stderr.print(f"left out: {view}: {reason}")
    if len(report.left_out) > LEFT_OUT_SHOWN_MAX:
        stderr.print(f"and {len(report.left_out) - LEFT_OUT_SHOWN_MAX:,} more; report.json has all")
    if report.rejected:
        print_line(f"{report.rejected:,} rejected: {report.folder}/rejected")
    print_line(f"{report.ran}; results: {report.folder}")


def _print_group(group_name: str, group: GroupReport, *, checked: bool) -> None:
    kind, source = group_name.split(" ", maxsplit=1)
    counted = group.counted
    noun = "documents" if kind == PATTERNS else "items"
    print_line(f"{source}, {noun} {counted.items:,}, views {sum(group.views):,}")
    columns = group.views, group.tables, counted.tuples, counted.bytes
    print_table(
        ["level", "views", "distinct", "tuples", "bytes", "seconds"],
        [
            [str(level), *(f"{each:,}" for each in counts), f"{level_s:.3f}"]
            for level, (*counts, level_s) in enumerate(
                zip(*columns, counted.level_s, strict=True), 1
            )
        ],
    )
    source_s = counted.taken_s + counted.texts_s + counted.level_s[0]
    print_line(
        f"the source's part: {source_s:.3f} s ({counted.taken_s:.3f} s to take {noun} in, "
        f"{counted.texts_s:.3f} s for texts); the views' own: {sum(counted.level_s[1:]):.3f} s"
    )
    if counted.incomplete:
        print_line(f"{noun} in which some view has no answer: {counted.incomplete:,}")
    if checked:
        print_line(
            f"answers that differ from direct evaluation: {counted.differing:,} "
            f"({counted.direct_s:.3f} s)"
        )
