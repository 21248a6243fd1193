"""The same answers on Spark's workers: operators are made there from plain values, and each worker
has a child of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pytest
from tests.operators.runtime_calls import ALLOWED, HOSTILE, SCHEMA, TAME, numbers
from tests.pipeline.spark_session import spark

from headgate.model.atoms import Call
from headgate.operators.declaration import Declaration
from headgate.operators.runtime import BatchCalls, OperatorRuntime, PlanCalls

pytestmark = pytest.mark.integration

DECLARED = [each.to_json() for each in TAME + HOSTILE]


@lru_cache(maxsize=1)
def predicates() -> PlanCalls:
    """Once for each worker, which is a process."""
    declarations = [Declaration.from_json(each) for each in DECLARED]
    operators = OperatorRuntime(declarations, allowed=ALLOWED)
    return PlanCalls(operators, [Call("divides", (3,)), Call("exits_at_once")])


def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        batch_calls = BatchCalls(predicates(), batch, SCHEMA)
        rows = np.arange(batch.num_rows, dtype=np.int32)
        divides, exits = batch_calls.evaluate(0, rows), batch_calls.evaluate(1, rows)
        yield pa.RecordBatch.from_arrays(
            [batch["n"], pa.array(divides.true), pa.array(exits.answered)],
            ["n", "divides", "answered"],
        )


def test_each_worker_has_its_own_child_process() -> None:
    given = [*range(1, 1_000), -1]
    table = pa.Table.from_batches([numbers(*given)])
    frame = spark().createDataFrame(table).repartition(2)
    found = frame.mapInArrow(stage, "n long, divides boolean, answered boolean").collect()
    assert sorted(row.n for row in found) == sorted(given)
    assert all(row.divides == (row.n % 3 == 0) for row in found)
    assert all(row.answered == (row.n > 0) for row in found)
