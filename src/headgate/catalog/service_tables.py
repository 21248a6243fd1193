"""The tables of the service: what it owes to callbacks and to clients that ask again.

    links ◄──── hub_subscriptions   who is sent new documents of a link (hub_subscriptions.py)
    tenants ◄── answers             what was answered under an idempotency key (kept_answers.py)
    accounts ◄─ identities          who they are for an OpenID provider (identities.py)
    leases                          which process does what only one may do

`upgrade.py` makes them with the others.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from headgate.catalog.tables import NameText, UtcTime, metadata

hub_subscriptions = Table(
    "hub_subscriptions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("link", Text, ForeignKey("links.id", ondelete="CASCADE"), nullable=False, index=True),
    # Sealed: topic, callback, secret.
    Column("details", LargeBinary, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    # Null: its callback has not confirmed it yet.
    Column("expires_at", UtcTime),
    # What lies below it was taken by the callback.
    Column("position", BigInteger, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("next_at", UtcTime),
    # Sealed: what the callback has to confirm; null: nothing.
    Column("request", LargeBinary),
    Column("request_until", UtcTime),
    Column("request_at", UtcTime, index=True),
    Column("request_attempts", Integer, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until", UtcTime, nullable=False),
)

answers = Table(
    "answers",
    metadata,
    Column("tenant", NameText, ForeignKey("tenants.name", ondelete="CASCADE"), primary_key=True),
    # The hash of who acts, and of the key that was given.
    Column("key", Text, primary_key=True),
    # The hash of the request.
    Column("request", Text, nullable=False),
    Column("attempt", Text, nullable=False),
    # Whether the request has changed something.
    Column("is_applied", Boolean, nullable=False),
    # Null: it has been answered.
    Column("running_until", UtcTime),
    Column("answer_bytes", Integer, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    # Sealed; null: there is none yet, or it is too large to be kept. The last: SQLite reads what is
    # before a column.
    Column("answer", LargeBinary),
    Index("ix_answers_expiry", "tenant", "expires_at"),
)

identities = Table(
    "identities",
    metadata,
    Column("issuer", Text, primary_key=True),
    Column("subject", Text, primary_key=True),
    Column(
        "account",
        NameText,
        ForeignKey("accounts.name", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("created_at", UtcTime, nullable=False),
)
