"""Every test that uses `catalog_url` runs with SQLite and with PostgreSQL."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.catalog.postgres_server import CannotRun, PostgresServer

from headgate.catalog.catalog import Catalog


class ManualClock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **span: float) -> None:
        self.now += timedelta(**span)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer()
    except CannotRun as reason:
        pytest.skip(str(reason))
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_url()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def catalog(catalog_url: str, clock: ManualClock) -> Iterator[Catalog]:
    with Catalog.open(catalog_url, clock=clock) as catalog:
        yield catalog
