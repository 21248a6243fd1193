"""Kernels sort right whatever other kernels came out of Numba's cache before them.

Numba (0.68.1) names the functions inside a compiled kernel by their qualified name, their argument
types and a number that counts from 1 in each process. Its `sort` and its `argsort` are made by one
factory and have the same qualified names, so the parts of two kernels that two processes compiled
may have the same symbol. A process that loads both from the cache gets one of the two bodies for
both: `sort` leaves the array as it was, `argsort` returns what is no order (numba/numba#10486).

As long as all argsorts in kernels are merge sorts, the two have no name in common.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"

KERNELS = """
import sys
import numba as nb
import numpy as np

@nb.njit(cache=True)
def order_of(values):
    return np.argsort(values, kind="{kind}")

@nb.njit(cache=True)
def sort_in_place(values):
    values.sort()

values = np.random.default_rng(1).permutation(40).astype(np.int32)
if "order" in sys.argv:
    order = order_of(values)
    assert np.array_equal(np.sort(order), np.arange(40)), order
    assert (np.diff(values[order]) > 0).all()
if "sort" in sys.argv:
    sort_in_place(values)
    assert (np.diff(values) > 0).all(), values
"""


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            "quicksort",
            marks=pytest.mark.xfail(
                strict=True, reason="numba/numba#10486; once it is fixed, any kind will do"
            ),
        ),
        "mergesort",
    ],
)
def test_two_processes_fill_the_cache_and_a_third_one_loads_both(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(KERNELS.format(kind=kind))
    outcomes = []
    for kernels in (["order"], ["sort"], ["order", "sort"]):
        done = subprocess.run(
            [sys.executable, str(file), *kernels],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
        outcomes.append((kernels, done.returncode, done.stderr[-300:]))
    assert [code for _, code, _ in outcomes] == [0, 0, 0], outcomes


def test_every_argsort_in_a_kernel_is_a_merge_sort() -> None:
    wrong = [
        f"{path.relative_to(SRC)}:{call.lineno}"
        for path in sorted(SRC.rglob("*.py"))
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef)
        and any("njit" in ast.unparse(each) for each in function.decorator_list)
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and ast.unparse(call.func).endswith("argsort")
        and not any(
            each.arg == "kind" and ast.unparse(each.value) == "'mergesort'"
            for each in call.keywords
        )
    ]
    assert wrong == []
