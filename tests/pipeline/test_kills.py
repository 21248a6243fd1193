"""A run that is killed, driver and workers, loses nothing and delivers nothing twice."""

import pytest
from bench.running.kills import kills_row

pytestmark = pytest.mark.integration


def test_two_kills() -> None:
    row = kills_row(quick=True, say=lambda _: None)
    assert row.met, row.ours
