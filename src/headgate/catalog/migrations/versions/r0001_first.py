"""The first tables. They are written out, since tables.py shows the last revision only."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    _create_definitions()
    _create_subscriptions()
    op.create_table(
        "snapshots",
        sa.Column("hash", sa.Text, primary_key=True),
        sa.Column("catalog_version", sa.BigInteger, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
    )
    op.create_index("ix_snapshots_catalog_version", "snapshots", ["catalog_version"])
    state = op.create_table(
        "state",
        sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1", name="one_row"), primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("next_subscription_id", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(state, [{"id": 1, "version": 0, "next_subscription_id": 1}])


def _create_definitions() -> None:
    op.create_table(
        "definitions",
        sa.Column("name", NAME, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("branches", sa.Integer, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "uses",
        sa.Column("user_name", NAME, _name_key(ondelete="CASCADE"), primary_key=True),
        sa.Column("used_name", NAME, _name_key(), primary_key=True),
    )
    op.create_index("ix_uses_used_name", "uses", ["used_name"])
    op.create_table(
        "advertisements",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("source", NAME, _name_key(ondelete="CASCADE"), nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_advertisements_source", "advertisements", ["source"])


def _create_subscriptions() -> None:
    op.create_table(
        "subscriptions",
        sa.Column("id", BIG_ID, primary_key=True, autoincrement=False),
        sa.Column("feed", NAME, _name_key(), nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("output_kind", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("stylesheet", sa.Text),
        sa.Column("period_s", sa.BigInteger),
        sa.Column("site", sa.Text),
        sa.Column("ticket_hash", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_subscriptions_feed", "subscriptions", ["feed", "id"])
    op.create_index("ix_subscriptions_expires_at", "subscriptions", ["expires_at"])


def _name_key(*, ondelete: str | None = None) -> sa.ForeignKey:
    return sa.ForeignKey("definitions.name", ondelete=ondelete)
