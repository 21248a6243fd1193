"""`/v1/tenants` and `/v1/accounts`: who there is, for administrators of the tenant `local`.

What a tenant's own administrators decide (tokens, grants) is in access.py.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from headgate.catalog.accounts import Account
from headgate.catalog.limits import Resource
from headgate.catalog.principals import OWNER, Principal, Scope, in_order
from headgate.catalog.tenants import Tenant
from headgate.service.caller import AnyCaller, Caller, base_of
from headgate.service.problems import RESPONSES
from headgate.service.system import require_operator

NAME_LENGTH_MAX = 100
AnyName = Annotated[str, Path(min_length=1, max_length=NAME_LENGTH_MAX)]
router = APIRouter(prefix="/v1", tags=["administration"], responses=RESPONSES)


class TenantEntry(BaseModel):
    name: str
    created_at: datetime
    may_use_machine: bool = Field(description="Files, topics, operators and stylesheets.")
    quotas: dict[Resource, int]
    used: dict[Resource, float]


class TenantList(BaseModel):
    entries: list[TenantEntry]


class NewTenant(BaseModel):
    name: str = Field(min_length=1, max_length=NAME_LENGTH_MAX)
    may_use_machine: bool = False


class NewQuotas(BaseModel):
    quotas: dict[Resource, int | None] = Field(description="None removes a limit.")


class AccountEntry(BaseModel):
    name: str
    has_password: bool
    created_at: datetime
    last_sign_in_at: datetime | None = None
    tenants: dict[str, list[Scope]]

    @classmethod
    def of(cls, account: Account) -> AccountEntry:
        return cls(
            name=account.name,
            has_password=account.has_password,
            created_at=account.created_at,
            last_sign_in_at=account.last_sign_in_at,
            tenants={name: in_order(scopes) for name, scopes in account.memberships.items()},
        )


class AccountList(BaseModel):
    entries: list[AccountEntry]


class NewAccount(BaseModel):
    name: str = Field(min_length=1, max_length=NAME_LENGTH_MAX)


class Membership(BaseModel):
    scopes: list[Scope] = Field(max_length=len(Scope), description="None: it leaves the tenant.")


class SignInLink(BaseModel):
    url: str = Field(description="Signs in once, within an hour. Shown only here.")


# --- tenants --------------------------------------------------------------------------------------


@router.get("/tenants")
def list_tenants(caller: AnyCaller) -> TenantList:
    """All tenants, with what they use of their quotas."""
    catalog = _operated(caller).service.headgate.catalog
    return TenantList(entries=[_tenant(caller, each) for each in catalog.list_tenants()])


@router.post("/tenants", status_code=201)
def add_tenant(new: NewTenant, caller: AnyCaller) -> TenantEntry:
    catalog, actor = _operated(caller).service.headgate.catalog, caller.principal.actor
    made = catalog.add_tenant(new.name, may_use_machine=new.may_use_machine, actor=actor)
    return _tenant(caller, made)


@router.delete("/tenants/{name}", status_code=204)
def remove_tenant(name: AnyName, caller: AnyCaller) -> None:
    """One that has no definitions and subscriptions any more."""
    catalog = _operated(caller).service.headgate.catalog
    catalog.remove_tenant(name, actor=caller.principal.actor)


@router.put("/tenants/{name}/quotas", status_code=204)
def set_quotas(name: AnyName, new: NewQuotas, caller: AnyCaller) -> None:
    catalog = _operated(caller).service.headgate.catalog
    catalog.set_quotas(new.quotas, name, actor=caller.principal.actor)


def _tenant(caller: Caller, tenant: Tenant) -> TenantEntry:
    owner = Principal(tenant.name, OWNER.actor, frozenset(Scope))
    own = caller.service.headgate.catalog.acting_as(owner)
    return TenantEntry(
        name=tenant.name,
        created_at=tenant.created_at,
        may_use_machine=tenant.may_use_machine,
        quotas=own.quotas(),
        used=own.usage(),
    )


# --- accounts -------------------------------------------------------------------------------------


@router.get("/accounts", response_model_exclude_none=True)
def list_accounts(caller: AnyCaller) -> AccountList:
    found = _operated(caller).service.headgate.catalog.accounts.list()
    return AccountList(entries=[AccountEntry.of(each) for each in found])


@router.post("/accounts", status_code=204)
def add_account(new: NewAccount, caller: AnyCaller) -> None:
    """An account without a password: it signs in by a link, or by an OpenID provider."""
    accounts = _operated(caller).service.headgate.catalog.accounts
    accounts.add(new.name, actor=caller.principal.actor)


@router.delete("/accounts/{name}", status_code=204)
def remove_account(name: AnyName, caller: AnyCaller) -> None:
    """It is signed out everywhere."""
    accounts = _operated(caller).service.headgate.catalog.accounts
    accounts.remove(name, actor=caller.principal.actor)


@router.put("/accounts/{name}/tenants/{tenant}", status_code=204)
def set_membership(name: AnyName, tenant: AnyName, new: Membership, caller: AnyCaller) -> None:
    """What an account may do for a tenant."""
    accounts = _operated(caller).service.headgate.catalog.accounts
    accounts.join(name, tenant, new.scopes, actor=caller.principal.actor)


@router.post("/accounts/{name}/link", status_code=201)
def make_sign_in_link(name: AnyName, request: Request, caller: AnyCaller) -> SignInLink:
    """A link by which somebody signs in to this account."""
    secret = _operated(caller).service.headgate.catalog.accounts.make_link(name)
    return SignInLink(url=f"{base_of(request, caller)}/enter/{secret}")


def _operated(caller: Caller) -> Caller:
    require_operator(caller)
    return caller
