"""Row-level security in PostgreSQL: a second wall between tenants, behind that of `TenantView`.

A transaction for a tenant sets `headgate.tenant` (database.py), and PostgreSQL adds a condition to
every query in it. A transaction of the whole catalog sets nothing, and is not restricted.

    tables                               a tenant reads           and writes
    tokens, links, audit, quotas,        its own rows             its own rows
    answers, and all of feed readers
    subscriptions                        its own, and those to    its own; those to its feeds can be
                                         feeds of its own         deleted with the feed
    grants                               to it, and of its own    of its own definitions
                                         definitions
    definitions, past_definitions,       all                      its own
    uses, suspensions, advertisements
    accounts, memberships, sessions,     none                     none
    identities, hub_subscriptions, leases

Definitions of others can be read, because what was granted may be built on what was not: which of
them a tenant *sees* is for the view to say. SQLite has no such thing; there the view is the only
wall. PostgreSQL does not restrict superusers, and roles with BYPASSRLS: let the catalog belong to
an ordinary role.

The policies are a migration, so a change here needs another one.
"""

from __future__ import annotations

from collections.abc import Iterator

SETTING = "headgate.tenant"
_TENANT = f"coalesce(current_setting('{SETTING}', true), '')"
_WHOLE = f"{_TENANT} = ''"


def _own(column: str) -> str:
    return f"{_WHOLE} OR {column} = {_TENANT}"


def _of_own_definition(column: str) -> str:
    """`column` is qualified by its table: definitions have a column `definition`, too."""
    own = f"SELECT 1 FROM definitions d WHERE d.name = {column} AND d.tenant = {_TENANT}"
    return f"{_WHOLE} OR EXISTS ({own})"


_OWN = {
    **dict.fromkeys(("tokens", "links", "audit", "answers"), "tenant"),
    **dict.fromkeys(("readers", "reader_passwords"), "tenant"),
    "quotas": "owner",
}
_OF_OWN_READER = ("followed_feeds", "reading_marks", "starred_items")
_READ_BY_ALL = {
    "definitions": _own("tenant"),
    "past_definitions": _own("tenant"),
    "uses": _of_own_definition("uses.user_name"),
    "suspensions": _of_own_definition("suspensions.feed"),
    "advertisements": _of_own_definition("advertisements.source"),
}
_OF_NO_TENANT = (
    *("accounts", "memberships", "sessions", "identities"),
    *("hub_subscriptions", "leases"),
)


def policies() -> Iterator[str]:
    """The statements that put the wall up."""
    for table, column in _OWN.items():
        yield from _wall(table, read=_own(column), write=_own(column))
    to_own = f"{_own('tenant')} OR {_of_own_definition('subscriptions.feed')}"
    yield from _wall("subscriptions", read=to_own, write=_own("tenant"))
    of_own = _of_own_definition("grants.definition")
    seen = f"tenant IN ({_TENANT}, '*') OR {of_own}"
    yield from _wall("grants", read=seen, write=of_own)
    for table, write in _READ_BY_ALL.items():
        yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
        yield f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
        yield f"CREATE POLICY readers ON {table} FOR SELECT USING (true)"
        yield f"CREATE POLICY adders ON {table} FOR INSERT WITH CHECK ({write})"
        yield f"CREATE POLICY changers ON {table} FOR UPDATE USING ({write}) WITH CHECK ({write})"
        yield f"CREATE POLICY removers ON {table} FOR DELETE USING ({write})"
    for table in _OF_OWN_READER:
        own = f"SELECT 1 FROM readers r WHERE r.id = {table}.reader AND r.tenant = {_TENANT}"
        of_own = f"{_WHOLE} OR EXISTS ({own})"
        yield from _wall(table, read=of_own, write=of_own)
    for table in _OF_NO_TENANT:
        yield from _wall(table, read=_WHOLE, write=_WHOLE)


def _wall(table: str, *, read: str, write: str) -> Iterator[str]:
    yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
    # The role of the catalog owns its tables, and would not be restricted otherwise.
    yield f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
    yield f"CREATE POLICY tenants ON {table} USING ({read}) WITH CHECK ({write})"
