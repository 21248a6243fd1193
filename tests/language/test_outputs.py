"""Which files a subscription may write."""

from __future__ import annotations

import pytest
from tests.language.definitions import KNOWN, define

from headgate.language.check import check
from headgate.language.parse import parse


@pytest.mark.parametrize(
    "output",
    [
        *(f"output file 'deep/a{ending}'" for ending in (".rss", ".json", ".HTML", ".txt")),
        "apply 'rows.xsl' output file 'a.csv'",
        "apply 'page.xsl' output file 'a.html'",
    ],
)
def test_files_that_may_be_written(output: str) -> None:
    statement = parse(f"subscribe to MuseNews {output};")
    assert check(statement, define(KNOWN)) == statement
