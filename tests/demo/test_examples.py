"""The demo's script and stylesheets are package data; examples/ has the same files for people.

They are copies, not links: a stylesheet outside of the folder of stylesheets is refused, so a link
would not work in `headgate run examples/newsroom.feeds`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "headgate" / "demo"


@pytest.mark.parametrize("name", ["newsroom.feeds", "Title.xsl", "IncludePhotos.xsl"])
def test_examples_are_the_package_data(name: str) -> None:
    example = ROOT / "examples" / name
    assert not example.is_symlink()
    assert example.read_bytes() == (PACKAGE / name).read_bytes()
