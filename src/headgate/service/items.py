"""Items in and out: `POST /v1/sources/{name}/items` posts events, `GET /v1/feeds/{name}/items`
reads what a feed or source has by position.

Reading goes on from a position: the answer has the one to ask for next, and asking for it again is
harmless. A position stays what it is as long as the log keeps the item.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Annotated

from fastapi import APIRouter, Header, HTTPException, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from headgate.acquire.post import Posted
from headgate.api.posting import NewPost
from headgate.catalog.principals import Scope
from headgate.model.errors import CatalogError, HeadgateError, InvalidValue, UnknownName
from headgate.service.caller import AnyCaller, Caller, bearer, caller_of
from headgate.service.cloud_events import EventPost, is_cloud_events, read_cloud_events
from headgate.service.definitions import NAME_LENGTH_MAX, Name
from headgate.service.feed_items import FeedItem, item_of
from headgate.service.post_queue import SMALL_BYTES_MAX
from headgate.service.problems import RESPONSES
from headgate.service.rate_limits import BYTES_PER_REQUEST
from headgate.service.request_body import read_body
from headgate.store.tail import key_of

ITEMS_DEFAULT, ITEMS_MAX = 100, 1_000
POST_PATH = "/v1/sources/{name}/items"
POST_BYTES_MAX = 10_000_000
KEY_LENGTH_MAX = 200
REJECTED_SHOWN_MAX = 1_000
router = APIRouter(prefix="/v1", tags=["items"], responses=RESPONSES)


class FeedItems(BaseModel):
    items: list[FeedItem]
    next: int = Field(description="`since` of the next request.")
    complete: bool = Field(description="Whether there is nothing behind these items yet.")


@router.get("/feeds/{name}/items", response_model_exclude_none=True)
def read_feed(
    name: Name,
    caller: AnyCaller,
    since: Annotated[
        int | None, Query(ge=0, le=2**62, description="The position of the first; none: the last.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=ITEMS_MAX)] = ITEMS_DEFAULT,
) -> FeedItems:
    """Items of a feed or source, in order of arrival."""
    catalog, log = caller.require(Scope.READ).catalog, caller.service.log
    with catalog.looking_up() as definitions:
        key = key_of(name, definitions)
        page = log.last(key, limit) if since is None else log.since(key, since, limit)
        items = [item_of(each, definitions) for each in page.items]
    return FeedItems(items=items, next=page.next, complete=page.is_complete)


# --- posting --------------------------------------------------------------------------------------


class RejectedEvent(BaseModel):
    event: int = Field(description="Which of the request, from 1.")
    reason: str


class PostedEvents(BaseModel):
    position: int = Field(description="Of the accepted events in the spool; 0: there are none.")
    accepted: int
    rejected: int = 0
    reasons: list[RejectedEvent] = []


_EVENT = {"type": "object", "additionalProperties": True}
_EVENTS = {"type": "array", "items": _EVENT}
_BODY = {
    "required": True,
    "content": {
        "application/json": {"schema": {"anyOf": [_EVENT, _EVENTS]}},
        "application/x-ndjson": {"schema": {"type": "string"}},
        "application/cloudevents+json": {"schema": _EVENT},
        "application/cloudevents-batch+json": {"schema": _EVENTS},
    },
}


@router.post(
    "/sources/{name}/items",
    status_code=202,
    response_class=Response,
    response_model=PostedEvents,
    openapi_extra={"requestBody": _BODY},
)
async def post_items(
    name: Name,
    request: Request,
    caller: AnyCaller,
    idempotency_key: Annotated[
        str | None,
        Header(
            max_length=KEY_LENGTH_MAX,
            description="Events that come again with it are accepted once.",
        ),
    ] = None,
) -> Response:
    """Post events: a JSON object, an array of objects, lines of JSON (application/x-ndjson), or
    CloudEvents (binary, structured, batch), gzipped or not. Those that fit the schema are on disk
    when the answer is sent; the answer names the others."""
    return await _post(caller, name, request, idempotency_key or "")


async def post_quickly(request: Request) -> Response:
    """`post_items` without the framework's handling of parameters, which takes longer than all the
    rest of a small post. The application asks it first (app.py)."""
    name, key = request.path_params["name"], request.headers.get("idempotency-key", "")
    if len(name) > NAME_LENGTH_MAX or len(key) > KEY_LENGTH_MAX:
        raise HTTPException(
            422, f"A name has at most {NAME_LENGTH_MAX} characters, a key {KEY_LENGTH_MAX}"
        )
    return await _post(await caller_of(request, await bearer(request)), name, request, key)


async def _post(caller: Caller, name: str, request: Request, key: str) -> Response:
    caller.require(Scope.POST)
    body = await read_body(request, bytes_max=POST_BYTES_MAX)
    caller.take(len(body) / BYTES_PER_REQUEST)
    coding = request.headers.get("content-encoding", "")
    content_type = request.headers.get("content-type", "")
    if is_cloud_events(content_type, request.headers):
        return await _post_events(caller, name, request.headers, body)
    is_lines = "ndjson" in content_type
    if coding or len(body) > SMALL_BYTES_MAX:
        lines = await run_in_threadpool(_lines, body, coding, is_lines)
    else:
        lines = _lines(body, coding, is_lines)
    kept = _own_source(caller, name)
    try:
        posted = await caller.service.posts.post(NewPost(kept, lines, key))
    except CatalogError as error:
        raise _in_names_of_tenant(error, kept, name) from None
    return _answer(caller, posted)


async def _post_events(
    caller: Caller, name: str, headers: Mapping[str, str], body: bytes
) -> Response:
    """CloudEvents: each is accepted or refused by itself, and has its own key."""
    kept = _own_source(caller, name)
    found = await run_in_threadpool(_read_events, headers, body)
    good = {
        number: each for number, each in enumerate(found, 1) if not isinstance(each, InvalidValue)
    }
    refused = {
        number: str(each) for number, each in enumerate(found, 1) if isinstance(each, InvalidValue)
    }
    posts = [NewPost(kept, [each.line], each.key) for each in good.values()]
    positions: list[int] = []
    for number, posted in zip(good, await caller.service.posts.post_each(posts), strict=True):
        if isinstance(posted, CatalogError):
            raise _in_names_of_tenant(posted, kept, name)
        if isinstance(posted, InvalidValue):
            refused[number] = "another event with this source and id was posted before"
        elif isinstance(posted, HeadgateError):
            raise posted
        elif posted.rejected:
            refused[number] = posted.rejected[0][1]
        else:
            positions.append(posted.position)
    first = min(positions, default=0)
    return _answer(caller, Posted(first, len(positions), tuple(sorted(refused.items()))))


def _read_events(headers: Mapping[str, str], body: bytes) -> list[EventPost | InvalidValue]:
    return read_cloud_events(headers, _decoded(body, headers.get("content-encoding", "")))


def _own_source(caller: Caller, name: str) -> str:
    """The kept name of a source of the tenant."""
    view = caller.catalog.view
    kept = view.kept(name)
    if not view.owns(kept):
        raise UnknownName(f"there is no source '{name}'")
    return kept


def _in_names_of_tenant(error: CatalogError, kept: str, name: str) -> CatalogError:
    return type(error)(str(error).replace(f"'{kept}'", f"'{name}'"))


def _answer(caller: Caller, posted: Posted) -> Response:
    caller.service.figures.add_posts(accepted=posted.accepted, rejected=len(posted.rejected))
    reasons = [RejectedEvent(event=number, reason=why) for number, why in posted.rejected]
    answer = PostedEvents(
        position=posted.position,
        accepted=posted.accepted,
        rejected=len(reasons),
        reasons=reasons[:REJECTED_SHOWN_MAX],
    )
    return Response(answer.model_dump_json(), 202, media_type="application/json")


def _decoded(body: bytes, coding: str) -> bytes:
    if coding == "gzip":
        return _unzipped(body)
    if coding not in ("", "identity"):
        raise HTTPException(415, "The body may be gzipped, not encoded otherwise")
    return body


def _lines(body: bytes, coding: str, is_lines: bool) -> list[bytes]:
    body = _decoded(body, coding)
    return body.split(b"\n") if is_lines else list(_events(body))


def _unzipped(body: bytes) -> bytes:
    try:
        reader = zlib.decompressobj(wbits=31)
        data = reader.decompress(body, POST_BYTES_MAX + 1)
    except zlib.error:
        raise HTTPException(400, "The body is not gzipped as it says") from None
    if len(data) > POST_BYTES_MAX:
        raise HTTPException(413, f"The body has more than {POST_BYTES_MAX:,} bytes")
    if not reader.eof or reader.unused_data:
        raise HTTPException(400, "The gzipped body is cut off, or something follows it")
    return data


def _events(body: bytes) -> Iterator[bytes]:
    """The objects of a JSON document, a line each."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidValue(
            "the body is no JSON; lines of JSON have the type application/x-ndjson"
        ) from None
    for event in document if isinstance(document, list) else [document]:
        yield json.dumps(event, ensure_ascii=True).encode()
