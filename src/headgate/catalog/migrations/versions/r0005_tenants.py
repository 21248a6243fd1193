"""Tenants with their grants, tokens and audit. What was registered before belongs to the local
tenant."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    tenants = op.create_table(
        "tenants",
        sa.Column("name", NAME, primary_key=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("may_use_machine", sa.Boolean, nullable=False),
    )
    local = {"name": "local", "created_at": sa.func.now(), "may_use_machine": True}
    op.execute(tenants.insert().values(local))
    for table, key in (("definitions", "name"), ("subscriptions", "id")):
        column = sa.Column("tenant", NAME, nullable=False, server_default="local")
        op.add_column(table, column)
        op.create_index(f"ix_{table}_tenant", table, ["tenant", key])
    op.create_table(
        "grants",
        sa.Column(
            "definition",
            NAME,
            sa.ForeignKey("definitions.name", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("tenant", NAME, primary_key=True),
        sa.Column("right", sa.Text, nullable=False),
        sa.Column("granted_at", TIME, nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column(
            "tenant",
            NAME,
            sa.ForeignKey("tenants.name", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("last_used_at", TIME),
    )
    op.create_table(
        "audit",
        sa.Column("id", BIG_ID, primary_key=True),
        sa.Column("at", TIME, nullable=False),
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index("ix_audit_tenant", "audit", ["tenant", "id"])
