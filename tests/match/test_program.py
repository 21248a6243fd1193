"""Atoms are compiled into groups or refused; programs survive their file."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.match.agree import answers, assert_agrees, item
from tests.match.drawn import drawn
from tests.match.strategies import NOON, SCHEMA, atoms, filters, items

from headgate.match.array_file import open_arrays, write_arrays
from headgate.match.batch import batch_of_arrow, batch_of_items
from headgate.match.dataclass_codec import to_arrays
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import (
    VERSION,
    Program,
    compile_groups,
    compile_program,
    open_program,
    write_program,
)
from headgate.match.texts import Texts
from headgate.model.atoms import (
    Atom,
    Comparison,
    Contains,
    In,
    IsPresent,
    LinkAtom,
    LinkRelation,
    Matches,
    Relation,
    Similar,
    StartsWith,
    TimestampPart,
    WindowAttribute,
)
from headgate.model.errors import InvalidValue, PlanError, SnapshotError
from headgate.model.filters import Filter
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Link, Type, Xml

GROUP_TYPES = {each.name: each.type for each in SCHEMA.attributes}


def is_alone(atom: Atom) -> bool:
    """Whether the atom has one word; conjunctions.py splits atoms of several words."""
    return not (isinstance(atom, Contains) and not atom.phrase and len(atom.words) > 1)


@given(
    st.lists(atoms.filter(is_alone), min_size=1, max_size=30, unique=True),
    st.lists(items, max_size=6),
)
def test_all_atoms_agree_with_the_oracle(given_atoms: list[Atom], given_items: list[Item]) -> None:
    assert_agrees(given_atoms, given_items, GROUP_TYPES)


@pytest.mark.parametrize(
    "atom",
    [
        Comparison("unknown", Relation.NOT_EQUAL, 1),
        IsPresent("unknown"),
        Contains("unknown", "a"),
        Contains("i", "a"),
        Contains("l", "a"),
        StartsWith("y", "a"),
        Matches("t", ""),
        LinkAtom("y", LinkRelation.EXTENDS, ("a.org",)),
    ],
)
def test_atoms_that_cannot_be_true_have_no_group(atom: Atom) -> None:
    assert compile_groups([(atom, 0)], GROUP_TYPES) == ()


@pytest.mark.parametrize("value", [Comparison("w", Relation.EQUAL, WindowAttribute("w"))])
@pytest.mark.parametrize("similar", [Similar("w", WindowAttribute("w"))])
def test_atoms_on_a_window_are_refused(value: Atom, similar: Atom) -> None:
    for atom in (value, similar):
        with pytest.raises(PlanError, match="window"):
            compile_groups([(atom, 0)], GROUP_TYPES)


def test_a_part_of_what_is_no_timestamp_equals_nothing() -> None:
    some: list[Atom] = [
        Comparison("x", Relation.EQUAL, Xml("rock"), TimestampPart.DATE),
        In("w", ("rock",), TimestampPart.HOUR),
        Comparison("l", Relation.NOT_EQUAL, Link("a.org"), TimestampPart.YEAR),
    ]
    found = [item(x=Xml("rock"), w="rock", l=Link("a.org"))]
    assert answers(some, found, GROUP_TYPES) == [[False], [False], [False]]
    assert_agrees(some, found, GROUP_TYPES)


def test_atoms_on_one_attribute_share_one_reading() -> None:
    some: list[Atom] = [Contains("w", "a"), Contains("w", "a b", True), Similar("w", "a b c")]
    assert len(compile_groups([(atom, row) for row, atom in enumerate(some)], GROUP_TYPES)) == 1


SLICES = pa.array(["Rock", None, "", "é rock", "rock concert", "pop"])


@pytest.mark.parametrize("first", [0, 1, 2, 4, 5, 6])
def test_a_slice_of_a_column_is_read_from_its_first_row(first: int) -> None:
    schema = Schema((Attribute("t", Type.TEXT),))
    some = [Contains("t", "rock"), StartsWith("t", "rock"), Matches("t", "^$"), IsPresent("t")]
    some += [Comparison("t", Relation.LESS, "rock"), Similar("t", "rock", 0.5)]
    batch = batch_of_arrow(pa.RecordBatch.from_arrays([SLICES.slice(first)], names=["t"]), schema)
    rows = np.zeros((len(some), 1), np.uint64)
    for group in compile_groups([(atom, row) for row, atom in enumerate(some)], {"t": Type.TEXT}):
        group.fill(batch, rows)
    found = [item(**({} if each is None else {"t": each})) for each in SLICES.to_pylist()[first:]]
    expected = answers(some, found, {"t": Type.TEXT})
    for own, truth in zip(rows[:, 0].tolist(), expected, strict=True):
        assert [bool(own >> at & 1) for at in range(len(found))] == truth


def test_a_text_column_that_is_no_utf8_is_refused() -> None:
    schema = Schema((Attribute("t", Type.TEXT),))
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"a\xff")]
    )
    with pytest.raises(InvalidValue, match="column 't'"):
        batch_of_arrow(pa.RecordBatch.from_arrays([broken], names=["t"]), schema)


def test_constants_are_texts_and_no_objects() -> None:
    group = compile_groups([(Comparison("w", Relation.LESS, "Rock"), 0)], GROUP_TYPES)[0]
    constants = group.constants[0]  # type: ignore[union-attr]
    assert isinstance(constants, Texts)
    assert constants.text(0) == "rock"


# Programs in files answer as they did, and no file can make them leave their arrays.

TYPES = {str(each.name): each.type for each in SCHEMA.attributes}


def matches_of(program: Program, given_atoms: list[Item]) -> list[list[int]]:
    found = ProgramMatcher(program).match(batch_of_items(given_atoms, TYPES))
    return [sorted(found.of(at).tolist()) for at in range(len(given_atoms))]


@given(st.lists(filters, max_size=10), st.lists(items, max_size=5))
@settings(max_examples=60)
def test_an_opened_program_answers_as_the_compiled_one(
    given_filters: list[Filter], given_items: list[Item]
) -> None:
    program = compile_program(given_filters, SCHEMA, names=range(5, 5 + len(given_filters)))
    with tempfile.TemporaryDirectory() as folder:
        path = write_program(Path(folder), program)
        opened = open_program(path)
        assert path == write_program(Path(folder), opened)
        assert opened.names.tolist() == program.names.tolist()
        assert matches_of(opened, given_items) == matches_of(program, given_items)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with every kind of atom in it."""
    return write_program(tmp_path_factory.mktemp("program"), some_program())


