"""The door for snapshots: a program and a source plan, with wrong hashes and with right ones."""

from __future__ import annotations

import json
import random
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.hostile_inputs.door import Door, process_folder, repeated, words
from headgate.language.parse import parse_filter
from headgate.match.array_file import open_arrays, write_arrays
from headgate.match.batch import Batch, batch_of_items
from headgate.match.matcher import ProgramMatcher
from headgate.match.program import compile_program, open_program, write_program
from headgate.model.errors import SnapshotError
from headgate.model.filters import Filter
from headgate.model.items import Item
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.source_plan import open_source_plan, source_plan, write_source_plan
from headgate.plan.leaves import FilterUsers

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
SCHEMA = Schema(
    (
        Attribute("title", Type.TEXT),
        Attribute("price", Type.INT),
        Attribute("part", Type.FLOAT),
        Attribute("link", Type.LINK),
        Attribute("at", Type.TIMESTAMP),
        Attribute("flag", Type.BOOL),
    )
)
_FILTERS = (
    "price < 100 and title contains 'rock'",
    "title contains phrase 'new album' or price in (1, 2, 3)",
    "title similar(0.5) 'rock pop jazz' and not flag",
    "title starts with 'Ro' and part between 1.5 and 2.5",
    "title matches 'r.ck' and at > timestamp '2026-01-01'",
    "price is present and part > 1e300",
    "title = 'Paris' or title in ('Rome', 'Oslo')",
)


@cache
def _filters() -> tuple[Filter, ...]:
    return tuple(parse_filter(each, SCHEMA) for each in _FILTERS)


@cache
def _batch() -> Batch:
    values = [
        {"title": f"rock pop é {n}", "price": n, "at": NOON, "flag": n % 2 == 0} for n in range(70)
    ]
    return batch_of_items(
        [Item("x", "S", NOON, each) for each in [*values, {"title": "", "part": 2.0}, {}]],
        {str(each.name): each.type for each in SCHEMA.attributes},
    )


@cache
def _snapshots() -> tuple[Path, Path]:
    folder = process_folder()
    users = {each: FilterUsers(feeds=[f"F{n}"]) for n, each in enumerate(_filters())}
    plan = source_plan("S", SCHEMA, users, number_of={f"F{n}": n for n in range(len(_filters()))})
    return (
        write_program(folder, compile_program(list(_filters()), SCHEMA)),
        write_source_plan(folder, plan),
    )


def enter_snapshot(data: bytes) -> Iterator[str]:
    """Once as the file is, and once as a change of a good file that has all its hashes right."""
    with tempfile.TemporaryDirectory() as name:
        own = Path(name, f"{data[32:48].hex()}.headgate")
        own.write_bytes(data)
        yield _used(own)
        chance = random.Random(zlib.crc32(data))
        yield _used(_tampered(chance.choice(_snapshots()), Path(name), chance))


def _used(path: Path) -> str:
    """Open the file as both kinds, and match with it if it can be opened."""
    with suppress(SnapshotError):
        program = open_program(path)
        matcher = ProgramMatcher(program)
        matcher.match(_batch())
        matcher.bitmaps(_batch())
        matcher.count(_batch()).by_subscription()
    with suppress(SnapshotError):
        open_source_plan(path).match(_batch())
    return ""


def _tampered(path: Path, folder: Path, chance: random.Random) -> Path:
    opened = open_arrays(path)
    arrays = {name: array.copy() for name, array in opened.arrays.items()}
    metadata = json.loads(json.dumps(dict(opened.metadata)))
    for _ in range(chance.choice((1, 1, 2, 5))):
        if chance.random() < 0.2:
            _change_json(metadata, chance)
            continue
        name = chance.choice([name for name, each in arrays.items() if each.size])
        array = arrays[name]
        match chance.randrange(5):
            case 0:
                arrays[name] = array[: chance.randrange(array.size) + 1]
            case 1:
                arrays[name] = np.concatenate([array, array])
            case 2:
                arrays[name] = chance.choice(list(arrays.values())).copy()
            case _:
                wrong = chance.choice([0, 1, -1, 2, 63, 255, 2**31 - 1, -(2**31), 2**63 - 1])
                with np.errstate(all="ignore"):
                    value = np.array(wrong, np.int64).astype(array.dtype)
                array[chance.randrange(array.size)] = value
    return write_arrays(folder, arrays, metadata)


def _change_json(part: Any, chance: random.Random) -> None:
    """Change one value somewhere within lists and objects."""
    while True:
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        if not keys:
            return
        key = chance.choice(keys)
        inner = part[key]
        if not isinstance(inner, dict | list) or chance.random() < 0.1:
            part[key] = chance.choice([None, -1, 2**40, 1.5, "x", [], {}, True, "WordAtoms"])
            return
        part = inner


SNAPSHOTS = Door(
    "snapshots",
    lambda: tuple(each.read_bytes() for each in _snapshots()),
    words(
        b'HEADGATE | "arrays" | "offset":0 | "shape":[1] | "dtype":"<i8" | "length":8 | \x00\x00 '
        b'| \xff\xff\xff\xff | "is":"Program" | NaN | [[ | {"a": | 99999999999 | -1 | null'
    ),
    (
        repeated(b"["),
        repeated(b"\x00", b"HEADGATE\x01"),
        repeated(b"HEADGATE"),
        lambda size: _announcing(size, b"[" * size),
        lambda size: _announcing(size, b'{"arrays":[' + b"{}," * (size // 3)),
        lambda size: _announcing(2**60, b" " * size),
    ),
    enter_snapshot,
    bomb_bytes=4_000_000,
)


def _announcing(length: int, header: bytes) -> bytes:
    """A start that names this length of the header."""
    total = 64 + len(header)
    numbers = b"".join(each.to_bytes(8, "little") for each in (1, length, total))
    return b"HEADGATE" + numbers + bytes(32) + header
