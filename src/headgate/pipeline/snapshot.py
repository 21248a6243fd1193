"""A snapshot of all plans: which source plans a batch uses. A small file, named by its content.

    layers    [ 100,000 feeds │ 900 feeds │ 3 feeds ]      each: for each source a source plan
    dropped   the numbers of feeds that are in a layer, but not registered any more

Which feeds a layer has is in a file of its own, written with the layer: a snapshot of a million
feeds is a small file, and workers, which need no list of them, read nothing else.

New feeds make a new layer, so that one feed is planned in milliseconds beside a million others; a
layer that has grown to an eighth of the one before it is planned together with it. This is how a
log-structured merge tree keeps its files: a feed is planned again O(log n) times in all.

Workers read the file too. It names source plans by their file names, and those are checked when
they are opened (source_plan.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from headgate.match.bit_rows import Ints
from headgate.model.errors import PipelineError
from headgate.operators.declaration import Declaration
from headgate.store.whole_files import write_whole
from headgate.tables.join_groups import JoinGroup

FORMAT = 4
SNAPSHOT = ".snapshot.json"
FEEDS = ".feeds"
CURRENT = "current"
"""The file with the name of the last snapshot."""
AUTO = "auto"
"""As in factor/methods.py, which workers need not load."""
SHARE = 8
"""A layer is merged into the one before it when it has more than this share of its feeds."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    feeds: Ints
    """Their numbers, ascending."""
    plans: Mapping[str, str]
    """The file name of each source's plan."""
    informed: bool = False
    """Whether anything was known of the items that it was planned for (write_plans.py)."""
    joins: tuple[tuple[JoinGroup, str], ...] = ()
    """For each group of table joins the file with its subscriptions (write_joins.py)."""
    factorize: str = AUTO
    """The method of factorising that was requested for it."""
    methods: Mapping[str, str] = field(default_factory=dict)
    """For each source the method that was used, and why, as text."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanSnapshot:
    catalog_version: int
    """At which definitions last changed; who subscribes is no part of it."""
    layers: tuple[Layer, ...] = ()
    dropped: tuple[int, ...] = ()
    join_feeds: tuple[int, ...] = ()
    """The feeds that look further at items: joins and patterns (plan/leaves.py)."""
    operators: tuple[Declaration, ...] = ()

    @property
    def groups(self) -> dict[str, JoinGroup]:
        """The groups of table joins by name."""
        return {group.name: group for layer in self.layers for group, _ in layer.joins}

    @property
    def feeds(self) -> set[int]:
        return {each for layer in self.layers for each in layer.feeds.tolist()}

    def has_to_merge(self) -> bool:
        return any(
            later.feeds.size * SHARE >= earlier.feeds.size
            for earlier, later in zip(self.layers, self.layers[1:], strict=False)
        )


@dataclass(frozen=True, slots=True, eq=False)
class OpenSnapshot:
    """As workers use it: for each source the paths of its plans, the oldest first."""

    plans: Mapping[str, Sequence[str]]
    dropped: Ints
    operators: tuple[Declaration, ...]
    groups: Mapping[str, JoinGroup]
    """The groups of table joins by name."""
    joins: Mapping[str, Sequence[str]]
    """For each of them the paths of its subscriptions, the oldest first."""


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
        "above": snapshot.join_feeds,
        "operators": [each.to_json() for each in snapshot.operators],
    }
    return _write_named(folder, json.dumps(content, separators=(",", ":")).encode(), SNAPSHOT)


def read_snapshot(path: Path) -> PlanSnapshot:
    with _told(path):
        found = _content(path)
        layers = tuple(
            Layer(
                _feeds(path.with_name(each["feeds"])),
                each["plans"],
                bool(each["informed"]),
                tuple(_joins(each)),
                # Snapshots of earlier versions lack both.
                each.get("factorize", AUTO),
                each.get("methods", {}),
            )
            for each in found["layers"]
        )
        dropped, join_feeds = tuple(found["dropped"]), tuple(found["above"])
        version = int(found["catalog_version"])
        return PlanSnapshot(version, layers, dropped, join_feeds, _operators(found))


def read_current(folder: Path) -> PlanSnapshot | None:
    """The last snapshot in this folder; None if there is none yet."""
    current = folder / CURRENT
    return read_snapshot(folder / current.read_text().strip()) if current.exists() else None


@lru_cache(maxsize=8)
def open_snapshot(path: str) -> OpenSnapshot:
    """Files never change, so what was read stays right."""
    plans: dict[str, list[str]] = {}
    groups: dict[str, JoinGroup] = {}
    joins: dict[str, list[str]] = {}
    with _told(Path(path)):
        found = _content(Path(path))
        for layer in found["layers"]:
            for source, name in layer["plans"].items():
                plans.setdefault(source, []).append(str(Path(path).with_name(name)))
            for group, name in _joins(layer):
                groups[group.name] = group
                joins.setdefault(group.name, []).append(str(Path(path).with_name(name)))
        dropped = np.array(found["dropped"], np.int32)
        return OpenSnapshot(plans, dropped, _operators(found), groups, joins)


def _joins(layer: Mapping[str, Any]) -> Iterator[tuple[JoinGroup, str]]:
    for group, name in layer["joins"]:
        yield JoinGroup.from_json(group), str(name)


def _operators(found: Mapping[str, Any]) -> tuple[Declaration, ...]:
    return tuple(map(Declaration.from_json, found["operators"]))


def _feeds_file(folder: Path, layer: Layer) -> str:
    """The name of the file with the layer's feeds: it is there unless the layer is new."""
    return write_numbers(folder, layer.feeds)


def write_numbers(folder: Path, feeds: Ints) -> str:
    """The name of the file with these numbers of feeds."""
    return _write_named(folder, feeds.astype("<i4").tobytes(), FEEDS).name


def read_numbers(path: Path) -> Ints:
    with _told(path):
        return _feeds(path)


def _feeds(path: Path) -> Ints:
    return np.frombuffer(_checked(path), "<i4").astype(np.int32)


def _content(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_checked(path))
    if found["format"] != FORMAT:
        raise ValueError(f"it has format {found['format']}, not {FORMAT}")
    return found


def _write_named(folder: Path, content: bytes, ending: str) -> Path:
    path = folder / f"{_name_of(content)}{ending}"
    if not path.exists():
        write_whole(path, content)
    return path


def _checked(path: Path) -> bytes:
    content = path.read_bytes()
    if not path.name.startswith(_name_of(content)):
        raise ValueError(f"the name of '{path.name}' does not fit its content")
    return content


def _name_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PipelineError(f"the snapshot '{path}' cannot be used: {error}") from None
