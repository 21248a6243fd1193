"""Alembic runs this. The connection and its transaction come from `upgrade`."""

from alembic import context

from headgate.catalog.tables import REVISION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=REVISION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
