"""A planned configuration as files that tasks map: a level program for each source and kind.

    patterns News      tree patterns over documents      views/level_program.py
    flat Jobs          conjunctions over items           network/flat_levels.py

Views that cannot be run are left out, with the reason: feeds that are neither kind, feeds that call
operators, sources that are not files, and every view that reads one of these.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from headgate.acquire.source_list import ListedSource
from headgate.model.atoms import Call, Constraint
from headgate.model.filters import atoms_of
from headgate.model.schema import Schema
from headgate.model.tree_pattern import PatternNode
from headgate.network.explain_network import ViewLabel
from headgate.network.flat_levels import compile_flat_levels
from headgate.pipeline.jobs.level_files import write_flat_levels, write_levels
from headgate.pipeline.jobs.network_job import SourceLevels
from headgate.store.whole_files import WholeParquet, write_whole
from headgate.views.flat_feeds import FlatFeed
from headgate.views.level_program import Reads, compile_levels, view_levels
from headgate.views.pattern_arrays import preorder

PATTERNS, FLAT = "patterns", "flat"


@dataclass(frozen=True, slots=True)
class RunSource:
    """A source of files."""

    listed: ListedSource
    schema: Schema


@dataclass(frozen=True, slots=True)
class ConfiguredViews:
    """Views by number: what each is, and what it reads."""

    labels: Sequence[ViewLabel]
    reads: Sequence[Sequence[int]]
    patterns: Mapping[str, Mapping[int, PatternNode]]
    """By source and view."""
    flat: Mapping[int, FlatFeed]

    def groups(self) -> Iterator[tuple[str, str, list[int]]]:
        """Kind, source and views of those that are compiled together."""
        for source, patterns in self.patterns.items():
            yield PATTERNS, source, list(patterns)
        by_source: dict[str, list[int]] = {}
        for view, feed in self.flat.items():
            by_source.setdefault(feed.source, []).append(view)
        for source, views in by_source.items():
            yield FLAT, source, views


@dataclass(frozen=True, slots=True)
class CompiledGroup:
    """The views of one source and kind; places are those of `views`."""

    key: str
    source: str
    views: Sequence[int]
    level: Sequence[int]
    table: Sequence[int]
    files: SourceLevels

    def views_by_level(self) -> list[int]:
        counts = Counter(self.level)
        return [counts[each + 1] for each in range(max(self.level))]

    def tables_by_level(self) -> list[int]:
        """Distinct tables, each on the lowest level that has it."""
        lowest: dict[int, int] = {}
        for table, level in zip(self.table, self.level, strict=True):
            lowest[table] = min(level, lowest.get(table, level))
        counts = Counter(lowest.values())
        return [counts[each + 1] for each in range(max(self.level))]


def left_out_views(
    views: ConfiguredViews, sources: Mapping[str, RunSource], refused: Mapping[str, str]
) -> dict[int, str]:
    """The views that are not run, each with the reason; `refused` has those of sources."""
    found: dict[int, str] = {}
    known: set[int] = set()
    for _, source, own in views.groups():
        known.update(own)
        if source not in sources:
            reason = refused.get(source, "it is no source of files")
            found |= dict.fromkeys(own, f"{source} is not read here: {reason}")
    for view, feed in views.flat.items():
        if any(
            isinstance(atom, Call | Constraint) for c in feed.conditions for atom in atoms_of(c)
        ):
            found.setdefault(view, "it calls operators")
    for view in set(range(len(views.labels))) - known:
        found[view] = "it is neither a conjunction over one source nor a tree pattern"
    waiting = sorted(set(range(len(views.labels))) - found.keys())
    while readers := [view for view in waiting if found.keys() & set(views.reads[view])]:
        for view in readers:
            through = min(found.keys() & set(views.reads[view]))
            found[view] = f"it reads {views.labels[through]}, which is left out"
        waiting = [view for view in waiting if view not in found]
    return found


def compile_network(
    views: ConfiguredViews,
    sources: Mapping[str, RunSource],
    left_out: Mapping[int, str],
    *,
    folder: Path,
    check: bool,
) -> list[CompiledGroup]:
    """Write the levels of all groups into the folder; with `check`, direct evaluation as well."""
    found = []
    for kind, source, numbers in views.groups():
        own = [view for view in numbers if view not in left_out]
        if own:
            compiling = _Group(views, kind, own, sources[source])
            found.append(compiling.compiled(folder, check=check))
    return found


class _Group:
    def __init__(
        self, views: ConfiguredViews, kind: str, own: Sequence[int], source: RunSource
    ) -> None:
        self.views, self.kind, self.own = views, kind, own
        self.source, self.name = source, source.listed.name
        at = {view: place for place, view in enumerate(own)}
        self.reads = [tuple(at[each] for each in views.reads[view]) for view in own]

    def compiled(self, folder: Path, *, check: bool) -> CompiledGroup:
        labels = [str(self.views.labels[view]) for view in self.own]
        names = folder / f"{self.kind}-{self.name}.json"
        write_whole(names, json.dumps(labels).encode())
        path, table = self._written(folder, self.reads)
        direct = self._written(folder, None)[0] if check else ""
        files = SourceLevels(
            self.source.schema, path, str(names.absolute()), direct, self.kind == PATTERNS
        )
        level = view_levels(self.reads)
        return CompiledGroup(f"{self.kind} {self.name}", self.name, self.own, level, table, files)

    def _written(self, folder: Path, reads: Reads | None) -> tuple[str, list[int]]:
        """The file, and the table of each view."""
        if self.kind == PATTERNS:
            patterns = self.views.patterns[self.name]
            program = compile_levels([patterns[view] for view in self.own], reads)
            path = write_levels(folder, program)
            return str(path.absolute()), program.views.table.tolist()
        feeds = [self.views.flat[view] for view in self.own]
        levels = compile_flat_levels(feeds, reads, self.source.schema)
        path = write_flat_levels(folder, levels)
        return str(path.absolute()), levels.view_row.tolist()


def write_views(path: Path, views: ConfiguredViews, groups: Sequence[CompiledGroup]) -> None:
    """Which view has which table of which source, as Parquet."""
    rows = [
        {
            "view": view,
            "feed": str(views.labels[view].name),
            "site": str(views.labels[view].site),
            "source": group.source,
            "kind": group.key.split(" ", maxsplit=1)[0],
            "level": level,
            "reads": list(views.reads[view]),
            "table": table,
            "nodes": _nodes(views, group.source, view),
        }
        for group in groups
        for view, level, table in zip(group.views, group.level, group.table, strict=True)
    ]
    writer = WholeParquet(path, schema=VIEWS)
    writer.write(pa.Table.from_pylist(rows, VIEWS))
    writer.close()


def _nodes(views: ConfiguredViews, source: str, view: int) -> list[str] | None:
    """The labels and marks of a pattern's nodes: what a tuple has, in this order."""
    pattern = views.patterns.get(source, {}).get(view)
    if pattern is None:
        return None
    return [" ".join([node.label, *sorted(map(str, node.marks))]) for node, _ in preorder(pattern)]


VIEWS = pa.schema(
    [
        pa.field("view", pa.int32()),
        *(pa.field(name, pa.string()) for name in ("feed", "site", "source", "kind")),
        pa.field("level", pa.int32()),
        pa.field("reads", pa.list_(pa.int32())),
        pa.field("table", pa.int32()),
        pa.field("nodes", pa.list_(pa.string())),
    ]
)
