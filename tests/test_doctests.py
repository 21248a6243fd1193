"""Examples in docstrings run."""

import doctest
import importlib
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
# Only files with an example are imported: a migration, for one, cannot be imported alone.
MODULES = [
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SRC.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module: str):
    # raise_on_error would hide the place; testmod prints it, and pytest shows what was printed.
    failed, _ = doctest.testmod(importlib.import_module(module))
    assert failed == 0
