"""Answers by idempotency key: a request that comes again changes nothing again.

    begin ──► new: do it ──► its transaction marks the key as applied ──► keep the answer
          ├─► answered: the same answer again
          ├─► running: another one does it now
          ├─► lost: it was done, and its answer is not here
          └─► other: the key was used for another request

A key is of a tenant and of who acts. It is known for a day. The answer is sealed, since it may have
a ticket or a secret in it that is stored nowhere else.

What a crash leaves behind follows from two facts. The key is marked *in the transaction that
changes the catalog*, so it is marked if and only if something was changed. And the mark is only set
by the attempt that has the key: who was taken for dead, since it takes longer than RUNNING, and
comes back, is rolled back.

    crash before the change     not marked: after RUNNING the request is done by who asks again
    crash after the change      marked, no answer: it is not done again, and the answer says so
    crash after the answer      kept: the same answer again

A request that is refused has changed nothing, so its key is forgotten, and it may be sent again
after it was mended.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cached_property

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from headgate.catalog import service_tables
from headgate.catalog.database import Database
from headgate.catalog.principals import Principal, hash_of
from headgate.catalog.sealed import OVERHEAD_BYTES, Sealer
from headgate.catalog.tenants import require_tenant
from headgate.catalog.transaction import Clock, Transaction
from headgate.model.errors import InUse, QuotaExceeded, SealBroken

VALIDITY = timedelta(days=1)
RUNNING = timedelta(minutes=1)
KEYS_MAX, KEPT_BYTES_MAX = 10_000, 32_000_000
"""Of one tenant."""
ANSWER_BYTES_MAX = 256_000
_TABLE = "answers"
_answers = service_tables.answers.c


class KeyState(StrEnum):
    NEW = "new"
    ANSWERED = "answered"
    RUNNING = "running"
    LOST = "lost"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request under its key, as it was found."""

    tenant: str
    key: str
    """The hash of who acts and of the key."""
    attempt: str
    state: KeyState
    answer: bytes | None = None


class KeptAnswers:
    """Thread-safe, as the catalog is."""

    def __init__(self, database: Database, clock: Clock, key: Callable[[], bytes]) -> None:
        self._database, self._clock, self._key = database, clock, key

    @cached_property
    def _sealer(self) -> Sealer:
        return Sealer(self._key(), "kept answers")

    def begin(self, principal: Principal, key: str, request: str) -> KeyedRequest:
        """What is known of this key; `request` is a hash of all that the request has. If the state
        is NEW, the caller does it, within `applying`, and then calls `keep` or `forget`."""
        tenant, hashed = principal.tenant, hash_of(f"{principal.actor}\n{key}")
        attempt = secrets.token_hex(8)
        own = (_answers.tenant == tenant, _answers.key == hashed)
        with self._database.writing(is_effect=False) as connection:
            now = Transaction(connection, clock=self._clock).now
            require_tenant(connection, tenant)
            old = (_answers.tenant == tenant, _answers.expires_at <= now)
            connection.execute(delete(service_tables.answers).where(*old))
            row = connection.execute(select(service_tables.answers).where(*own)).one_or_none()
            found = KeyedRequest(tenant, hashed, attempt, KeyState.NEW)
            values = {"attempt": attempt, "running_until": now + RUNNING}
            if row is None:
                _check_room(connection, tenant)
                fresh = {"tenant": tenant, "key": hashed, "request": request, "is_applied": False}
                ends = {"expires_at": now + VALIDITY, "answer_bytes": 0}
                connection.execute(
                    insert(service_tables.answers).values({**fresh, **ends, **values})
                )
                return found
            if row.request != request:
                return KeyedRequest(tenant, hashed, "", KeyState.OTHER)
            if row.running_until is not None and row.running_until > now:
                return KeyedRequest(tenant, hashed, "", KeyState.RUNNING)
            if row.running_until is not None and not row.is_applied:
                connection.execute(update(service_tables.answers).where(*own).values(values))
                return found
        return self._answered(tenant, hashed, row.answer)

    def _answered(self, tenant: str, key: str, sealed: bytes | None) -> KeyedRequest:
        if sealed is not None:
            try:
                answer = self._sealer.open(sealed, _TABLE, "answer", tenant, key)
            except SealBroken:  # another key of the installation: what was done stays done
                return KeyedRequest(tenant, key, "", KeyState.LOST)
            return KeyedRequest(tenant, key, "", KeyState.ANSWERED, answer)
        return KeyedRequest(tenant, key, "", KeyState.LOST)

    @contextmanager
    def applying(self, request: KeyedRequest) -> Iterator[None]:
        """Every transaction of the catalog in this context marks the key as applied."""

        def mark(connection: Connection) -> None:
            applied = update(service_tables.answers).where(*_of(request)).values(is_applied=True)
            if not connection.execute(applied).rowcount:
                raise InUse(
                    "this request took too long, and was begun again under its idempotency key: "
                    "ask again for its answer"
                )

        with self._database.also_writing(mark):
            yield

    def keep(self, request: KeyedRequest, answer: bytes) -> None:
        """Keep the answer of a request that has succeeded."""
        place = (_TABLE, "answer", request.tenant, request.key)
        sealed: bytes | None = self._sealer.seal(answer, *place)
        size = len(answer) + OVERHEAD_BYTES
        with self._database.writing(is_effect=False) as connection:
            room = KEPT_BYTES_MAX - _kept_bytes(connection, request.tenant)
            if len(answer) > ANSWER_BYTES_MAX or size > room:
                sealed, size = None, 0
            values = {"running_until": None, "is_applied": True, "answer": sealed}
            kept = update(service_tables.answers).where(*_of(request))
            connection.execute(kept.values(**values, answer_bytes=size))

    def forget(self, request: KeyedRequest) -> None:
        """The request has failed. If it has changed something all the same, its key stays."""
        with self._database.writing(is_effect=False) as connection:
            own = _of(request)
            connection.execute(
                delete(service_tables.answers).where(*own, _answers.is_applied.is_(False))
            )
            connection.execute(
                update(service_tables.answers).where(*own).values(running_until=None)
            )


def _of(request: KeyedRequest) -> tuple[ColumnElement[bool], ...]:
    """The row of a request, if no other attempt has taken it over."""
    return (
        _answers.tenant == request.tenant,
        _answers.key == request.key,
        _answers.attempt == request.attempt,
    )


def _check_room(connection: Connection, tenant: str) -> None:
    query = (
        select(func.count()).select_from(service_tables.answers).where(_answers.tenant == tenant)
    )
    if (connection.scalar(query) or 0) >= KEYS_MAX:
        raise QuotaExceeded(
            f"tenant '{tenant}' has used {KEYS_MAX:,} idempotency keys within a day; send the "
            "request without one, or later"
        )


def _kept_bytes(connection: Connection, tenant: str) -> int:
    query = select(func.sum(_answers.answer_bytes)).where(_answers.tenant == tenant)
    return int(connection.scalar(query) or 0)