def some_program() -> Program:
    return compile_program(drawn(filters, 150), SCHEMA)


@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=150)
def test_a_flipped_bit_is_found(written: Path, at: float, bit: int) -> None:
    data = bytearray(written.read_bytes())
    data[int(at * len(data))] ^= 1 << bit
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / written.name
        copy.write_bytes(data)
        with pytest.raises(SnapshotError):
            open_program(copy)


@given(st.floats(0, 1, exclude_max=True))
def test_a_file_that_was_cut_off_is_refused(written: Path, share: float) -> None:
    data = written.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / written.name
        copy.write_bytes(data[: int(share * len(data))])
        with pytest.raises(SnapshotError):
            open_program(copy)


def test_another_kind_of_snapshot_and_another_version_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="holds no program"):
        open_program(write_arrays(tmp_path, {}, {}))
    metadata = {"kind": "program", "version": 99}
    with pytest.raises(SnapshotError, match="version 99, and this is version"):
        open_program(write_arrays(tmp_path, {}, metadata))
    metadata = {"kind": "program", "version": VERSION, "stored": {}}
    with pytest.raises(SnapshotError, match="holds no sound program: it is not a Program"):
        open_program(write_arrays(tmp_path, {}, metadata))


def test_a_program_with_words_of_another_version_is_refused(tmp_path: Path) -> None:
    program = replace(compile_program([Contains("w", "rock")], SCHEMA), text_version=1)
    with pytest.raises(SnapshotError, match="its words are of version 1"):
        open_program(write_program(tmp_path, program))


def tampered(program: Path, folder: Path, chance: random.Random) -> Path:
    """A file with right hashes and one or more wrong numbers in its arrays."""
    snapshot = open_arrays(program)
    arrays = {name: np.array(each) for name, each in snapshot.arrays.items()}
    for _ in range(chance.randint(1, 3)):
        name = chance.choice([name for name, each in arrays.items() if each.size])
        change = arrays[name]
        match chance.randint(0, 3):
            case 0:
                arrays[name] = change[: chance.randrange(change.size)]
            case 1:
                arrays[name] = np.concatenate([change, change])
            case _:
                wrong = chance.choice([0, 1, -1, 2, 7, 63, 255, 2**31 - 1, -(2**31)])
                at = chance.randrange(change.size)
                change[at] = np.array(wrong).astype(change.dtype)
    return write_arrays(folder, arrays, dict(snapshot.metadata))


def outcomes(program: Path, *, count: int, seed: int) -> dict[str, int]:
    """How often a tampered file was refused, and how often it was harmless enough to be used."""
    chance = random.Random(seed)
    some = [Item("x", "S", NOON, {"i": n, "w": f"rock pop é {n}", "t": NOON}) for n in range(70)]
    some += [Item("x", "S", NOON, {"w": "", "f": 1.5, "b": True}), Item("x", "S", NOON, {})]
    batch = batch_of_items(some, TYPES)
    outcome_counts = {"refused": 0, "used": 0}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            path = tampered(program, Path(folder), chance)
            try:
                opened = open_program(path)
            except SnapshotError:
                outcome_counts["refused"] += 1
                continue
            matcher = ProgramMatcher(opened)
            matcher.match(batch)
            matcher.bitmaps(batch)
            matcher.count(batch).by_subscription()
            outcome_counts["used"] += 1
    return outcome_counts


@pytest.mark.integration
def test_tampered_files_never_access_memory_outside_their_arrays(written: Path) -> None:
    """Numba checks every index here, in a process of its own: one outside is an error."""
    code = (
        "import sys; from pathlib import Path; from tests.match.test_program import outcomes;"
        "print(outcomes(Path(sys.argv[1]), count=400, seed=1))"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache}
        done = subprocess.run(
            [sys.executable, "-c", code, str(written)],
            cwd=Path(__file__).parents[2],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "'refused': 0" not in done.stdout


def test_an_untampered_program_is_accepted(written: Path) -> None:
    arrays, _ = to_arrays(open_program(written))
    assert all(each.ndim == 1 for each in arrays.values())
