"""A service with two tenants, one with three tenants and stored items, one with feed readers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.reader_home import ReaderHome
from tests.service.stored_home import StoredHome
from tests.service.test_api import Home, serving

from headgate.service import caller


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    with serving(home.headgate) as home.url:
        yield home
    home.catalog.close()


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[StoredHome]:
    home = StoredHome(tmp_path)
    with serving(home.headgate) as home.url:
        yield home
    home.catalog.close()


@pytest.fixture
def readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReaderHome]:
    """What is revoked ends at once."""
    monkeypatch.setattr(caller, "PRINCIPAL_S", 0.0)
    home = ReaderHome(tmp_path)
    with serving(home.headgate) as home.url:
        yield home
    home.catalog.close()
