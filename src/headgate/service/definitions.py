"""`/v1/sources`, `/v1/feeds`, `/v1/operators`: what is registered. Definitions are made by
statements (`POST /v1/statements`), and read and dropped here.

A definition's `ETag` is its version. Dropping with `If-Match` drops what was read, and nothing that
was registered under the name since then.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import BaseModel, Field

from headgate.catalog.definitions import SOURCE_KINDS, DefinitionKind
from headgate.catalog.principals import Scope
from headgate.catalog.queries import Definition
from headgate.language.statements import Drop
from headgate.model.errors import UnknownName
from headgate.service.caller import AnyCaller, Caller
from headgate.service.problems import RESPONSES, problem

PAGE_DEFAULT, PAGE_MAX = 100, 1_000
router = APIRouter(prefix="/v1", tags=["definitions"], responses=RESPONSES)


class DefinitionList(StrEnum):
    SOURCES = "sources"
    FEEDS = "feeds"
    OPERATORS = "operators"

    @property
    def kinds(self) -> tuple[DefinitionKind, ...]:
        if self is DefinitionList.SOURCES:
            return tuple(SOURCE_KINDS)
        return (DefinitionKind.FEED if self is DefinitionList.FEEDS else DefinitionKind.OPERATOR,)


class DefinitionEntry(BaseModel):
    name: str
    kind: DefinitionKind
    definition: str = Field(
        description="The statement that made it; empty where another tenant granted only to read."
    )
    created_at: datetime
    version: int
    cpu_us: float = Field(description="What it adds to the CPU time of an item, estimated.")
    suspended: str | None = Field(None, description="Why it is suspended.")


class DefinitionsPage(BaseModel):
    entries: list[DefinitionEntry]
    total: int
    next: str | None = Field(None, description="`after` of the next page.")


NAME_LENGTH_MAX = 250
Name = Annotated[str, Path(max_length=NAME_LENGTH_MAX, description="As the tenant calls it.")]


@router.get("/{listed}", response_model_exclude_none=True)
def list_definitions(
    listed: DefinitionList,
    caller: AnyCaller,
    after: Annotated[str, Query(max_length=250)] = "",
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = PAGE_DEFAULT,
    contains: Annotated[
        str, Query(max_length=250, description="Only names with this in them, in any case.")
    ] = "",
) -> DefinitionsPage:
    """What the tenant has, and what was granted to it."""
    catalog = caller.require(Scope.READ).catalog
    found = catalog.list_definitions(listed.kinds, after=after, limit=limit, contains=contains)
    return DefinitionsPage(
        entries=_entries(caller, found),
        total=catalog.count_definitions(listed.kinds, contains=contains),
        next=found[-1].name if len(found) == limit else None,
    )


@router.get("/{listed}/{name}", response_model_exclude_none=True)
def get_definition(
    listed: DefinitionList, name: Name, caller: AnyCaller, response: Response
) -> DefinitionEntry:
    found = _definition(caller.require(Scope.READ), listed, name)
    response.headers["etag"] = f'"{found.version}"'
    (entry,) = _entries(caller, [found])
    return entry


@router.delete("/{listed}/{name}", status_code=204)
def drop_definition(
    listed: DefinitionList,
    name: Name,
    caller: AnyCaller,
    if_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Drop what nothing uses any more."""
    found = _definition(caller.require(Scope.WRITE), listed, name)
    if if_match is not None and if_match != f'"{found.version}"':
        return problem(412, f"'{name}' has another version: it is {found.version} now")
    caller.catalog.apply([Drop(found.kind.drop_kind, name)])
    return Response(status_code=204)


# --- what is behind a definition, and its past ----------------------------------------------------


class DependentsOf(BaseModel, from_attributes=True):
    """What would be touched if the definition broke, or were dropped."""

    name: str
    feeds: list[str] = Field(description="Of the tenant, that read it, directly or not.")
    other_feeds: int = Field(description="Of other tenants; counted for the owner only.")
    subscriptions: int
    other_subscriptions: int
    tenants: list[str]
    other_tenants: int


class VersionOfDefinition(BaseModel, from_attributes=True):
    kind: DefinitionKind
    definition: str
    created_at: datetime
    dropped_at: datetime | None = Field(None, description="Missing: it stands now.")


class DefinitionHistory(BaseModel):
    name: str
    versions: list[VersionOfDefinition] = Field(description="The newest first, of 90 days.")


@router.get("/{listed}/{name}/dependents")
def get_dependents(listed: DefinitionList, name: Name, caller: AnyCaller) -> DependentsOf:
    """The feeds, subscriptions and tenants behind a definition."""
    _definition(caller.require(Scope.READ), listed, name)
    return DependentsOf.model_validate(caller.catalog.dependents(name))


@router.get("/{listed}/{name}/history", response_model_exclude_none=True)
def get_history(listed: DefinitionList, name: Name, caller: AnyCaller) -> DefinitionHistory:
    """What a name of the tenant stands for and has stood for."""
    versions = caller.require(Scope.READ).catalog.versions_of(name)
    shown = [each for each in versions if each.kind in listed.kinds]
    if not shown:
        raise UnknownName(f"nothing of this tenant is or was named '{name}' among the {listed}")
    return DefinitionHistory(
        name=name, versions=[VersionOfDefinition.model_validate(each) for each in shown]
    )


def _definition(caller: Caller, listed: DefinitionList, name: str) -> Definition:
    found = caller.catalog.get_definition(name)
    if found is None or found.kind not in listed.kinds:
        raise UnknownName(f"there is nothing named '{name}' among the {listed}")
    return found


def _entries(caller: Caller, found: list[Definition]) -> list[DefinitionEntry]:
    suspended = caller.catalog.suspended()
    return [
        DefinitionEntry(
            name=each.name,
            kind=each.kind,
            definition=each.definition,
            created_at=each.created_at,
            version=each.version,
            cpu_us=each.cpu_us,
            suspended=suspended[each.name].reason if each.name in suspended else None,
        )
        for each in found
    ]
