"""Create the tables of a new catalog, or migrate an old one to the revision of tables.py.

For an up-to-date catalog only the revision is read; Alembic is loaded if there is something to do.
Two processes may open a catalog at once: the first holds the write lock (in PostgreSQL an advisory
lock) until all tables exist, and the second then finds nothing to do.

A database in memory is always new, so it gets the tables without migrations.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from sqlalchemy import Connection, column, func, insert, inspect, select, table

from headgate.catalog import reader_tables, service_tables
from headgate.catalog.database import Database
from headgate.catalog.tables import REVISION, REVISION_TABLE, metadata, state, tenants
from headgate.model.errors import CatalogUnavailable

for _table in (reader_tables.readers, service_tables.answers):
    assert _table.metadata is metadata, "its tables are made, too"
_ADVISORY_LOCK = 0x4845414447415445  # "HEADGATE"
_alembic = Lock()
"""Alembic keeps its state in globals, so only one thread of a process may use it."""


def upgrade(database: Database) -> None:
    if database.in_memory:
        with database.writing() as connection:
            metadata.create_all(connection)
            first = {"id": 1, "version": 0, "next_subscription_id": 1, "next_number": 1}
            connection.execute(insert(state).values(first))
            local = {"name": "local", "created_at": datetime.now(UTC), "may_use_machine": True}
            connection.execute(insert(tenants).values(local))
        return
    with database.reading() as connection:
        if _is_current(connection, database):
            return
    if database.is_sqlite:
        database.use_wal()
    with database.writing() as connection:
        if not database.is_sqlite:
            connection.execute(select(func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
        if not _is_current(connection, database):
            _migrate(connection, database)


def _is_current(connection: Connection, database: Database) -> bool:
    inspector = inspect(connection)
    if inspector.has_table(REVISION_TABLE):
        return _stored_revision(connection) == REVISION
    # Do not add our tables to a file of another program; a PostgreSQL server is often shared.
    present = set(inspector.get_table_names())
    foreign = present if database.is_sqlite else present & metadata.tables.keys()
    if foreign:
        raise CatalogUnavailable(
            f"the catalog {database.name} is a database of something else, "
            f"with a table '{min(foreign)}'; name an empty database"
        )
    return False


def _stored_revision(connection: Connection) -> str | None:
    return connection.scalar(select(column("version_num")).select_from(table(REVISION_TABLE)))


def _migrate(connection: Connection, database: Database) -> None:
    # Late imports: Alembic takes longer to load than most commands take to run.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        with _alembic:
            command.upgrade(config, "head")
    except CommandError:
        raise CatalogUnavailable(
            f"the catalog {database.name} was made by a newer Headgate; upgrade this one"
        ) from None
