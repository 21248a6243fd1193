"""The catalog's tables, the same in SQLite and PostgreSQL.

    definitions ◄── uses            which definition uses which: feeds use feeds, sources and
        ▲  ▲                        operators
        │  └─────── advertisements  they are deleted with their source
        └────────── subscriptions   one row each, with the hash of the ticket
    tenants                         who owns definitions and subscriptions (tenants.py)
    grants                          which tenants see definitions of another
    tokens                          what programs authenticate with (principals.py)
    accounts, memberships           people who sign in, and the tenants they act for
    sessions                        hashes of the secrets of browsers and of links to sign in
    past_definitions                what was dropped, and when (past_definitions.py)
    links                           addresses under which a feed is read (feed_links.py)
    audit                           who did what; rows are only added
    suspensions                     feeds that are not evaluated, each with the reason
    quotas                          how much a tenant may have of what
    statistics                      measured rates of sources and selectivities of atoms
    snapshots                       compiled plans, named by the hash of their content
    state                           one row: the version, the next subscription id and number, the
                                    fingerprint of the key of the installation

Writers lock the state row, so they run one after the other. Subscription ids come from it too: a
ticket contains its id, so the id must be known before the row is written, and an id must never be
reused. Each definition has a number for the same reason: plans and the store know feeds by number,
and a feed that is dropped and created again is another feed.

The tables of feed readers are in reader_tables.py, those of the service in service_tables.py.

A change here needs a migration and a new REVISION; a test compares the two.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    text,
)

REVISION = "0012"
"""The revision these tables have. It is compared at opening, without loading the migrations."""

REVISION_TABLE = "headgate_revision"


class UtcTime(TypeDecorator[datetime]):
    """An instant in UTC. SQLite stores no time zone, so what it returns is read as UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        assert value is None or value.tzinfo is not None, "an instant needs a time zone"
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is not None and value.tzinfo is None:
            return value.replace(tzinfo=UTC)
        return value and value.astimezone(UTC)


# Names are ordered by code point everywhere, or a page of names would depend on the database.
NameText = Text().with_variant(Text(collation="C"), "postgresql")
# Only an INTEGER key is SQLite's own row number.
BigId = BigInteger().with_variant(Integer(), "sqlite")

# As a constant of the query too: SQLite uses a partial index only then.
OF_MAIL = text("output_kind = 'mail'")
IS_PAUSED = text("paused_at IS NOT NULL")

metadata = MetaData()

tenants = Table(
    "tenants",
    metadata,
    Column("name", NameText, primary_key=True),
    Column("created_at", UtcTime, nullable=False),
    Column("may_use_machine", Boolean, nullable=False),
)

