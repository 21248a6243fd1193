"""The audit: who did what, when. Rows are only added, in the transaction of what they record.

Statements are recorded by what they name, never by their text: a target may be an address, a path
or a URL with a secret in it, and a ticket is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from headgate.catalog import tables
from headgate.catalog.principals import Principal
from headgate.catalog.queries import PAGE_MAX
from headgate.catalog.tenants import LOCAL, TenantView
from headgate.model.errors import InvalidValue

SUBJECT_LENGTH_MAX = 500
_audit = tables.audit.c


@dataclass(frozen=True, slots=True)
class AuditEntry:
    id: int
    at: datetime
    tenant: str
    actor: str
    action: str
    """`created feed`, `dropped source`, `issued token`, …"""
    subject: str
    detail: str


def record(
    connection: Connection,
    *,
    tenant: str,
    actor: str,
    action: str,
    subject: str,
    now: datetime,
    detail: str = "",
) -> None:
    row = {
        "at": now,
        "tenant": tenant,
        "actor": actor,
        "action": action,
        "subject": subject[:SUBJECT_LENGTH_MAX],
        "detail": detail[:SUBJECT_LENGTH_MAX],
    }
    connection.execute(insert(tables.audit).values(row))


class RecordedCalls:
    """The part of a catalog that says for whom it acts, and records what it did."""

    principal: Principal
    view: TenantView

    @property
    def _tenant(self) -> str:
        return self.view.tenant or LOCAL

    def _record(
        self,
        connection: Connection,
        action: str,
        subject: str,
        now: datetime,
        detail: str = "",
        *,
        actor: str = "",
    ) -> None:
        record(
            connection,
            tenant=self._tenant,
            actor=actor or self.principal.actor,
            action=action,
            subject=subject,
            now=now,
            detail=detail,
        )


def audit_page(
    connection: Connection, tenant: str | None, *, before_id: int | None, limit: int
) -> list[AuditEntry]:
    """The newest first; of one tenant or of all."""
    if not 1 <= limit <= PAGE_MAX:
        raise InvalidValue(f"a page has 1 to {PAGE_MAX:,} entries, not {limit:,}")
    query = select(tables.audit).order_by(_audit.id.desc()).limit(limit)
    if tenant is not None:
        query = query.where(_audit.tenant == tenant)
    if before_id is not None:
        query = query.where(_audit.id < before_id)
    return [AuditEntry(**row) for row in connection.execute(query).mappings()]
