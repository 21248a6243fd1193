"""What people read with feed readers: passwords, followed feeds, marks and starred items."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _of(table: str, column: str = "name") -> sa.ForeignKey:
    return sa.ForeignKey(f"{table}.{column}", ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "reader_passwords",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("account", NAME, _of("accounts"), nullable=False),
        sa.Column("tenant", NAME, _of("tenants"), nullable=False, index=True),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("fever_hash", sa.Text, nullable=False, unique=True),
        sa.Column("fever_tenant_hash", sa.Text, nullable=False, unique=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Index("ix_reader_passwords_account", "account", "tenant", unique=True),
    )
    op.create_table(
        "readers",
        sa.Column("id", ID, primary_key=True),
        sa.Column("tenant", NAME, _of("tenants"), nullable=False),
        sa.Column("account", NAME, _of("accounts"), index=True),
        sa.Column("token", sa.Text, _of("tokens", "id"), index=True),
        sa.Column("has_chosen", sa.Boolean, nullable=False),
        sa.Column("next_feed_id", sa.Integer, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Index("ix_readers_account_tenant", "tenant", "account", unique=True),
        sa.Index("ix_readers_token_tenant", "tenant", "token", unique=True),
    )
    op.create_table(
        "followed_feeds",
        sa.Column("reader", ID, _of("readers", "id"), primary_key=True),
        sa.Column("definition", NAME, _of("definitions"), primary_key=True, index=True),
        sa.Column("feed_id", sa.Integer, nullable=False),
        sa.Column("is_followed", sa.Boolean, nullable=False),
        sa.Column("label", sa.Text),
        sa.Column("title", sa.Text),
        sa.Column("read_below", sa.BigInteger, nullable=False),
        sa.Index("ix_followed_feeds_id", "reader", "feed_id", unique=True),
    )
    op.create_table(
        "reading_marks",
        sa.Column("reader", ID, _of("readers", "id"), primary_key=True),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("is_read", sa.Boolean, nullable=False),
    )
    op.create_table(
        "starred_items",
        sa.Column("reader", ID, _of("readers", "id"), primary_key=True),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("feed_ids", sa.Text, nullable=False),
        sa.Column("definition", NAME, nullable=False),
        sa.Column("owner", NAME, nullable=False),
        sa.Column("arrived_us", sa.BigInteger, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
