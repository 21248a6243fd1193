"""Subscriptions of the WebSub hub, answers by idempotency key, identities of accounts."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "hub_subscriptions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column(
            "link",
            sa.Text,
            sa.ForeignKey("links.id", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("details", sa.LargeBinary, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("next_at", TIME),
        sa.Column("request", sa.LargeBinary),
        sa.Column("request_until", TIME),
        sa.Column("request_at", TIME, index=True),
        sa.Column("request_attempts", sa.Integer, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until", TIME, nullable=False),
    )
    op.create_table(
        "answers",
        sa.Column(
            "tenant", NAME, sa.ForeignKey("tenants.name", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("attempt", sa.Text, nullable=False),
        sa.Column("is_applied", sa.Boolean, nullable=False),
        sa.Column("running_until", TIME),
        sa.Column("answer_bytes", sa.Integer, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("answer", sa.LargeBinary),
    )
    op.create_index("ix_answers_expiry", "answers", ["tenant", "expires_at"])
    op.create_table(
        "identities",
        sa.Column("issuer", sa.Text, primary_key=True),
        sa.Column("subject", sa.Text, primary_key=True),
        sa.Column(
            "account",
            NAME,
            sa.ForeignKey("accounts.name", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("created_at", TIME, nullable=False),
    )
