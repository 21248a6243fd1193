"""New catalogs are made, current ones are left alone, foreign and newer ones are refused."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from headgate.catalog import upgrade as upgrade_module
from headgate.catalog.catalog import Catalog
from headgate.catalog.database import Database
from headgate.catalog.tables import REVISION, REVISION_TABLE, metadata
from headgate.catalog.upgrade import upgrade
from headgate.model.errors import CatalogUnavailable

pytestmark = pytest.mark.integration

OPEN = """
import sys
from headgate.catalog.database import Database
from headgate.catalog.upgrade import upgrade
sys.stdout.write("ready\\n"); sys.stdout.flush()
sys.stdin.readline()
database = Database(sys.argv[1], lock_timeout_s=30)
upgrade(database)
database.close()
sys.stdout.write("with alembic" if "alembic" in sys.modules else "without alembic")
"""


@pytest.fixture
def database(catalog_url: str):
    database = Database(catalog_url, lock_timeout_s=30)
    upgrade(database)
    yield database
    database.close()


def test_a_catalog_in_memory_is_made_without_alembic():
    done = subprocess.run(
        [sys.executable, "-c", OPEN, "sqlite://"],
        input="go\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("without alembic")


def test_migrations_make_the_tables_that_the_code_uses(database: Database):
    with database.reading() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "version_table": REVISION_TABLE}
        )
        assert compare_metadata(context, metadata) == []


def test_the_last_migration_is_the_revision_of_the_tables():
    folder = Path(upgrade_module.__file__).parent / "migrations"
    assert ScriptDirectory(str(folder)).get_heads() == [REVISION]


def test_threads_may_make_catalogs_at_once(tmp_path: Path):
    def make(number: int) -> None:
        database = Database(str(tmp_path / f"{number % 4}.db"), lock_timeout_s=30)
        upgrade(database)
        database.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(make, range(8)))


def test_sqlite_never_loses_what_it_has_acknowledged(tmp_path: Path):
    database = Database(str(tmp_path / "c.db"), lock_timeout_s=30)
    upgrade(database)
    with database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    database.close()


def test_many_processes_may_make_one_catalog(catalog_url: str):
    command = [sys.executable, "-c", OPEN, catalog_url]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True))
            for _ in range(4)
        ]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0
            assert output.endswith("alembic")


def _catalog_of_revision(url: str, revision: str) -> Database:
    """A database as an older Headgate has left it."""
    database = Database(url, lock_timeout_s=30)
    if database.is_sqlite:
        database.use_wal()
    config = Config()
    config.set_main_option(
        "script_location", str(Path(upgrade_module.__file__).parent / "migrations")
    )
    with database.writing() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    return database


def test_a_catalog_of_the_first_revision_is_migrated(catalog_url: str):
    instant = (
        "'2026-11-01 00:00:00+00:00'" if "postgres" in catalog_url else "'2026-11-01 00:00:00'"
    )
    database = _catalog_of_revision(catalog_url, "0001")
    with database.writing() as connection:
        for name, definition, version in (
            ("B", "register feed http://b.example/ as B;", 1),
            ("A", "register feed http://a.example/ as A;", 2),
            ("Both", "create feed Both from (A | B);", 2),
        ):
            kind = "feed" if name == "Both" else "rss"
            connection.exec_driver_sql(
                "INSERT INTO definitions (name, kind, definition, depth, branches, created_at, "
                f"version) VALUES ('{name}', '{kind}', '{definition}', 0, 1, {instant}, {version})"
            )
        connection.exec_driver_sql("INSERT INTO uses VALUES ('Both', 'A'), ('Both', 'B')")
        connection.exec_driver_sql("UPDATE state SET version = 2")
    upgrade(database)
    with database.reading() as connection:
        numbered = connection.exec_driver_sql("SELECT name, number FROM definitions ORDER BY 2")
        assert [tuple(row) for row in numbered] == [("B", 1), ("A", 2), ("Both", 3)]
        assert connection.exec_driver_sql("SELECT count(*) FROM uses").scalar() == 2
        assert connection.exec_driver_sql("SELECT next_number FROM state").scalar() == 4
    database.close()


def test_subscriptions_of_the_second_revision_go_on(catalog_url: str):
    instant = (
        "'2026-11-01 00:00:00+00:00'" if "postgres" in catalog_url else "'2026-11-01 00:00:00'"
    )
    database = _catalog_of_revision(catalog_url, "0002")
    with database.writing() as connection:
        connection.exec_driver_sql(
            "INSERT INTO definitions (name, number, kind, definition, depth, branches, created_at, "
            f"version) VALUES ('B', 1, 'rss', 'register …', 0, 1, {instant}, 1)"
        )
        for id_, kind in ((1, "mail"), (2, "webhook")):
            connection.exec_driver_sql(
                "INSERT INTO subscriptions (id, feed, definition, output_kind, target, "
                "ticket_hash, created_at, expires_at, version) VALUES "
                f"({id_}, 'B', '…', '{kind}', 'x', 'h', {instant}, {instant}, 1)"
            )
    upgrade(database)
    database.close()
    with Catalog.open(catalog_url) as catalog:
        states = catalog.subscription_states([1, 2])
        made_at = datetime(2026, 11, 1, tzinfo=UTC)
        assert [each.confirmed_at for each in states.values()] == [made_at, made_at]
        # Number 0 is the secret that they have always had.
        assert [each.secret_number for each in states.values()] == [0, 0]


@pytest.mark.usefixtures("database")
def test_a_current_catalog_is_opened_without_alembic(catalog_url: str):
    done = subprocess.run(
        [sys.executable, "-c", OPEN, catalog_url],
        input="go\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("without alembic")


def test_a_newer_catalog_is_refused(database: Database):
    with database.writing() as connection:
        connection.execute(text(f"UPDATE {REVISION_TABLE} SET version_num = '9999'"))
    with pytest.raises(CatalogUnavailable, match="was made by a newer Headgate; upgrade this one"):
        upgrade(database)


def test_the_database_of_another_program_is_left_alone(tmp_path: Path):
    path = tmp_path / "places.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = path.read_bytes()
    database = Database(str(path), lock_timeout_s=1)
    with pytest.raises(CatalogUnavailable, match="something else, with a table 'bookmarks'"):
        upgrade(database)
    database.close()
    assert path.read_bytes() == before


@pytest.mark.postgres
def test_a_shared_server_may_hold_other_tables_but_not_ours(postgres_server):
    database = Database(postgres_server.new_url(), lock_timeout_s=5)
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE bookmarks (url TEXT)"))
    upgrade(database)
    database.close()

    database = Database(postgres_server.new_url(), lock_timeout_s=5)
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE state (id int)"))
    with pytest.raises(CatalogUnavailable, match="something else, with a table 'state'"):
        upgrade(database)
    database.close()
