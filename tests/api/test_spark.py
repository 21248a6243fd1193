"""`hg.spark.match` gives the same in classic sessions, in a cluster and in Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.api.spark_script import FILTERS, TICKETS

import headgate as hg
from headgate.api.frames import attribute_columns
from headgate.api.spark import ShippedFile, match_stage

SCRIPT = Path(__file__).with_name("spark_script.py")


def expected(filters: dict[str, str], *, numbers: bool = False) -> list[list[object]]:
    matcher = hg.Matcher({"price": "float", "to": "text", "gone": "int"})
    matcher.add_many(filters)
    names = list(matcher)
    lines = []
    for price, to, extra in TICKETS:
        found = sorted(matcher.match({"price": price, "to": to}))
        listed = sorted(names.index(name) for name in found) if numbers else found
        lines.append([str(to), listed, str(extra)])
    return sorted(lines)


@pytest.mark.integration
@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]", "connect"])
def test_the_same_everywhere(master: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), master],
        cwd=tmp_path,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["batch"] == expected(FILTERS)
    assert told.get("stream", told["batch"]) == told["batch"]
    both = {"none": "gone = 1", "cheap": "price < 100"}
    assert told["numbers"] == expected(both, numbers=True)
    assert told["later"] == expected({"none": "gone = 1"})
    assert told["types"] == ["double", "string", "array<int>", "array<int>"]
    assert told["refused"] == [
        "the frame has a column 'Extra' already",
        "the frame has none of the attributes price, to, gone; its columns are extra",
        "column 'to' of string does not fit int",
        "line 1, column 1: filter 'x': there is no attribute 'extra'",
    ]


@pytest.mark.parametrize("at_once", [1, 4_000_000])
@pytest.mark.parametrize("ids", [False, True])
def test_the_stage_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, ids: bool
) -> None:
    """Batches of any size, in lists that are written at once or not."""
    monkeypatch.setattr("headgate.api.spark.MATCHES_AT_ONCE", at_once)
    monkeypatch.setattr("headgate.match.matcher.BATCH_ROWS", 7)
    monkeypatch.setattr("headgate.match.matcher.LARGE_BATCH_ROWS", 11)
    monkeypatch.setattr("headgate.match.matcher.FEW_MATCHES", 2)
    matcher = hg.Matcher({"n": "int"})
    matcher.add_many({f"below {limit}": f"n < {limit}" for limit in range(20)})
    path = tmp_path / "m.headgate"
    matcher.save(path)
    packed = pa.Codec("zstd").compress(path.read_bytes(), asbytes=True)
    file = ShippedFile(f"{at_once}-{ids}.headgate", packed, path.stat().st_size)
    table = pa.table({"n": pa.array(range(50), pa.int32()), "other": [[n] for n in range(50)]})
    attributes = attribute_columns(table.schema, matcher.schema)
    stage = match_stage(file, attributes, "m", ids=ids)
    found = pa.Table.from_batches(stage(table.to_batches(max_chunksize=20)))
    assert found.select(["n", "other"]).equals(table)
    for row in found.to_pylist():
        names = matcher.match({"n": row["n"]})
        want = [list(matcher).index(name) for name in names] if ids else names
        assert sorted(row["m"]) == sorted(want)
