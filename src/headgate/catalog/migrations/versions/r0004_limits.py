"""What statements cost, feeds that are suspended, and quotas."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    # Feeds that are registered already count as free.
    op.add_column(
        "definitions", sa.Column("cpu_us", sa.Float(53), nullable=False, server_default="0")
    )
    op.create_table(
        "suspensions",
        sa.Column(
            "feed", NAME, sa.ForeignKey("definitions.name", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("suspended_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "quotas",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("resource", sa.Text, primary_key=True),
        sa.Column("limit", sa.BigInteger, nullable=False),
    )
