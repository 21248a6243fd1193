"""Run a planned configuration over the files of its sources, level by level, here or on Spark.

    views, and what each reads ──► level programs ──► tasks ──► Parquet, and a report
                                   compile_network    network_output, network_job

    network-data/20261116-150000/
        views.parquet      every view: feed, site, source, level, what it reads, its table
        News/tuples …      what the tables hold (network_output.py)
        rejected/          what could not be read, or has no answer in a view
        report.json        the counts; written last: a folder without it is incomplete

All levels of a document run in one task, one after the other, so the tuples that a view reads are
there, and documents are distributed over tasks. What a view holds depends neither on the
configuration nor on tasks (see views/run_levels.py).

Rejected: a Spark stage for each level with a shuffle of tuples between. A document's tuples are a
megabyte; a shuffle would cost many times what a level takes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa

from headgate.acquire.file_parts import FilePart
from headgate.acquire.rejected import read_rejected
from headgate.pipeline.jobs.compile_network import (
    CompiledGroup,
    ConfiguredViews,
    RunSource,
    compile_network,
    left_out_views,
    write_views,
)
from headgate.pipeline.jobs.job import FileJob, Note, Task, run_parts_in_process
from headgate.pipeline.jobs.network_job import Counted, NetworkJob
from headgate.pipeline.jobs.network_output import cut_sources, write_tasks
from headgate.store.whole_files import write_whole


@dataclass(frozen=True, slots=True)
class TaskRunner:
    """Where tasks run."""

    name: str
    run: Callable[[FileJob[Task], Sequence[Task], Note], pa.Table]
    least: int = 1
    """Each source is cut into at least so many tasks."""


IN_PROCESS = TaskRunner("in this process", run_parts_in_process)


@dataclass(slots=True)
class GroupReport:
    """Of the views of one kind over one source; lists have a place for each level."""

    views: list[int]
    tables: list[int]
    """Distinct ones: views that are the same share a table."""
    counted: Counted


@dataclass(slots=True)
class NetworkReport:
    folder: str
    ran: str
    left_out: dict[str, str]
    """Views that are not run, each with the reason."""
    problems: dict[str, str] = field(default_factory=dict)
    """What is wrong with sources."""
    groups: dict[str, GroupReport] = field(default_factory=dict)
    rejected: int = 0
    checked: bool = False

    @property
    def differing(self) -> int:
        return sum(each.counted.differing for each in self.groups.values())


@dataclass(frozen=True, slots=True)
class NetworkRun:
    views: ConfiguredViews
    sources: Mapping[str, RunSource]
    folder: Path
    """Must not be there yet."""
    base: Path
    """Paths of sources are below it."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why some sources are not among these."""
    check: bool = False

    def run(self, choose: Callable[[int], TaskRunner], note: Note) -> NetworkReport:
        """`choose` is asked where to run, and told how many bytes there are to read."""
        own = self.folder / ".own"
        own.mkdir(parents=True)
        note("compiling")
        left_out = left_out_views(self.views, self.sources, self.refused)
        groups = compile_network(self.views, self.sources, left_out, folder=own, check=self.check)
        write_views(self.folder / "views.parquet", self.views, groups)
        note("looking at files")
        parts, problems = self._parts(groups)
        size = sum(each.end - each.begin for some in parts.values() for each in some)
        runner = choose(size)
        told = {str(self.views.labels[view]): reason for view, reason in left_out.items()}
        report = NetworkReport(str(self.folder), runner.name, told, problems, checked=self.check)
        report.groups = {each.key: _nothing_yet(each) for each in groups}
        tasks = [(path,) for path in write_tasks(own, parts, least=runner.least)]
        asked = {each.key: each.files for each in groups}
        job = NetworkJob(asked, str(self.base.absolute()), str(self.folder.absolute()))
        for row in runner.run(job, tasks, note).to_pylist():
            report.groups[row["asked"]].counted.add(row)
        report.rejected = sum(each.count for each in read_rejected([self.folder]))
        shutil.rmtree(own, ignore_errors=True)
        write_whole(self.folder / "report.json", json.dumps(asdict(report), indent=1).encode())
        return report

    def _parts(
        self, groups: Sequence[CompiledGroup]
    ) -> tuple[dict[str, list[FilePart]], dict[str, str]]:
        """The files' parts by key, and what is wrong with some sources."""
        names = dict.fromkeys(each.source for each in groups)
        listed = [self.sources[name].listed for name in names]
        parts, problems = cut_sources(listed, self.base.absolute())
        return {each.key: parts[each.source] for each in groups}, problems


def _nothing_yet(group: CompiledGroup) -> GroupReport:
    views, tables = group.views_by_level(), group.tables_by_level()
    return GroupReport(views, tables, Counted.nothing(len(views)))
