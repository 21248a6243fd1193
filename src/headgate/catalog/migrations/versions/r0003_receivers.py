"""Confirmation of mails, rotation of secrets, and which key secrets are made with."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("subscriptions", sa.Column("confirmed_at", MOMENT))
    op.add_column(
        "subscriptions",
        sa.Column("secret_number", sa.Integer, nullable=False, server_default="0"),
    )
    op.add_column("subscriptions", sa.Column("rotated_at", MOMENT))
    op.add_column("state", sa.Column("key_fingerprint", sa.Text))
    # Those that exist were delivered before there was a confirmation, and go on.
    op.execute("UPDATE subscriptions SET confirmed_at = created_at")
    of_mail = sa.text("output_kind = 'mail'")
    op.create_index(
        "ix_subscriptions_address",
        "subscriptions",
        ["target", "id"],
        sqlite_where=of_mail,
        postgresql_where=of_mail,
    )
