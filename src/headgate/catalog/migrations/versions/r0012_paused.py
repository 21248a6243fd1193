"""Subscriptions that are paused."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("subscriptions", sa.Column("paused_at", sa.DateTime(timezone=True)))
    is_paused = sa.text("paused_at IS NOT NULL")
    op.create_index(
        "ix_subscriptions_paused",
        "subscriptions",
        ["id"],
        sqlite_where=is_paused,
        postgresql_where=is_paused,
    )
