"""A snapshot of all plans: which source plans a batch uses. A small file, named by its content.

    layers    [ 100,000 feeds │ 900 feeds │ 3 feeds ]      each layer: one plan file per source
    dropped   the numbers of feeds that are in a layer but are no longer registered

The numbers of a layer's feeds are in a separate file, written with the layer. Workers do not need
them, so a worker reads only the small snapshot file, even for a million feeds.

New feeds become a new layer, so that one feed is planned in milliseconds whatever the number of
other feeds. A layer that has grown to 1/8 of the one before it is merged with it, as in a
log-structured merge tree: each feed is planned O(log n) times in total.

The snapshot names source plans by file name; their content is checked when they are opened
(source_plan.py).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from headgate.match.bit_rows import Ints
from headgate.model.errors import LogUnavailable, PipelineError
from headgate.operators.declaration import Declaration
from headgate.store.data_folder import DataFolder
from headgate.store.whole_files import write_whole
from headgate.tables.join_groups import JoinGroup

FORMAT = 5
SNAPSHOT = ".snapshot.json"
FEEDS = ".feeds"
CURRENT = "current"
"""The file with the name of the last snapshot."""
AUTO = "auto"
"""The same as in factor/methods.py, repeated here so that workers do not import that room."""
SHARE = 8
"""A layer is merged with the one before it when it has at least 1/SHARE of that one's feeds."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    feeds: Ints
    """Their numbers, ascending."""
    plans: Mapping[str, str]
    """The file name of each source's plan."""
    informed: bool = False
    """Whether statistics or a sample of the items were available (write_plans.py)."""
    joins: tuple[tuple[JoinGroup, str], ...] = ()
    """For each group of table joins the file with its subscriptions (tables/stored_boxes.py)."""
    factorize: str = AUTO
    """The factorisation method that was requested."""
    methods: Mapping[str, str] = field(default_factory=dict)
    """For each source the method that was used and the reason, as text."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanSnapshot:
    catalog_version: int
    """The version at which definitions last changed. Subscribers do not change it."""
    layers: tuple[Layer, ...] = ()
    dropped: tuple[int, ...] = ()
    join_feeds: tuple[int, ...] = ()
    """Feeds with window joins or patterns: matched items are input of these (plan/leaves.py)."""
    operators: tuple[Declaration, ...] = ()

    @property
    def groups(self) -> dict[str, JoinGroup]:
        """The groups of table joins by name."""
        return {group.name: group for layer in self.layers for group, _ in layer.joins}

    @property
    def feeds(self) -> set[int]:
        return {feed for layer in self.layers for feed in layer.feeds.tolist()}

    def has_to_merge(self) -> bool:
        """Whether a layer has become large relative to the one before it."""
        return any(
            later.feeds.size * SHARE >= earlier.feeds.size
            for earlier, later in zip(self.layers, self.layers[1:], strict=False)
        )


@dataclass(frozen=True, slots=True, eq=False)
class OpenSnapshot:
    """A snapshot as workers use it, with paths of files."""

    plans: Mapping[str, Sequence[str]]
    """For each source the paths of its plans, the oldest layer first."""
    dropped: Ints
    operators: tuple[Declaration, ...]
    groups: Mapping[str, JoinGroup]
    """The groups of table joins by name."""
    joins: Mapping[str, Sequence[str]]
    """For each group the paths of its subscription files, the oldest layer first."""
    muted: dict[str, frozenset[int]] = field(default_factory=dict)
    """For each plan the rows that only dropped feeds use; filled when they are needed
    (feed_costs.py)."""


def write_snapshot(folder: Path, snapshot: PlanSnapshot) -> Path:
    content = {
        "format": FORMAT,
        "catalog_version": snapshot.catalog_version,
        "layers": [
            {
                "feeds": _feeds_file(folder, layer),
                "plans": dict(sorted(layer.plans.items())),
                "informed": layer.informed,
                "joins": [[group.to_json(), file] for group, file in layer.joins],
                "factorize": layer.factorize,
                "methods": dict(sorted(layer.methods.items())),
            }
            for layer in snapshot.layers
        ],
        "dropped": snapshot.dropped,
        "above": snapshot.join_feeds,  # the key of earlier versions
        "operators": [each.to_json() for each in snapshot.operators],
    }
    return _write_named(folder, json.dumps(content, separators=(",", ":")).encode(), SNAPSHOT)


def read_snapshot(path: Path) -> PlanSnapshot:
    with _report_damage(path):
        content = _read_content(path)
        layers = tuple(
            Layer(
                _read_feeds(path.with_name(layer["feeds"])),
                layer["plans"],
                bool(layer["informed"]),
                tuple(_joins(layer)),
                # Snapshots of earlier versions have neither of these two keys.
                layer.get("factorize", AUTO),
                layer.get("methods", {}),
            )
            for layer in content["layers"]
        )
        dropped, join_feeds = tuple(content["dropped"]), tuple(content["above"])
        version = int(content["catalog_version"])
        return PlanSnapshot(version, layers, dropped, join_feeds, _operators(content))


def read_current(folder: Path) -> PlanSnapshot | None:
    """The last snapshot in this folder; None if there is none yet."""
    current = folder / CURRENT
    return read_snapshot(folder / current.read_text().strip()) if current.exists() else None


def open_snapshot(folder: DataFolder, name: str) -> OpenSnapshot:
    """The snapshot of this name, with its files on this machine. Cached: files never change. Once a
    day they are looked at again, so that copies that are used are not removed (object_cache.py)."""
    return _opened(folder, name, int(time.time() // 86_400))


def files_of_snapshot(snapshot: PlanSnapshot) -> Iterator[str]:
    """The names of the files that workers need besides the snapshot itself."""
    for layer in snapshot.layers:
        yield from layer.plans.values()
        yield from (file for _, file in layer.joins)


@lru_cache(maxsize=8)
def _opened(folder: DataFolder, name: str, _day: int) -> OpenSnapshot:
    path = folder.plan_path(name)
    plans: dict[str, list[str]] = {}
    groups: dict[str, JoinGroup] = {}
    joins: dict[str, list[str]] = {}
    with _report_damage(path):
        content = _read_content(path)
        for layer in content["layers"]:
            for source, file in layer["plans"].items():
                plans.setdefault(source, []).append(str(folder.plan_path(file)))
            for group, file in _joins(layer):
                groups[group.name] = group
                joins.setdefault(group.name, []).append(str(folder.plan_path(file)))
        dropped = np.array(content["dropped"], np.int32)
        return OpenSnapshot(plans, dropped, _operators(content), groups, joins)


def _joins(layer: Mapping[str, Any]) -> Iterator[tuple[JoinGroup, str]]:
    for group, name in layer["joins"]:
        yield JoinGroup.from_json(group), str(name)


def _operators(content: Mapping[str, Any]) -> tuple[Declaration, ...]:
    return tuple(map(Declaration.from_json, content["operators"]))


def _feeds_file(folder: Path, layer: Layer) -> str:
    """The name of the file with the feeds of a layer; it is written if the layer is new."""
    return write_numbers(folder, layer.feeds)


def write_numbers(folder: Path, feeds: Ints) -> str:
    """Write the numbers of feeds to a file named by its content; returns the file name."""
    return _write_named(folder, feeds.astype("<i4").tobytes(), FEEDS).name


def read_numbers(path: Path) -> Ints:
    with _report_damage(path):
        return _read_feeds(path)


def _read_feeds(path: Path) -> Ints:
    return np.frombuffer(_checked(path), "<i4").astype(np.int32)


def _read_content(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_checked(path))
    if content["format"] != FORMAT:
        raise ValueError(
            f"it has format {content['format']}, not {FORMAT}: "
            "another version of Headgate made it; start with a new folder"
        )
    return content


def _write_named(folder: Path, content: bytes, ending: str) -> Path:
    path = folder / f"{_name_of(content)}{ending}"
    if not path.exists():
        write_whole(path, content)
    return path


def _checked(path: Path) -> bytes:
    """The content of a file, if it fits the hash in the file name."""
    content = path.read_bytes()
    if not path.name.startswith(_name_of(content)):
        raise ValueError(f"the name of '{path.name}' does not fit its content")
    return content


def _name_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


@contextmanager
def _report_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except LogUnavailable:
        raise  # a plan could not be fetched: nothing is known of it
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PipelineError(f"the snapshot '{path}' cannot be used: {error}") from None
