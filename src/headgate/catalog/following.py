"""The feeds that somebody follows in a feed reader.

A *reader* is an account in a tenant, or an API token: a program has no account, so its state is
kept under the token and goes with it.

    has never chosen   follows the first FIRST_FEEDS definitions that the tenant sees, by name, also
                       those that are made later
    has chosen         follows what it chose; the first choice makes the list before it its own

A tenant may have 100,000 feeds, which no reader on a phone can show; so there is a limit.

Each followed feed has an id, a small number of this reader, which is a part of the ids of items
(service/reader_ids.py). A feed that is not followed any more keeps its row: its watermark says what
was read (reading.py), and its id is the same if it is followed again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Select, insert, select, update
from sqlalchemy.exc import IntegrityError

from headgate.catalog import reader_tables, tables
from headgate.catalog.audit import RecordedCalls
from headgate.catalog.database import Database
from headgate.catalog.definitions import SOURCE_KINDS, DefinitionKind
from headgate.catalog.principals import Principal, Scope
from headgate.catalog.tenants import Right, TenantView, right_granted_to, seen_by
from headgate.catalog.transaction import Clock, Transaction
from headgate.model.errors import InvalidValue, NotAllowed, QuotaExceeded, UnknownName

FIRST_FEEDS = 500
FEEDS_MAX = 8_191
"""Ids of feeds have 13 bits."""
LABEL_LENGTH_MAX = 200
_readers, _followed = reader_tables.readers.c, reader_tables.followed_feeds.c
_definitions = tables.definitions.c


@dataclass(frozen=True, slots=True)
class ReaderRow:
    id: int
    has_chosen: bool
    next_feed_id: int


@dataclass(frozen=True, slots=True)
class FollowedFeed:
    """A definition that a reader follows, or has followed."""

    feed_id: int
    """By which readers know it; it is not reused soon."""
    name: str
    """As the tenant calls it."""
    kept: str
    number: int
    kind: DefinitionKind
    definition: str
    """Empty if the tenant may only read it."""
    is_followed: bool
    label: str | None
    """None: as the definition says it; empty: none."""
    title: str | None
    read_below: int
    """Items of this feed below this position are read, unless a mark says otherwise."""

    @property
    def log_key(self) -> int | str:
        """Its key in the log, as `store.tail.key_of` has it."""
        return self.kept if self.kind in SOURCE_KINDS else self.number


class FollowingCalls(RecordedCalls):
    """The part of a catalog that is about the feeds that its principal follows. That needs the
    scope `read`: nobody else sees it."""

    _database: Database
    _clock: Clock

    def reader_id(self) -> int:
        """The number of the reader; it is made when it is first needed."""
        self.principal.require(Scope.READ)
        with self._database.reading() as connection:
            row = find_reader(connection, self.principal)
        if row is not None:
            return int(row.id)
        with self._database.writing() as connection:
            return int(self._locked_reader(connection).id)

    def followed_feeds(self) -> list[FollowedFeed]:
        """All that have a row, by id, also those that are not followed any more; without those that
        the tenant does not see."""
        self.principal.require(Scope.READ)
        with self._database.reading() as connection:
            reader = find_reader(connection, self.principal)
            if reader is not None:
                feeds = _feeds(connection, reader.id, self._tenant)
                if reader.has_chosen or not _unseen(connection, self._tenant, feeds):
                    return feeds
        with self._database.writing() as connection:
            reader = self._locked_reader(connection)
            self._follow_first(connection, reader)
            return _feeds(connection, reader.id, self._tenant)

    def follow(
        self, name: str, *, label: str | None = None, title: str | None = None
    ) -> FollowedFeed:
        """Follow a feed or source; what is not None is set, also if it is followed already."""
        self.principal.require(Scope.READ)
        given = {"label": label, "title": title}
        changed = {key: _line(value) for key, value in given.items() if value is not None}
        with self._database.writing() as connection:
            reader = self._chosen(connection)
            kept = self._kept(name)
            if not connection.scalar(_visible(self._tenant).where(_definitions.name == kept)):
                raise UnknownName(f"there is no source or feed '{name[:250]}'")
            known = {each.kept for each in _feeds(connection, reader.id, self._tenant)}
            if kept not in known:
                self._add(connection, reader.id, [kept])
            own = update(reader_tables.followed_feeds).where(
                _followed.reader == reader.id, _followed.definition == kept
            )
            connection.execute(own.values(is_followed=True, **changed))
            feeds = _feeds(connection, reader.id, self._tenant)
            return next(each for each in feeds if each.kept == kept)

    def follow_all(self, names: Collection[str]) -> None:
        """Follow many; those that the tenant does not see are left out."""
        self.principal.require(Scope.READ)
        with self._database.writing() as connection:
            reader = self._chosen(connection)
            wanted = {self._kept(each) for each in names}
            seen = [each for each in connection.scalars(_visible(self._tenant)) if each in wanted]
            rows = {each.kept: each for each in _feeds(connection, reader.id, self._tenant)}
            self._add(connection, reader.id, [each for each in seen if each not in rows])
            for kept in seen:
                if kept in rows and not rows[kept].is_followed:
                    own = (_followed.reader == reader.id, _followed.definition == kept)
                    again = update(reader_tables.followed_feeds).where(*own)
                    connection.execute(again.values(is_followed=True))

    def unfollow(self, name: str) -> None:
        self.principal.require(Scope.READ)
        with self._database.writing() as connection:
            reader = self._chosen(connection)
            kept = self._kept(name)
            own = update(reader_tables.followed_feeds).where(
                _followed.reader == reader.id,
                _followed.definition == kept,
                _followed.is_followed.is_(True),
            )
            if not connection.execute(own.values(is_followed=False)).rowcount:
                raise UnknownName(f"'{name[:250]}' is not followed")

    def _kept(self, name: str) -> str:
        """The name by which it is kept, if anything is named so."""
        return TenantView(self._tenant).kept(storable(name))

    def _locked_reader(self, connection: Connection) -> ReaderRow:
        """The row of the reader, which other writers wait for."""
        row = find_reader(connection, self.principal, is_locked=True)
        if row is not None:
            return row
        now = Transaction(connection, clock=self._clock).now
        row = find_reader(connection, self.principal, is_locked=True)
        if row is None:
            new = {"has_chosen": False, "next_feed_id": 1, "created_at": now}
            who = {"tenant": self._tenant, **_columns_of(self.principal)}
            try:
                connection.execute(insert(reader_tables.readers).values(**new, **who))
            except IntegrityError:
                raise NotAllowed(f"{self.principal.actor} does not exist any more") from None
            row = find_reader(connection, self.principal)
        assert row is not None, "it was inserted"
        return row

    def _chosen(self, connection: Connection) -> ReaderRow:
        """The reader, whose list of feeds is its own from now on."""
        reader = self._locked_reader(connection)
        if not reader.has_chosen:
            self._follow_first(connection, reader)
            own = update(reader_tables.readers).where(_readers.id == reader.id)
            connection.execute(own.values(has_chosen=True))
        return reader

    def _follow_first(self, connection: Connection, reader: ReaderRow) -> None:
        feeds = _feeds(connection, reader.id, self._tenant)
        self._add(connection, reader.id, _unseen(connection, self._tenant, feeds))

    def _add(self, connection: Connection, reader: int, names: Sequence[str]) -> None:
        """Rows for definitions that have none, each with the next id."""
        if not names:
            return
        own = _followed.reader == reader
        hidden = connection.scalars(
            select(_followed.definition).where(own, _followed.definition.in_(names))
        )
        new = sorted(set(names) - set(hidden))  # a grant may have been taken back, and given again
        first = connection.scalar(select(_readers.next_feed_id).where(_readers.id == reader)) or 1
        ids: Iterable[int] = range(first, first + len(new))
        if first + len(new) > FEEDS_MAX + 1:
            used = set(connection.scalars(select(_followed.feed_id).where(own)))
            ids = [each for each in range(1, FEEDS_MAX + 1) if each not in used]
            if len(ids) < len(new):
                raise QuotaExceeded(
                    f"a reader has at most {FEEDS_MAX:,} feeds, with those that it has unfollowed"
                )
        rows = [
            {
                "reader": reader,
                "definition": name,
                "feed_id": id_,
                "is_followed": True,
                "read_below": 0,
            }
            for name, id_ in zip(new, ids, strict=False)
        ]
        if rows:
            connection.execute(insert(reader_tables.followed_feeds), rows)
            after = min(first + len(new), FEEDS_MAX + 1)
            chosen = update(reader_tables.readers).where(_readers.id == reader)
            connection.execute(chosen.values(next_feed_id=after))


def storable(text: str) -> str:
    """A text to look for: PostgreSQL has none with a zero, and no database one with surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def reader_name(principal: Principal) -> tuple[str, str]:
    """Whose state it is: `account` or `token`, and which."""
    kind, _, name = principal.actor.partition(" ")
    if kind not in ("account", "token") or not name:
        raise NotAllowed(f"{principal.actor} reads nothing: sign in, or use an API token")
    return kind, name


