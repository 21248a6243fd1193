"""What was dropped, and when."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "past_definitions",
        sa.Column("id", ID, primary_key=True),
        sa.Column("name", NAME, nullable=False, index=True),
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("branches", sa.Integer, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("dropped_at", TIME, nullable=False, index=True),
    )
    op.create_index("ix_past_definitions_tenant", "past_definitions", ["tenant", "id"])
