"""The tables of feed readers: what people and programs follow, have read and have starred.

    accounts ◄── reader_passwords   what feed readers on phones sign in with (reader_passwords.py)
    accounts, tokens
        ▲
    readers ◄─── followed_feeds     which definitions, and up to which item they are read
        ▲  ▲                        (following.py)
        │  └──── reading_marks      single items that are read, or kept unread (reading.py)
        └─────── starred_items      copies of items that are starred

All of them go with their account, token or tenant. `upgrade.py` makes them with the others.
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

from headgate.catalog.tables import BigId, NameText, UtcTime, metadata

reader_passwords = Table(
    "reader_passwords",
    metadata,
    Column("id", Text, primary_key=True),
    Column("account", NameText, ForeignKey("accounts.name", ondelete="CASCADE"), nullable=False),
    Column(
        "tenant",
        NameText,
        ForeignKey("tenants.name", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("hash", Text, nullable=False),
    # Fever sends md5('account:password'), or md5('account/tenant:password'); hashes of these.
    Column("fever_hash", Text, nullable=False, unique=True),
    Column("fever_tenant_hash", Text, nullable=False, unique=True),
    Column("created_at", UtcTime, nullable=False),
    Index("ix_reader_passwords_account", "account", "tenant", unique=True),
)

readers = Table(
    "readers",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("tenant", NameText, ForeignKey("tenants.name", ondelete="CASCADE"), nullable=False),
    # One of the two.
    Column("account", NameText, ForeignKey("accounts.name", ondelete="CASCADE"), index=True),
    Column("token", Text, ForeignKey("tokens.id", ondelete="CASCADE"), index=True),
    Column("has_chosen", Boolean, nullable=False),
    Column("next_feed_id", Integer, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Index("ix_readers_account_tenant", "tenant", "account", unique=True),
    Index("ix_readers_token_tenant", "tenant", "token", unique=True),
)

followed_feeds = Table(
    "followed_feeds",
    metadata,
    Column("reader", BigId, ForeignKey("readers.id", ondelete="CASCADE"), primary_key=True),
    Column(
        "definition",
        NameText,
        ForeignKey("definitions.name", ondelete="CASCADE"),
        primary_key=True,
        index=True,
    ),
    Column("feed_id", Integer, nullable=False),
    Column("is_followed", Boolean, nullable=False),
    # Null: as the definition says it.
    Column("label", Text),
    Column("title", Text),
    Column("read_below", BigInteger, nullable=False),
    Index("ix_followed_feeds_id", "reader", "feed_id", unique=True),
)

reading_marks = Table(
    "reading_marks",
    metadata,
    Column("reader", BigId, ForeignKey("readers.id", ondelete="CASCADE"), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("is_read", Boolean, nullable=False),
)

starred_items = Table(
    "starred_items",
    metadata,
    Column("reader", BigId, ForeignKey("readers.id", ondelete="CASCADE"), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    # The ids of the followed feeds that have it, as words.
    Column("feed_ids", Text, nullable=False),
    # Not a foreign key: a star outlives the definition, if its tenant owns that.
    Column("definition", NameText, nullable=False),
    Column("owner", NameText, nullable=False),
    Column("arrived_us", BigInteger, nullable=False),
    Column("size", Integer, nullable=False),
    Column("content", LargeBinary, nullable=False),
)