definitions = Table(
    "definitions",
    metadata,
    Column("name", NameText, primary_key=True),
    Column("number", Integer, nullable=False, server_default="0"),
    Column("kind", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("branches", Integer, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("version", BigInteger, nullable=False),
    # What the statement adds to the CPU time of an item (language/costs.py).
    Column("cpu_us", Float(53), nullable=False, server_default="0"),
    # The prefix of the name, or 'local'; a column of its own for counting and for policies.
    Column("tenant", NameText, nullable=False, server_default="local"),
    Index("ix_definitions_number", "number", unique=True),
    Index("ix_definitions_tenant", "tenant", "name"),
)

past_definitions = Table(
    "past_definitions",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("name", NameText, nullable=False, index=True),
    Column("tenant", NameText, nullable=False),
    Column("kind", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("definition", Text, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("branches", Integer, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("dropped_at", UtcTime, nullable=False, index=True),
    Index("ix_past_definitions_tenant", "tenant", "id"),
)

uses = Table(
    "uses",
    metadata,
    Column(
        "user_name",
        NameText,
        ForeignKey("definitions.name", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("used_name", NameText, ForeignKey("definitions.name"), primary_key=True, index=True),
)

advertisements = Table(
    "advertisements",
    metadata,
    Column("id", Integer, primary_key=True),
    Column(
        "source",
        NameText,
        ForeignKey("definitions.name", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("definition", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("version", BigInteger, nullable=False),
)

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=False),
    Column("feed", NameText, ForeignKey("definitions.name"), nullable=False),
    Column("definition", Text, nullable=False),
    Column("output_kind", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("stylesheet", Text),
    Column("period_s", BigInteger),
    Column("site", Text),
    Column("ticket_hash", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False, index=True),
    Column("version", BigInteger, nullable=False),
    # Since when items are delivered. Null: the reader of a mail has not confirmed it yet.
    Column("confirmed_at", UtcTime),
    # Which secret of a webhook is valid, and since when (model/receiver_secrets.py).
    Column("secret_number", Integer, nullable=False, server_default="0"),
    Column("rotated_at", UtcTime),
    Column("tenant", NameText, nullable=False, server_default="local"),
    # Since when nothing is sent. Null: it is not paused.
    Column("paused_at", UtcTime),
    Index("ix_subscriptions_tenant", "tenant", "id"),
    # The id is in it for listing one feed's subscriptions page by page.
    Index("ix_subscriptions_feed", "feed", "id"),
    Index(
        "ix_subscriptions_address",
        "target",
        "id",
        sqlite_where=OF_MAIL,
        postgresql_where=OF_MAIL,
    ),
    Index("ix_subscriptions_paused", "id", sqlite_where=IS_PAUSED, postgresql_where=IS_PAUSED),
)

grants = Table(
    "grants",
    metadata,
    Column(
        "definition", NameText, ForeignKey("definitions.name", ondelete="CASCADE"), primary_key=True
    ),
    # A tenant, or '*' for all.
    Column("tenant", NameText, primary_key=True),
    Column("right", Text, nullable=False),
    Column("granted_at", UtcTime, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column(
        "tenant",
        NameText,
        ForeignKey("tenants.name", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("hash", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime),
    Column("last_used_at", UtcTime),
)

accounts = Table(
    "accounts",
    metadata,
    Column("name", NameText, primary_key=True),
    Column("password_hash", Text),
    Column("created_at", UtcTime, nullable=False),
    Column("last_sign_in_at", UtcTime),
)

memberships = Table(
    "memberships",
    metadata,
    Column("account", NameText, ForeignKey("accounts.name", ondelete="CASCADE"), primary_key=True),
    Column("tenant", NameText, ForeignKey("tenants.name", ondelete="CASCADE"), primary_key=True),
    Column("scopes", Text, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("hash", Text, primary_key=True),
    Column(
        "account",
        NameText,
        ForeignKey("accounts.name", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    # 'session', or 'link' for one that begins a session.
    Column("purpose", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False, index=True),
)

links = Table(
    "links",
    metadata,
    Column("id", Text, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("tenant", NameText, ForeignKey("tenants.name", ondelete="CASCADE"), nullable=False),
    Column(
        "definition",
        NameText,
        ForeignKey("definitions.name", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("comment", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("last_used_at", UtcTime),
    Index("ix_links_tenant", "tenant", "id"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("at", UtcTime, nullable=False),
    Column("tenant", NameText, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Index("ix_audit_tenant", "tenant", "id"),
)

suspensions = Table(
    "suspensions",
    metadata,
    Column("feed", NameText, ForeignKey("definitions.name", ondelete="CASCADE"), primary_key=True),
    Column("reason", Text, nullable=False),
    Column("suspended_at", UtcTime, nullable=False),
)

quotas = Table(
    "quotas",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("resource", Text, primary_key=True),
    Column("limit", BigInteger, nullable=False),
)

statistics = Table(
    "statistics",
    metadata,
    Column(
        "source", NameText, ForeignKey("definitions.name", ondelete="CASCADE"), primary_key=True
    ),
    # As it is written in a filter; empty for the source itself.
    Column("atom", NameText, primary_key=True),
    Column("matched", BigInteger, nullable=False),
    Column("items", BigInteger, nullable=False),
    Column("span_s", Float(53), nullable=False),
    Column("measured_at", UtcTime, nullable=False),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("catalog_version", BigInteger, nullable=False, index=True),
    Column("path", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
)

state = Table(
    "state",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1", name="one_row"), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("next_subscription_id", BigInteger, nullable=False),
    Column("next_number", BigInteger, nullable=False, server_default="1"),
    Column("key_fingerprint", Text),
)
