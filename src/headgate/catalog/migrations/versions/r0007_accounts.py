"""Accounts of people, their memberships of tenants, and their sessions."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("name", NAME, primary_key=True),
        sa.Column("password_hash", sa.Text),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("last_sign_in_at", TIME),
    )
    op.create_table(
        "memberships",
        sa.Column(
            "account", NAME, sa.ForeignKey("accounts.name", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column(
            "tenant", NAME, sa.ForeignKey("tenants.name", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("scopes", sa.Text, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("hash", sa.Text, primary_key=True),
        sa.Column(
            "account",
            NAME,
            sa.ForeignKey("accounts.name", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False, index=True),
    )
