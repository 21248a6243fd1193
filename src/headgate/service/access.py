"""`/v1/me`, `/v1/tokens`, `/v1/grants`, `/v1/audit`, `/v1/usage`: who may do what in the tenant,
who did what, and how much of its quotas it uses."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from headgate.catalog.limits import Resource
from headgate.catalog.principals import COMMENT_LENGTH_MAX, TOKEN_VALIDITY_DEFAULT, Scope, in_order
from headgate.catalog.tenants import Right
from headgate.service.caller import AnyCaller
from headgate.service.definitions import PAGE_DEFAULT, PAGE_MAX
from headgate.service.problems import RESPONSES

router = APIRouter(prefix="/v1", tags=["access"], responses=RESPONSES)
DAYS_MAX = 3_650


class Me(BaseModel):
    tenant: str
    actor: str
    scopes: list[Scope]


class TokenEntry(BaseModel, from_attributes=True):
    id: str
    scopes: list[Scope]
    comment: str
    created_by: str
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None


class NewToken(BaseModel):
    scopes: list[Scope] = Field(min_length=1, max_length=len(Scope))
    comment: str = Field("", max_length=COMMENT_LENGTH_MAX)
    days: int = Field(TOKEN_VALIDITY_DEFAULT.days, ge=1, le=DAYS_MAX)


class NewTokenAnswer(BaseModel):
    token: str = Field(description="Shown only here.")
    entry: TokenEntry


class GrantEntry(BaseModel, from_attributes=True):
    definition: str
    tenant: str = Field(description="A tenant, or '*' for all.")
    right: Right | None = Field(None, description="None takes the grant back.")
    granted_at: datetime | None = None


class Grants(BaseModel):
    entries: list[GrantEntry]


class TokenList(BaseModel):
    entries: list[TokenEntry]


class AuditRow(BaseModel, from_attributes=True):
    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: str = ""


class AuditRows(BaseModel):
    entries: list[AuditRow]
    next: int | None = Field(None, description="`before` of the next page.")


class Usage(BaseModel):
    quotas: dict[Resource, int]
    used: dict[Resource, float]


@router.get("/me")
def me(caller: AnyCaller) -> Me:
    """What this token may do."""
    principal = caller.principal
    scopes = in_order(principal.scopes)
    return Me(tenant=principal.tenant, actor=principal.actor, scopes=scopes)


@router.get("/usage")
def usage(caller: AnyCaller) -> Usage:
    catalog = caller.require(Scope.READ).catalog
    return Usage(quotas=catalog.quotas(), used=catalog.usage())


@router.get("/tokens", response_model_exclude_none=True)
def list_tokens(caller: AnyCaller) -> TokenList:
    return TokenList(
        entries=[TokenEntry.model_validate(each) for each in caller.catalog.list_tokens()]
    )


@router.post("/tokens", status_code=201, response_model_exclude_none=True)
def issue_token(new: NewToken, caller: AnyCaller) -> NewTokenAnswer:
    """A token with at most the scopes of who asks for it."""
    validity = timedelta(days=new.days)
    issued = caller.catalog.issue_token(new.scopes, comment=new.comment, validity=validity)
    return NewTokenAnswer(token=issued.text, entry=TokenEntry.model_validate(issued.token))


@router.delete("/tokens/{id_}", status_code=204)
def revoke_token(id_: str, caller: AnyCaller) -> None:
    """It ends within two seconds."""
    caller.catalog.revoke_token(id_)


@router.get("/grants")
def list_grants(caller: AnyCaller) -> Grants:
    """What other tenants may see of this one."""
    found = caller.catalog.list_grants()
    return Grants(entries=[GrantEntry.model_validate(each) for each in found])


@router.put("/grants", status_code=204)
def grant(entry: GrantEntry, caller: AnyCaller) -> None:
    caller.catalog.grant(entry.definition, entry.tenant, entry.right)


@router.get("/audit")
def list_audit(
    caller: AnyCaller,
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = PAGE_DEFAULT,
) -> AuditRows:
    """Who did what, the newest first."""
    found = caller.catalog.list_audit(before_id=before, limit=limit)
    rows = [AuditRow.model_validate(each) for each in found]
    return AuditRows(entries=rows, next=found[-1].id if len(found) == limit else None)
