"""Fixtures of the tests of acquisition: a local server with any behaviour."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.acquire.hostile_server import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server_:
        yield server_
