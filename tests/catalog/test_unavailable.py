"""A database that cannot be used: the error says what to do, and has no secret."""

import os
import sqlite3
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.catalog.catalog import Catalog
from headgate.language.parse import parse_script
from headgate.model.errors import CatalogUnavailable

SOURCE = "register feed https://example.org/news as News;"
NOBODY = 65534


def refused(url: str) -> str:
    with pytest.raises(CatalogUnavailable) as caught:
        Catalog.open(url, lock_timeout_s=0.05)
    return str(caught.value)


@pytest.fixture
def unprivileged_folder() -> Iterator[Path]:
    """A folder, with the rights of an ordinary user: root may write everywhere."""
    with tempfile.TemporaryDirectory() as name:
        folder, user = Path(name), os.geteuid()
        if user == 0:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            os.seteuid(user)
            folder.chmod(0o700)


def fill(path: Path) -> None:
    with Catalog.open(str(path)) as catalog:
        sources = (f"register feed https://a.b/{n} as src{n};" for n in range(500))
        catalog.apply(parse_script(SOURCE + "".join(sources)))


def test_a_file_that_is_no_database(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, not a catalog. " * 100)
    assert "notes.txt' is not a catalog; name another file" in refused(str(path))
    assert path.read_text().startswith("these are notes")


@pytest.mark.parametrize("size", [2, 100, 4096, 5000, 40_000])
def test_a_file_that_was_cut_off(tmp_path: Path, size: int):
    path = tmp_path / "c.db"
    fill(path)
    os.truncate(path, size)
    with pytest.raises(CatalogUnavailable) as caught, Catalog.open(str(path)) as catalog:
        catalog.definitions()
    assert "is damaged" in str(caught.value) or "is not a catalog" in str(caught.value)


def test_an_empty_file_is_a_new_catalog(tmp_path: Path):
    path = tmp_path / "c.db"
    path.touch()
    fill(path)


def test_a_folder_that_does_not_exist(tmp_path: Path):
    for path in (tmp_path / "missing" / "c.db", tmp_path):
        assert "cannot be opened; its directory must exist" in refused(str(path))
    assert not (tmp_path / "missing").exists()


def test_a_file_that_is_read_only_can_be_read(unprivileged_folder: Path):
    path = unprivileged_folder / "c.db"
    fill(path)
    path.chmod(0o400)
    with Catalog.open(str(path)) as catalog:
        assert "News" in catalog.definitions()
        with pytest.raises(CatalogUnavailable, match="is read-only; make the file"):
            catalog.apply(parse_script("register feed https://a.b/c as C;"))


def test_a_folder_that_is_read_only(unprivileged_folder: Path):
    path = unprivileged_folder / "c.db"
    unprivileged_folder.chmod(0o500)
    assert "its directory must exist and be writable" in refused(str(path))


def test_a_database_that_others_hold(tmp_path: Path):
    path = tmp_path / "c.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert "is locked by another process for too long; try again" in refused(str(path))
    other.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://me:hunter2@host/db", "lives in SQLite or PostgreSQL, not in 'mysql'"),
        ("postgresql://me:hunter2@host:port/db", "the catalog's URL cannot be read"),
        ("://me:hunter2@host", "the catalog's URL cannot be read"),
        ("nonsense://hunter2", "lives in SQLite or PostgreSQL, not in 'nonsense'"),
        ("postgresql://me:hunter2@127.0.0.1:1/db", "cannot be reached (Connection refused)"),
        ("postgres://me:hunter2@127.0.0.1:1/db", "cannot be reached (Connection refused)"),
        ("postgresql://127.0.0.1:1/db?user=me&password=hunter2", "cannot be reached"),
        ("postgresql://me:hunter2@127.0.0.1:1/db?bogus=1", "cannot be reached"),
    ],
)
def test_errors_contain_no_password(url: str, message: str):
    with pytest.raises(CatalogUnavailable) as caught:
        Catalog.open(url)
    assert message in str(caught.value)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value)).replace(url, "")


@pytest.mark.postgres
def test_a_server_that_refuses(postgres_server):
    message = refused(postgres_server.url(password="hunter2"))
    assert "password authentication failed" in message
    assert "hunter2" not in message
    missing = postgres_server.url().replace("/postgres?", "/missing?")
    assert 'database "missing" does not exist' in refused(missing)


@pytest.mark.postgres
def test_a_server_that_accepts_no_writes(postgres_server):
    url = postgres_server.new_url()
    with Catalog.open(url) as catalog:
        catalog.apply(parse_script(SOURCE))
    with Catalog.open(url + "%20-cdefault_transaction_read_only%3Don") as catalog:
        assert "News" in catalog.definitions()
        with pytest.raises(CatalogUnavailable, match="is read-only; name the server"):
            catalog.apply(parse_script("register feed https://a.b/c as C;"))


@pytest.mark.postgres
def test_a_connection_that_was_cut_is_made_again(postgres_server):
    import psycopg

    url = postgres_server.new_url()
    with Catalog.open(url) as catalog:
        with psycopg.connect(postgres_server.url(), autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'headgate'"
            )
        catalog.apply(parse_script(SOURCE))
        assert catalog.version() == 1
