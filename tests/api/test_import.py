"""`import headgate` is quick, loads nothing heavy, and exports just what it says."""

from __future__ import annotations

import subprocess
import sys

import headgate

EXPORTED = [
    "Explanation",
    "Headgate",
    "HeadgateError",
    "LanguageError",
    "Matcher",
    "__version__",
    "open",
    "spark",
]
HEAVY = ("pyspark", "numba", "numpy", "pyarrow", "lark", "sqlalchemy")


def test_the_exported_names_are_these() -> None:
    assert sorted(headgate.__all__) == dir(headgate) == EXPORTED
    for name in EXPORTED:
        assert getattr(headgate, name) is not None


def test_an_import_loads_nothing_heavy_and_takes_no_time() -> None:
    code = (
        "import sys, time; began = time.process_time(); import headgate; "
        "print(time.process_time() - began); "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    assert all(each.stdout.splitlines()[1] == "[]" for each in runs)
    assert min(float(each.stdout.splitlines()[0]) for each in runs) <= 0.15


def test_spark_is_loaded_only_when_a_frame_is_matched() -> None:
    code = "import sys, headgate; headgate.spark.match; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
