"""What the tests of acquisition share: a local server that is up to anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.acquire.hostile_server import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made
