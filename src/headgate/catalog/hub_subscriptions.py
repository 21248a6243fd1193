"""Subscriptions of the WebSub hub: callbacks that are sent the documents behind links.

                     subscribe                    confirmed
    (nothing) ─────────────────► unconfirmed ─────────────────► active ──┐ subscribe, confirmed:
        ▲                             │                          │  ▲    │ new lease and secret,
        │ refused, or no answer       │      unsubscribe,        │  └────┘ same position
        └─────────────────────────────┘      confirmed; 410; lease over; link revoked
        └────────────────────────────────────────────────────────┘

A *request* changes nothing until the callback has confirmed it (service/hub.py says how), so an
active subscription has a request beside it while it is renewed or ended. A later request replaces
an earlier one.

An id is the hash of topic and callback. Topic, callback and secret are sealed: the topic has the
token of a link in it, and a callback is often as good as a password. A subscription goes with its
link.

`position` is the cursor: what lies below it was taken by the callback. It moves forward only, after
the callback has taken a document, so a crash in between sends it once more and loses nothing.

One process at a time confirms and sends. It holds the *lease*, which others take over when it ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from headgate.catalog import service_tables, tables
from headgate.catalog.database import Database
from headgate.catalog.definitions import SOURCE_KINDS, DefinitionKind
from headgate.catalog.principals import hash_of
from headgate.catalog.sealed import Sealer
from headgate.catalog.transaction import Clock, Transaction
from headgate.model.errors import QuotaExceeded, SealBroken, UnknownName

LINK_MAX, TENANT_MAX, TOTAL_MAX = 100, 1_000, 10_000
"""How many subscriptions a link, a tenant and all of them have, unconfirmed ones included."""
REQUEST_VALIDITY = timedelta(minutes=5)
"""A request that was not confirmed within this time is forgotten."""
_TABLE, _LEASE = "hub_subscriptions", "hub"
_rows, _leases, _links = service_tables.hub_subscriptions.c, service_tables.leases.c, tables.links.c
_definitions = tables.definitions.c
_WITH_FEED = (
    select(
        service_tables.hub_subscriptions, _definitions.name, _definitions.number, _definitions.kind
    )
    .join(tables.links, _links.id == _rows.link)
    .join(tables.definitions, _definitions.name == _links.definition)
)


class HubMode(StrEnum):
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"


@dataclass(frozen=True, slots=True)
class HubRequest:
    """What somebody has asked the hub for."""

    mode: HubMode
    link_id: str
    topic: str = field(repr=False)
    callback: str = field(repr=False)
    secret: str = field(default="", repr=False)
    """Empty: what is sent is not signed."""
    lease_s: int = 0

    @property
    def id(self) -> str:
        return hash_of(f"{self.topic}\n{self.callback}")


@dataclass(frozen=True, slots=True)
class UnconfirmedRequest:
    """A request that the callback has to confirm."""

    request: HubRequest
    attempts: int
    sealed: bytes = field(repr=False)
    """As its row has it: another request looks different."""


@dataclass(frozen=True, slots=True)
class HubSubscription:
    """An active one."""

    id: str
    topic: str = field(repr=False)
    callback: str = field(repr=False)
    secret: str = field(repr=False)
    expires_at: datetime
    position: int
    failures: int
    next_at: datetime | None
    log_key: int | str
    """The number of the feed, or the kept name of the source."""


class HubSubscriptions:
    """Thread-safe, as the catalog is."""

    def __init__(self, database: Database, clock: Clock, key: Callable[[], bytes]) -> None:
        self._database, self._clock, self._key = database, clock, key

    @cached_property
    def _sealer(self) -> Sealer:
        return Sealer(self._key(), "hub subscriptions")

    def now(self) -> datetime:
        return self._clock()

    # --- requests ---------------------------------------------------------------------------------

    def request(self, new: HubRequest) -> bool:
        """Keep a request until it is confirmed; whether there is anything to confirm. To end what
        does not exist needs no call."""
        details, request = self._sealed_details(new), self._sealed_request(new)
        with self._database.writing() as connection:
            now = Transaction(connection, clock=self._clock).now
            values = {
                "request": request,
                "request_until": now + REQUEST_VALIDITY,
                "request_at": now,
                "request_attempts": 0,
            }
            own = update(service_tables.hub_subscriptions).where(_rows.id == new.id).values(values)
            if connection.execute(own).rowcount:
                return True
            if new.mode is HubMode.UNSUBSCRIBE:
                return False
            _check_room(connection, new.link_id)
            row = {"id": new.id, "link": new.link_id, "details": details, "created_at": now}
            fresh = {**row, **values, "position": 0, "failures": 0}
            connection.execute(insert(service_tables.hub_subscriptions).values(fresh))
            return True

    def due_requests(self, limit: int) -> list[UnconfirmedRequest]:
        """Requests whose callback may be asked now, those that have waited longest first."""
        now = self._clock()
        query = (
            select(service_tables.hub_subscriptions)
            .where(_rows.request_at <= now, _rows.request_until > now)
            .order_by(_rows.request_at, _rows.id)
            .limit(limit)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        found = [self._opened_request(each) for each in rows]
        return [each for each in found if each is not None]

    def confirm(self, asked: UnconfirmedRequest, position: int) -> HubSubscription | None:
        """Do what was confirmed. A subscription that was not active begins at this position. None:
        there is no subscription now, or another request has come meanwhile."""
        request, now = asked.request, self._clock()
        with self._database.writing() as connection:
            where = (_rows.id == request.id, _rows.request == asked.sealed)
            if request.mode is HubMode.UNSUBSCRIBE:
                connection.execute(delete(service_tables.hub_subscriptions).where(*where))
                return None
            row = connection.execute(
                select(service_tables.hub_subscriptions).where(*where)
            ).one_or_none()
            if row is None:
                return None
            values: dict[str, Any] = {
                "details": self._sealed_details(request),
                "expires_at": now + timedelta(seconds=request.lease_s),
                **_NO_REQUEST,
            }
            if row.expires_at is None or row.expires_at <= now:
                values |= {"position": position, "failures": 0, "next_at": None}
            connection.execute(
                update(service_tables.hub_subscriptions).where(*where).values(values)
            )
            changed = _WITH_FEED.where(_rows.id == request.id)
            return self._opened(connection.execute(changed).one())

    def refuse(self, asked: UnconfirmedRequest) -> None:
        """Forget a request; a subscription that is active stays so."""
        where = (_rows.id == asked.request.id, _rows.request == asked.sealed)
        with self._database.writing() as connection:
            gone = delete(service_tables.hub_subscriptions).where(
                *where, _rows.expires_at.is_(None)
            )
            connection.execute(gone)
            kept = update(service_tables.hub_subscriptions).where(*where).values(_NO_REQUEST)
            connection.execute(kept)

    def ask_again(self, asked: UnconfirmedRequest, wait_s: float) -> None:
        where = (_rows.id == asked.request.id, _rows.request == asked.sealed)
        again = self._clock() + timedelta(seconds=wait_s)
        values = {"request_at": again, "request_attempts": asked.attempts + 1}
        with self._database.writing() as connection:
            connection.execute(
                update(service_tables.hub_subscriptions).where(*where).values(values)
            )

    # --- subscriptions ----------------------------------------------------------------------------

    def is_empty(self) -> bool:
        with self._database.reading() as connection:
            return connection.scalar(select(_rows.id).limit(1)) is None

    def active(self) -> list[HubSubscription]:
        query = _WITH_FEED.where(_rows.expires_at > self._clock())
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        found = [self._opened(each) for each in rows]
        return [each for each in found if each is not None]

    def find(self, id_: str) -> HubSubscription | None:
        """A subscription if it is active."""
        query = _WITH_FEED.where(_rows.id == id_, _rows.expires_at > self._clock())
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else self._opened(row)

    def has_taken(self, id_: str, position: int) -> bool:
        """The callback has taken everything below this position; whether it is still subscribed."""
        own = update(service_tables.hub_subscriptions).where(_rows.id == id_)
        with self._database.writing() as connection:
            connection.execute(own.values(failures=0, next_at=None))
            connection.execute(own.where(_rows.position < position).values(position=position))
            found = select(_rows.id).where(_rows.id == id_)
            return connection.scalar(found) is not None

    def has_failed(self, id_: str, failures: int, wait_s: float) -> datetime | None:
        """When the callback is tried again; None: it is not subscribed any more."""
        own = update(service_tables.hub_subscriptions).where(_rows.id == id_)
        again = self._clock() + timedelta(seconds=wait_s)
        with self._database.writing() as connection:
            is_there = connection.execute(own.values(failures=failures, next_at=again)).rowcount
            return again if is_there else None

    def remove(self, ids: Collection[str]) -> None:
        with self._database.writing() as connection:
            for each in ids:
                connection.execute(delete(service_tables.hub_subscriptions).where(_rows.id == each))

    def sweep(self) -> None:
        """Remove what has expired, and what nobody has confirmed in time."""
        now = self._clock()
        is_stale = _rows.request_until <= now
        has_request = and_(_rows.request.is_not(None), _rows.request_until > now)
        is_over = or_(_rows.expires_at.is_(None), _rows.expires_at <= now)
        with self._database.reading() as connection:
            if not _count(connection, or_(is_stale, and_(is_over, ~has_request))):
                return
        with self._database.writing() as connection:
            stale = update(service_tables.hub_subscriptions).where(is_stale)
            connection.execute(stale.values(_NO_REQUEST))
            connection.execute(
                delete(service_tables.hub_subscriptions).where(is_over, ~has_request)
            )

    # --- who sends --------------------------------------------------------------------------------

    def take_lease(self, holder: str, seconds: float) -> bool:
        """Whether this process is the one that sends, until so many seconds from now."""
        with self._database.writing() as connection:
            now = Transaction(connection, clock=self._clock).now
            row = connection.execute(
                select(service_tables.leases).where(_leases.name == _LEASE)
            ).first()
            if row is not None and row.holder != holder and row.until > now:
                return False
            values = {"name": _LEASE, "holder": holder, "until": now + timedelta(seconds=seconds)}
            connection.execute(delete(service_tables.leases).where(_leases.name == _LEASE))
            connection.execute(insert(service_tables.leases).values(values))
            return True

    def end_lease(self, holder: str) -> None:
        own = (_leases.name == _LEASE, _leases.holder == holder)
        with self._database.writing() as connection:
            connection.execute(delete(service_tables.leases).where(*own))

    # --- sealed columns ---------------------------------------------------------------------------

    def _sealed_details(self, request: HubRequest) -> bytes:
        found = {name: getattr(request, name) for name in ("topic", "callback", "secret")}
        return self._sealer.seal(json.dumps(found).encode(), _TABLE, "details", request.id)

    def _sealed_request(self, request: HubRequest) -> bytes:
        found = {"mode": request.mode, "secret": request.secret, "lease_s": request.lease_s}
        return self._sealer.seal(json.dumps(found).encode(), _TABLE, "request", request.id)

    def _opened(self, row: Row[*tuple[Any, ...]]) -> HubSubscription | None:
        """None for a row that cannot be opened: nothing can be sent for it, and it expires."""
        try:
            details = json.loads(self._sealer.open(row.details, _TABLE, "details", row.id))
        except SealBroken:
            return None
        return HubSubscription(
            row.id,
            **details,
            expires_at=row.expires_at,
            position=row.position,
            failures=row.failures,
            next_at=row.next_at,
            log_key=row.name if DefinitionKind(row.kind) in SOURCE_KINDS else row.number,
        )

    def _opened_request(self, row: Row[*tuple[Any, ...]]) -> UnconfirmedRequest | None:
        try:
            details = json.loads(self._sealer.open(row.details, _TABLE, "details", row.id))
            asked = json.loads(self._sealer.open(row.request, _TABLE, "request", row.id))
        except SealBroken:
            return None
        request = HubRequest(
            HubMode(asked["mode"]),
            row.link,
            details["topic"],
            details["callback"],
            asked["secret"],
            asked["lease_s"],
        )
        return UnconfirmedRequest(request, row.request_attempts, row.request)


_NO_REQUEST = {
    "request": None,
    "request_until": None,
    "request_at": None,
    "request_attempts": 0,
}


def _check_room(connection: Connection, link_id: str) -> None:
    tenant = connection.scalar(select(_links.tenant).where(_links.id == link_id))
    if tenant is None:
        raise UnknownName("this link has ended")
    of_tenant = _rows.link.in_(select(_links.id).where(_links.tenant == tenant))
    for where, most, what in (
        (_rows.link == link_id, LINK_MAX, "this link"),
        (of_tenant, TENANT_MAX, "its tenant"),
        (true(), TOTAL_MAX, "this hub"),
    ):
        if _count(connection, where) >= most:
            raise QuotaExceeded(f"{what} has {most:,} subscriptions of the hub; end some first")


def _count(connection: Connection, where: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(service_tables.hub_subscriptions).where(where)
    return connection.scalar(query) or 0
