"""Files that hold secrets or data of subscribers are for their owner only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.acquire.spool import Spool
from headgate.api.headgate import open as open_headgate
from headgate.deliver.delivery_database import DeliveryDatabase
from headgate.store.data_folder import DataFolder


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """What somebody else could reach."""
    found = []
    for path in [folder, *folder.rglob("*")]:
        if stat.S_IMODE(path.stat().st_mode) & 0o077 and not path.name.endswith(".lock"):
            found.append(str(path.relative_to(folder)))
    return found


def test_a_catalog(tmp_path: Path):
    folder = tmp_path / "own"
    folder.mkdir(mode=0o700)
    with open_headgate(str(folder / "headgate.db")) as h:
        h.execute("register feed http://a.b/c as X")
        assert open_to_others(folder) == []


def test_a_catalog_that_others_may_read_stays_so(tmp_path: Path):
    catalog = tmp_path / "headgate.db"
    catalog.touch(0o640)
    with open_headgate(str(catalog)) as h:
        h.execute("register feed http://a.b/c as X")
    assert stat.S_IMODE(catalog.stat().st_mode) == 0o640


@pytest.mark.parametrize("is_there", [False, True])
def test_the_folder_of_a_run(tmp_path: Path, is_there: bool):
    path = tmp_path / "data"
    if is_there:
        path.mkdir(mode=0o755)
    folder = DataFolder(path).make()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    DeliveryDatabase(folder.delivery_database).close()
    assert stat.S_IMODE(Path(folder.delivery_database).stat().st_mode) == 0o600


def test_a_spool(tmp_path: Path):
    spool = Spool(tmp_path / "spool")
    spool.append("X", [b"{}"])
    assert open_to_others(spool.folder) == []
