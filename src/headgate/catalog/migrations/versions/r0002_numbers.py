"""A number for each definition, which is never used again, and statistics of sources."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    # SQLite cannot alter a column, and to make `definitions` anew would delete what refers to it:
    # so the columns keep the defaults that they need for the rows that are there.
    op.add_column(
        "definitions", sa.Column("number", sa.Integer, nullable=False, server_default="0")
    )
    op.add_column(
        "state", sa.Column("next_number", sa.BigInteger, nullable=False, server_default="1")
    )
    op.execute(
        "UPDATE definitions SET number = numbered.number FROM (SELECT name, row_number() OVER "
        "(ORDER BY version, name) AS number FROM definitions) AS numbered "
        "WHERE definitions.name = numbered.name"
    )
    op.execute("UPDATE state SET next_number = 1 + (SELECT count(*) FROM definitions)")
    op.create_index("ix_definitions_number", "definitions", ["number"], unique=True)
    op.create_table(
        "statistics",
        sa.Column(
            "source",
            NAME,
            sa.ForeignKey("definitions.name", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("atom", NAME, primary_key=True),
        sa.Column("matched", sa.BigInteger, nullable=False),
        sa.Column("items", sa.BigInteger, nullable=False),
        sa.Column("span_s", sa.Float(53), nullable=False),
        sa.Column("measured_at", sa.DateTime(timezone=True), nullable=False),
    )