def _columns_of(principal: Principal) -> dict[str, str]:
    kind, name = reader_name(principal)
    return {kind: name}


def find_reader(
    connection: Connection, principal: Principal, *, is_locked: bool = False
) -> ReaderRow | None:
    kind, name = reader_name(principal)
    query = select(_readers.id, _readers.has_chosen, _readers.next_feed_id).where(
        _readers.tenant == principal.tenant, _readers[kind] == name
    )
    row = connection.execute(query.with_for_update() if is_locked else query).one_or_none()
    return None if row is None else ReaderRow(*row)


def _visible(tenant: str) -> Select[str]:
    """The definitions with items that a tenant sees."""
    is_operator = _definitions.kind == DefinitionKind.OPERATOR.value
    return select(_definitions.name).where(seen_by(tenant), ~is_operator)


def _unseen(connection: Connection, tenant: str, feeds: Sequence[FollowedFeed]) -> list[str]:
    """What a reader who has not chosen follows besides these feeds."""
    room = FIRST_FEEDS - len(feeds)
    if room <= 0:
        return []
    first = connection.scalars(_visible(tenant).order_by(_definitions.name).limit(FIRST_FEEDS))
    known = {each.kept for each in feeds}
    return [name for name in first if name not in known][:room]


def _feeds(connection: Connection, reader: int, tenant: str) -> list[FollowedFeed]:
    query = (
        select(
            _followed.feed_id,
            _definitions.name,
            _definitions.number,
            _definitions.kind,
            _definitions.definition,
            _followed.is_followed,
            _followed.label,
            _followed.title,
            _followed.read_below,
            right_granted_to(tenant).label("granted"),
        )
        .join(tables.definitions, _definitions.name == _followed.definition)
        .where(_followed.reader == reader, seen_by(tenant))
        .order_by(_followed.feed_id)
    )
    view = TenantView(tenant)
    return [
        FollowedFeed(
            feed_id=row.feed_id,
            name=view.shown(row.name),
            kept=row.name,
            number=row.number,
            kind=DefinitionKind(row.kind),
            definition=row.definition if view.owns(row.name) or row.granted == Right.USE else "",
            is_followed=row.is_followed,
            label=row.label,
            title=row.title,
            read_below=row.read_below,
        )
        for row in connection.execute(query)
    ]


def _line(text: str) -> str:
    """A label or title as it is kept: one line without what cannot be shown."""
    shown = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    if len(shown) > LABEL_LENGTH_MAX:
        raise InvalidValue(f"a label or title has at most {LABEL_LENGTH_MAX} characters")
    return shown
