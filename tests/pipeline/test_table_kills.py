"""A run that joins tables and is killed loses no result and delivers none twice."""

import pytest
from bench.running.table_kills import table_kills_row

pytestmark = pytest.mark.integration


def test_three_kills() -> None:
    row = table_kills_row(quick=True, say=lambda _: None)
    assert row.met, row.ours
