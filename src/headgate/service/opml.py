"""`/v1/opml`: the web feeds of a tenant as a list that feed readers exchange, and such lists
imported."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from headgate.acquire.limits import DEFAULT_LIMITS
from headgate.api.opml import ImportState, OpmlImport, export_opml, import_opml
from headgate.catalog.principals import Scope
from headgate.service.caller import AnyCaller, Caller
from headgate.service.problems import RESPONSES
from headgate.service.request_body import read_body

MEDIA_TYPE = "text/x-opml"
BYTES_MAX = 5_000_000
FEEDS_MAX = 10_000
LIMITS = replace(DEFAULT_LIMITS, body_bytes_max=BYTES_MAX, outlines_max=FEEDS_MAX)
router = APIRouter(prefix="/v1/opml", tags=["opml"], responses=RESPONSES)
_DOCUMENT = {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}


class OpmlEntry(BaseModel):
    title: str
    url: str
    folders: list[str] = []
    name: str | None = Field(None, description="Under which it is registered now.")
    state: ImportState
    reason: str | None = Field(None, description="Why it was refused.")


class OpmlLine(BaseModel):
    line: int
    reason: str


class OpmlAnswer(BaseModel):
    registered: int
    known: int = Field(description="Feeds whose URL was registered before.")
    refused: int
    feeds: list[OpmlEntry]
    bad_lines: list[OpmlLine] = Field(description="What could not be read as a feed.")

    @classmethod
    def of(cls, found: OpmlImport) -> OpmlAnswer:
        return cls(
            registered=found.count(ImportState.REGISTERED),
            known=found.count(ImportState.KNOWN),
            refused=found.count(ImportState.REFUSED),
            feeds=[
                OpmlEntry(
                    title=each.feed.title,
                    url=each.feed.url,
                    folders=list(each.feed.folders),
                    name=each.name or None,
                    state=each.state,
                    reason=each.reason or None,
                )
                for each in found.feeds
            ],
            bad_lines=[OpmlLine(line=each.line, reason=each.reason) for each in found.bad_lines],
        )


@router.get("", response_class=Response, responses={200: _DOCUMENT})
def export(caller: AnyCaller, after: Annotated[str, Query(max_length=250)] = "") -> Response:
    """The web feeds that the tenant has registered, as OPML 2.0, by name. If there are more than
    10,000, the header `Link` has the next part."""
    found = export_opml(caller.require(Scope.READ).catalog, after=after, limit=FEEDS_MAX)
    headers = {"content-disposition": 'attachment; filename="feeds.opml"'}
    if found.last is not None:
        headers["link"] = f'</v1/opml?after={quote(found.last, safe="")}>; rel="next"'
    return Response(found.document, media_type=MEDIA_TYPE, headers=headers)


@router.post(
    "",
    response_model_exclude_none=True,
    openapi_extra={"requestBody": {**_DOCUMENT, "required": True}},
)
async def import_list(
    request: Request,
    caller: AnyCaller,
    follow: Annotated[bool, Query(description="Follow them, too (`/v1/reading`).")] = False,
) -> OpmlAnswer:
    """Register every web feed of an OPML list, under names made from the titles. What cannot be
    used is listed, and does not stop the others."""
    caller.require(Scope.WRITE)
    body = await read_body(request, bytes_max=BYTES_MAX)
    return await run_in_threadpool(_import, caller, body, is_followed=follow)


def _import(caller: Caller, body: bytes, *, is_followed: bool) -> OpmlAnswer:
    found = import_opml(caller.catalog, body, limits=LIMITS)
    if is_followed:
        names = [each.name for each in found.feeds if each.state is not ImportState.REFUSED]
        caller.catalog.follow_all(names)
    return OpmlAnswer.of(found)
