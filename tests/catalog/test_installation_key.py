"""The key of the installation: made once, kept private, and never silently another one."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.installation_key import VARIABLE
from headgate.model.errors import KeyMissing


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    return tmp_path


def key_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.key"))


def key_of(url: str) -> bytes:
    with Catalog.open(url) as catalog:
        return catalog.installation_key()


def test_a_key_is_made_once_and_only_its_owner_reads_it(catalog_url: str, data_home: Path):
    key = key_of(catalog_url)
    (file,) = key_files(data_home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_bytes().strip() == key
    assert len(key) == 43
    assert key_of(catalog_url) == key
    assert key_files(data_home) == [file]


def test_many_that_need_it_at_once_get_the_same(catalog_url: str):
    Catalog.open(catalog_url).close()
    with ThreadPoolExecutor(6) as threads:
        assert len(set(threads.map(key_of, [catalog_url] * 6))) == 1


def test_the_variable_is_the_key(catalog_url, data_home, monkeypatch):
    monkeypatch.setenv(VARIABLE, "passphrase")
    assert key_of(catalog_url) == b"passphrase"
    assert key_files(data_home) == []
    with Catalog.open(catalog_url) as catalog, catalog._database.reading() as connection:
        stored = connection.exec_driver_sql("SELECT key_fingerprint FROM state").scalar()
    assert "passphrase" not in stored
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(KeyMissing, match=f"set {VARIABLE} to the key"):
        key_of(catalog_url)
    assert key_files(data_home) == []


def test_another_key_is_refused(catalog_url, data_home, monkeypatch):
    key = key_of(catalog_url)
    monkeypatch.setenv(VARIABLE, "another")
    with pytest.raises(KeyMissing, match=r"is not the key .* or unset it to use"):
        key_of(catalog_url)
    monkeypatch.setenv(VARIABLE, key.decode())
    assert key_of(catalog_url) == key
    (file,) = key_files(data_home)
    file.write_text("damaged\n")
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(KeyMissing, match="another one"):
        key_of(catalog_url)


def test_another_host_needs_the_variable(catalog_url, data_home, monkeypatch):
    key = key_of(catalog_url)
    (file,) = key_files(data_home)
    file.unlink()
    with pytest.raises(KeyMissing, match=f"not here: copy the file .* or set {VARIABLE}"):
        key_of(catalog_url)
    monkeypatch.setenv(VARIABLE, key.decode())
    assert key_of(catalog_url) == key


def test_a_key_that_cannot_be_written_asks_for_the_variable(tmp_path, monkeypatch):
    monkeypatch.setattr("headgate.catalog.installation_key._create", _full_disk)
    with pytest.raises(KeyMissing, match=f"cannot be written .* set {VARIABLE}"):
        key_of(str(tmp_path / "c.db"))


def _full_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_catalog_in_memory_has_a_key_of_its_own(data_home: Path):
    with Catalog.open("sqlite://") as catalog:
        assert catalog.installation_key() == catalog.installation_key()
        assert catalog.installation_key() != key_of("sqlite://")
    assert key_files(data_home) == []
