"""`/v1/feeds/{name}/links` and `/v1/links`: links under which a feed is read without an account, by
feed readers for example. What is behind them: feed_documents.py."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from headgate.catalog.principals import COMMENT_LENGTH_MAX
from headgate.service.caller import AnyCaller, base_of
from headgate.service.definitions import PAGE_DEFAULT, PAGE_MAX, Name
from headgate.service.document_content import DocumentFormat, path_of
from headgate.service.problems import RESPONSES

router = APIRouter(prefix="/v1", tags=["links"], responses=RESPONSES)


class NewLink(BaseModel):
    comment: str = Field("", max_length=COMMENT_LENGTH_MAX)


class LinkEntry(BaseModel, from_attributes=True):
    id: str
    feed: str
    comment: str
    created_by: str
    created_at: datetime
    last_used_at: datetime | None = None


class NewLinkAnswer(BaseModel):
    entry: LinkEntry
    urls: dict[DocumentFormat, str] = Field(description="Shown only here.")


class LinksPage(BaseModel):
    entries: list[LinkEntry]
    total: int
    next: str | None = Field(None, description="`after` of the next page.")


@router.post("/feeds/{name}/links", status_code=201, response_model_exclude_none=True)
def create_link(name: Name, new: NewLink, request: Request, caller: AnyCaller) -> NewLinkAnswer:
    """A link for a feed or source. Who has it reads the items, and can do nothing else."""
    created = caller.catalog.create_link(name, comment=new.comment)
    base = base_of(request, caller)
    return NewLinkAnswer(
        entry=LinkEntry.model_validate(created.link),
        urls={each: base + path_of(created.token, each) for each in DocumentFormat},
    )


@router.get("/links", response_model_exclude_none=True)
def list_links(
    caller: AnyCaller,
    after: Annotated[str, Query(max_length=60)] = "",
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = PAGE_DEFAULT,
) -> LinksPage:
    found = caller.catalog.list_links(after=after, limit=limit)
    return LinksPage(
        entries=[LinkEntry.model_validate(each) for each in found],
        total=caller.catalog.count_links(),
        next=found[-1].id if len(found) == limit else None,
    )


@router.delete("/links/{id_}", status_code=204)
def revoke_link(id_: str, caller: AnyCaller) -> None:
    """It ends within two seconds."""
    caller.catalog.revoke_link(id_)
