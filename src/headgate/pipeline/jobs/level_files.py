"""Level programs as snapshot files that every worker maps (views/level_program.py).

    write_levels(folder, program)  ──►  folder/2f9c…51.headgate  ──►  open_levels(path)

A task carries the path of a program, not the program; a worker opens each path once. The content of
a file is checked before a kernel runs on it (see match/bounds.py).
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np

from headgate.match.array_file import Array, ArrayFile, open_arrays, write_arrays
from headgate.match.bounds import check_indices, check_starts, refuse_unless
from headgate.match.dataclass_codec import open_stored, write_stored
from headgate.model.errors import SnapshotError
from headgate.network.flat_levels import FlatLevels
from headgate.views.document import Document
from headgate.views.level_program import Joins, LevelProgram, Steps, ViewTables
from headgate.views.pattern_arrays import Longs, PatternVocabulary
from headgate.views.rewriting_joins import (
    ABOVE,
    COLUMN,
    EDGE_ABOVE,
    EDGE_BELOW,
    GOES_TO,
    NODE,
    RESIDUAL_NODE,
    TABLE,
    WAY,
)
from headgate.views.run_levels import LevelRunner

KIND, FLAT_KIND, VERSION = "level program", "flat levels", 2
PARTS = {"steps": Steps._fields, "joins": Joins._fields, "views": ViewTables._fields}


def write_levels(folder: Path, program: LevelProgram) -> Path:
    arrays: dict[str, Array] = {
        "valued": program.valued.astype(np.uint8),
        "width": program.width,
        "level_start": program.level_start,
    }
    for name in PARTS:
        for field, array in getattr(program, name)._asdict().items():
            plain = array.astype(np.uint8) if array.dtype == np.bool_ else array
            arrays[f"{name}.{field}"] = plain
    known = program.vocabulary
    words = {"labels": list(known.labels), "texts": known.texts, "numbers": known.numbers}
    # Not in the header, which has a limit: a million views may compare as many constants.
    arrays["words"] = np.frombuffer(json.dumps(words).encode(), np.uint8)
    return write_arrays(folder, arrays, {"kind": KIND, "version": VERSION})


def open_levels(path: Path) -> LevelProgram:
    snapshot = open_arrays(path)
    if (snapshot.metadata.get("kind"), snapshot.metadata.get("version")) != (KIND, VERSION):
        raise SnapshotError(f"{path} holds no {KIND} of version {VERSION}; make it anew")
    try:
        program = _program(snapshot)
        check_levels(program)
    except (KeyError, TypeError, ValueError, SnapshotError) as reason:
        raise SnapshotError(f"{path} holds no sound {KIND}: {reason}") from None
    return program


def write_flat_levels(folder: Path, levels: FlatLevels) -> Path:
    return write_stored(folder, levels, kind=FLAT_KIND, version=VERSION)


@lru_cache(maxsize=64)
def opened_runner(path: str) -> LevelRunner:
    """Of one worker, which has one thread. Its kernels are loaded: no document waits for them."""
    runner, nearly_nothing = LevelRunner(open_levels(Path(path))), Document.read("<a/>")
    assert nearly_nothing is not None
    runner.run(nearly_nothing)
    return runner


@lru_cache(maxsize=64)
def opened_flat_levels(path: str) -> FlatLevels:
    return open_stored(Path(path), FlatLevels, kind=FLAT_KIND, version=VERSION)


def _program(snapshot: ArrayFile) -> LevelProgram:
    arrays = snapshot.arrays
    words = json.loads(arrays["words"].tobytes())
    labels = {label: number for number, label in enumerate(words["labels"])}
    vocabulary = PatternVocabulary(labels, words["texts"], words["numbers"])

    def part(name: str) -> list[Array]:
        return [_array(arrays[f"{name}.{field}"]) for field in PARTS[name]]

    return LevelProgram(
        vocabulary,
        _array(arrays["valued"]),
        Steps(*part("steps")),
        Joins(*part("joins")),
        ViewTables(*part("views")),
        arrays["width"],
        arrays["level_start"],
    )


def _array(stored: Array) -> Array:
    return stored.view(np.bool_) if stored.dtype == np.uint8 else stored


def check_levels(program: LevelProgram) -> None:
    """That no kernel reads or writes outside of its arrays."""
    tables, labels = len(program.width), len(program.vocabulary.labels)
    check_starts("level_start", program.level_start, tables)
    refuse_unless(len(program.valued) == labels, "valued", "it is not one for each label")
    _check_steps(program, labels)
    _check_joins(program)
    views = program.views
    check_indices("views.table", views.table, tables, length=len(views.level))
    check_starts("views.mark_start", views.mark_start, len(views.marks), parts=len(views.table))
    width = program.width[np.repeat(views.table, np.diff(views.mark_start))]
    _check_below("views.marks", views.marks[:, 0], width)


def _check_steps(program: LevelProgram, labels: int) -> None:
    steps = program.steps
    count, children = len(steps.label), len(steps.child_table)
    check_indices("steps.label", steps.label, labels)
    check_starts("steps.predicate_start", steps.predicate_start, len(steps.predicates), parts=count)
    check_starts("steps.child_start", steps.child_start, children, parts=count)
    refuse_unless(len(steps.is_root) == count, "steps.is_root", "it is not one for each step")
    refuse_unless(len(steps.child_is_near) == children, "steps.child_is_near", "it is too short")
    refuse_unless(steps.predicates.shape[1:] == (4,), "steps.predicates", "it has other columns")
    parent = np.repeat(np.arange(count), np.diff(steps.child_start))
    _check_below("steps.child_table", steps.child_table, parent)
    within = np.bincount(parent, program.width[steps.child_table], count)
    is_sum = program.width[:count] == 1 + within
    refuse_unless(bool(is_sum.all()), "width", "a step is not as wide as its children")


def _check_joins(program: LevelProgram) -> None:
    joins, steps, tables = program.joins, len(program.steps.label), len(program.width)
    count, instances = tables - steps, len(joins.instances)
    check_starts("joins.instance_start", joins.instance_start, instances, parts=count)
    for name in ("column", "edge", "residual"):
        lines = getattr(joins, f"{name}s")
        start = getattr(joins, f"{name}_start")
        check_starts(f"joins.{name}_start", start, len(lines), parts=instances)
    refuse_unless(bool((np.diff(joins.instance_start) > 0).all()), "joins", "one reads nothing")
    table = steps + np.repeat(np.arange(count), np.diff(joins.instance_start))
    read, size = joins.instances[:, TABLE], program.width[table]
    level = np.searchsorted(program.level_start, np.arange(tables), "right")
    _check_below("joins.instances", read, np.full(instances, tables))
    refuse_unless(bool((level[read] < level[table]).all()), "joins.instances", "a level is wrong")
    check_indices("joins.instances", joins.instances[:, WAY], ABOVE + 1)
    _check_below("joins.instances", joins.instances[:, COLUMN], program.width[read])
    _check_below("joins.instances", joins.instances[:, NODE], size)
    is_all = np.diff(joins.column_start) == program.width[read]
    refuse_unless(bool(is_all.all()), "joins.columns", "it is not one for each column")
    _check_below(
        "joins.columns", joins.columns[:, GOES_TO], size.repeat(np.diff(joins.column_start))
    )
    own = size.repeat(np.diff(joins.edge_start))
    _check_below("joins.edges", joins.edges[:, EDGE_ABOVE] + 1, own + 1)
    _check_below("joins.edges", joins.edges[:, EDGE_BELOW], own)
    own = size.repeat(np.diff(joins.residual_start))
    _check_below("joins.residuals", joins.residuals[:, RESIDUAL_NODE], own)


def _check_below(name: str, values: Longs, limits: Longs) -> None:
    """That each value is at least 0 and below its own limit."""
    refuse_unless(values.shape == limits.shape, name, "it has another length")
    sound = bool(((values >= 0) & (values < limits)).all())
    refuse_unless(sound, name, "a number is out of its bounds")
