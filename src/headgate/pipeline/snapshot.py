"""A snapshot of all plans: which source plans a batch uses. A small file, named by its content.

    layers    [ 100,000 feeds │ 900 feeds │ 3 feeds ]      each: for each source a source plan
    dropped   the numbers of feeds that are in a layer, but not registered any more

New feeds make a new layer, so that one feed is planned in milliseconds beside a million others; a
layer that has grown to an eighth of the one before it is planned together with it. This is how a
log-structured merge tree keeps its files: a feed is planned again O(log n) times in all.

Workers read the file too. It names source plans by their file names, and those are checked when
they are opened (source_plan.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from headgate.match.kernels import Ints
from headgate.model.errors import PipelineError
from headgate.store.folder import write_whole

FORMAT = 1
SHARE = 8
"""A layer is merged into the one before it when it has more than this share of its feeds."""


@dataclass(frozen=True, slots=True)
class Layer:
    feeds: tuple[int, ...]
    plans: Mapping[str, str]
    """The file name of each source's plan."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    catalog_version: int
    layers: tuple[Layer, ...] = ()
    dropped: tuple[int, ...] = ()
    above: tuple[int, ...] = ()
    """The feeds that look further at items: joins and patterns (plan/leaves.py)."""

    @property
    def feeds(self) -> set[int]:
        return {each for layer in self.layers for each in layer.feeds}

    def has_to_merge(self) -> bool:
        return any(
            len(later.feeds) * SHARE >= len(earlier.feeds)
            for earlier, later in zip(self.layers, self.layers[1:], strict=False)
        )


@dataclass(frozen=True, slots=True, eq=False)
class OpenSnapshot:
    """As workers use it: for each source the paths of its plans, the oldest first."""

    plans: Mapping[str, Sequence[str]]
    dropped: Ints


def write_snapshot(folder: Path, snapshot: Snapshot) -> Path:
    content = json.dumps(
        {
            "format": FORMAT,
            "catalog_version": snapshot.catalog_version,
            "layers": [
                {"feeds": layer.feeds, "plans": dict(sorted(layer.plans.items()))}
                for layer in snapshot.layers
            ],
            "dropped": snapshot.dropped,
            "above": snapshot.above,
        },
        separators=(",", ":"),
    ).encode()
    path = folder / f"{hashlib.sha256(content).hexdigest()[:32]}.snapshot.json"
    if not path.exists():
        write_whole(path, content)
    return path


def read_snapshot(path: Path) -> Snapshot:
    try:
        content = path.read_bytes()
        if not path.name.startswith(hashlib.sha256(content).hexdigest()[:32]):
            raise ValueError("its name does not fit its content")
        found = json.loads(content)
        if found["format"] != FORMAT:
            raise ValueError(f"it has format {found['format']}, not {FORMAT}")
        layers = tuple(Layer(tuple(each["feeds"]), each["plans"]) for each in found["layers"])
        dropped, above = tuple(found["dropped"]), tuple(found["above"])
        return Snapshot(int(found["catalog_version"]), layers, dropped, above)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"the snapshot '{path}' cannot be used: {error}") from None


@lru_cache(maxsize=8)
def open_snapshot(path: str) -> OpenSnapshot:
    """Files never change, so what was read stays right."""
    snapshot = read_snapshot(Path(path))
    plans: dict[str, list[str]] = {}
    for layer in snapshot.layers:
        for source, name in layer.plans.items():
            plans.setdefault(source, []).append(str(Path(path).with_name(name)))
    return OpenSnapshot(plans, np.array(snapshot.dropped, np.int32))
