"""The Google Reader API, as feed readers speak it: what they read.

    token, user-info                   who it is
    subscription/list, tag/list        feeds and labels, with an ETag
    unread-count                       at most 1,000 for a feed
    stream/items/ids                   ids of a stream, page by page
    stream/items/contents              items by id
    stream/contents[/STREAM]           items of a stream
    /reader/atom/STREAM                the same as Atom, for Newsboat
    preference/list, friend/list       empty; some clients ask

Writes: google_reader_edits.py. Clients differ in what they call and how they write ids and streams
(reader_ids.py, reader_streams.py); a parameter may be in the query or in the body of a POST. There
is no published standard: what is here was read from the behaviour of clients, and the tests speak
as those do.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from headgate.service.caller import Caller, base_of
from headgate.service.reader_caller import AnyForm, ReaderCaller
from headgate.service.reader_entries import (
    google_item,
    google_subscription,
    labels_of,
    reader_feeds,
    reader_items,
)
from headgate.service.reader_ids import (
    LABEL_PREFIX,
    STATE_PREFIX,
    ReaderStream,
    StreamKind,
    read_item_id,
    read_stream,
)
from headgate.service.reader_streams import (
    IDS_MAX,
    ITEMS_MAX,
    atom_document,
    feeds_of,
    page_of,
    stream_document,
    wanted_items,
)
from headgate.service.reading_log import COUNT_MAX, Reading, UnreadCount

API = "/reader/api/0"
ALL = ReaderStream(StreamKind.READING_LIST)
ATOM_TYPE = "application/atom+xml; charset=utf-8"
router = APIRouter(include_in_schema=False)


def reading_of(caller: Caller) -> Reading:
    return Reading(caller.catalog, caller.service.log)


def conditional(request: Request, body: bytes, media_type: str) -> Response:
    """An answer with an ETag of its content, or 304."""
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"etag": etag, "cache-control": "private, no-cache"}
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=media_type)


def _conditional_json(request: Request, document: dict[str, Any]) -> Response:
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return conditional(request, body, "application/json")


# --- who, and what is followed --------------------------------------------------------------------


@router.api_route(f"{API}/token", methods=["GET", "POST"])
def write_token(caller: ReaderCaller) -> Response:
    """What clients send with a write. The header proves who they are, so it proves nothing."""
    digest = hashlib.sha256(f"{caller.principal.tenant} {caller.principal.actor}".encode())
    return PlainTextResponse(digest.hexdigest()[:57])


@router.get(f"{API}/user-info")
def user_info(caller: ReaderCaller) -> Response:
    id_ = str(caller.catalog.reader_id())
    name = caller.principal.actor.partition(" ")[2]
    names = {"userName": f"{name}/{caller.principal.tenant}", "userEmail": name}
    return JSONResponse({"userId": id_, "userProfileId": id_, **names})


@router.get(f"{API}/subscription/list")
def subscription_list(request: Request, caller: ReaderCaller) -> Response:
    base = base_of(request, caller)
    feeds = reader_feeds(reading_of(caller))
    return _conditional_json(
        request, {"subscriptions": [google_subscription(each, base) for each in feeds]}
    )


@router.get(f"{API}/tag/list")
def tag_list(request: Request, caller: ReaderCaller) -> Response:
    states = [{"id": f"{STATE_PREFIX}starred"}]
    labels = labels_of(reader_feeds(reading_of(caller)))
    folders = [{"id": f"{LABEL_PREFIX}{each}", "type": "folder"} for each in labels]
    return _conditional_json(request, {"tags": states + folders})


@router.get(f"{API}/unread-count")
def unread_count(caller: ReaderCaller) -> Response:
    reading = reading_of(caller)
    counts = reading.unread_counts()
    found: dict[str, UnreadCount] = {str(ALL): UnreadCount()}
    for feed in reader_feeds(reading):
        own = counts[feed.feed_id]
        labels = [f"{LABEL_PREFIX}{feed.label}"] if feed.label else []
        for stream in (feed.stream, str(ALL), *labels):
            total = found.setdefault(stream, UnreadCount())
            total.count += own.count
            total.newest_us = max(total.newest_us, own.newest_us)
    rows = [
        {"id": stream, "count": each.count, "newestItemTimestampUsec": str(each.newest_us)}
        for stream, each in found.items()
        if each.count
    ]
    return JSONResponse({"max": COUNT_MAX, "unreadcounts": rows})


@router.get(f"{API}/preference/list")
def preferences(_caller: ReaderCaller) -> Response:
    return JSONResponse({"prefs": []})


@router.get(f"{API}/preference/stream/list")
def stream_preferences(_caller: ReaderCaller) -> Response:
    return JSONResponse({"streamprefs": {}})


@router.get(f"{API}/friend/list")
def friends(_caller: ReaderCaller) -> Response:
    return JSONResponse({"friends": []})


# --- items ----------------------------------------------------------------------------------------


@router.api_route(f"{API}/stream/items/ids", methods=["GET", "POST"])
def item_ids(caller: ReaderCaller, form: AnyForm) -> Response:
    """The ids of a stream, as decimal texts."""
    reading = reading_of(caller)
    stream = read_stream(form.first("s")) if "s" in form else ALL
    found = reading.page(wanted_items(reading, stream, form, limit_max=IDS_MAX))
    document: dict[str, Any] = {
        "itemRefs": [
            {"id": str(id_), "directStreamIds": [], "timestampUsec": str(arrived_us)}
            for id_, arrived_us in found.references
        ]
    }
    if found.has_more:
        document["continuation"] = str(found.references[-1].id)
    return JSONResponse(document)


@router.api_route(f"{API}/stream/items/contents", methods=["GET", "POST"])
def item_contents(request: Request, caller: ReaderCaller, form: AnyForm) -> Response:
    """Items by their ids, in any form, as many as fit into an answer."""
    read = [read_item_id(each) for each in form.all("i")[:ITEMS_MAX]]
    ids = list(dict.fromkeys(each for each in read if each is not None))
    base = base_of(request, caller)
    items = reader_items(caller, reading_of(caller), ids)
    document = {
        "direction": "ltr",
        "id": str(ALL),
        "title": "Headgate",
        "updated": max((each.entry.item.arrived_us // 1_000_000 for each in items), default=0),
        "items": [google_item(each, base) for each in items],
    }
    return JSONResponse(document)


@router.api_route(f"{API}/stream/contents", methods=["GET", "POST"])
@router.api_route(f"{API}/stream/contents/{{name:path}}", methods=["GET", "POST"])
def stream_contents(
    request: Request, caller: ReaderCaller, form: AnyForm, name: str = ""
) -> Response:
    reading = reading_of(caller)
    stream = read_stream(name or form.first("s") or str(ALL))
    page = page_of(caller, reading, wanted_items(reading, stream, form, limit_max=ITEMS_MAX))
    title, base = _title(reading, stream), base_of(request, caller)
    return JSONResponse(stream_document(stream, title, page, base))


@router.get("/reader/atom/{name:path}")
def stream_atom(request: Request, caller: ReaderCaller, form: AnyForm, name: str) -> Response:
    reading = reading_of(caller)
    stream = read_stream(name)
    page = page_of(caller, reading, wanted_items(reading, stream, form, limit_max=ITEMS_MAX))
    document = atom_document(stream, _title(reading, stream), page.items)
    return conditional(request, document, ATOM_TYPE)


def _title(reading: Reading, stream: ReaderStream) -> str:
    if stream.kind is StreamKind.FEED:
        return next((each.title for each in feeds_of(reading, stream)), "")
    return stream.name or "Headgate"
