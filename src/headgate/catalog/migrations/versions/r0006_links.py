"""Links under which a feed is read."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "links",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column(
            "tenant", NAME, sa.ForeignKey("tenants.name", ondelete="CASCADE"), nullable=False
        ),
        sa.Column(
            "definition",
            NAME,
            sa.ForeignKey("definitions.name", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("last_used_at", TIME),
    )
    op.create_index("ix_links_tenant", "links", ["tenant", "id"])
