"""The Google Reader API, as feed readers speak it: what they write.

    edit-tag                 marks items: read, kept-unread, starred       scope `read`
    mark-all-as-read         a stream, until an instant
    subscription/edit        follow, unfollow, title, label
    rename-tag, disable-tag  labels of followed feeds
    subscription/quickadd    a URL is registered and followed              scope `write`
    subscription/import      an OPML list, the same                        scope `write`

Each answers `OK` and nothing else, or JSON (quickadd). All can be repeated. A URL is registered by
the statement that OPML lists are registered by, with its checks; nothing is fetched here. What
quickadd is given may also be the name of a feed, as the tenant calls it.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, PlainTextResponse

from headgate.api.opml import ImportState, import_opml, register_web_feed
from headgate.catalog.following import FollowedFeed
from headgate.catalog.principals import Scope
from headgate.model.errors import HeadgateError, NotAllowed
from headgate.service.caller import Caller
from headgate.service.google_reader import ALL, API, reading_of
from headgate.service.opml import BYTES_MAX as OPML_BYTES_MAX
from headgate.service.opml import LIMITS as OPML_LIMITS
from headgate.service.reader_caller import AnyForm, ReaderCaller, ReaderForm
from headgate.service.reader_entries import reader_feed, reader_feeds
from headgate.service.reader_ids import (
    ReaderStream,
    StreamKind,
    parts_of,
    read_item_id,
    read_stream,
)
from headgate.service.reader_streams import feeds_of, instant_us
from headgate.service.reading_marks import mark_all, mark_items
from headgate.service.request_body import read_body

IDS_MAX = 10_000
STREAMS_MAX = 1_000
router = APIRouter(include_in_schema=False)


def done() -> Response:
    return PlainTextResponse("OK")


@router.post(f"{API}/edit-tag")
def edit_tag(caller: ReaderCaller, form: AnyForm) -> Response:
    read = [read_item_id(each) for each in form.all("i")[:IDS_MAX]]
    positions = {parts_of(each)[0] for each in read if each is not None}
    is_read, is_starred = _state(form)
    mark_items(reading_of(caller), positions, is_read=is_read, is_starred=is_starred)
    return done()


def _state(form: ReaderForm) -> tuple[bool | None, bool | None]:
    """What an edit sets, read and starred; what it adds counts more than what it removes."""
    added = {read_stream(each).kind for each in form.all("a")}
    removed = {read_stream(each).kind for each in form.all("r")}
    is_read, is_starred = None, None
    if StreamKind.READ in added:
        is_read = True
    elif StreamKind.KEPT_UNREAD in added or StreamKind.READ in removed:
        is_read = False
    if StreamKind.STARRED in added:
        is_starred = True
    elif StreamKind.STARRED in removed:
        is_starred = False
    return is_read, is_starred


@router.post(f"{API}/mark-all-as-read")
def mark_all_as_read(caller: ReaderCaller, form: AnyForm) -> Response:
    reading = reading_of(caller)
    until = instant_us(form.first("ts"))
    below = None if until is None else reading.position_at(until)
    feeds: dict[int, FollowedFeed] = {}
    for text in form.all("s")[:STREAMS_MAX] or [str(ALL)]:
        stream = read_stream(text)
        if stream.kind is StreamKind.STARRED:
            mark_items(reading, reading.stars, is_read=True)
        else:
            feeds |= {each.feed_id: each.followed for each in feeds_of(reading, stream)}
    mark_all(reading, list(feeds.values()), below)
    return done()


# --- following ------------------------------------------------------------------------------------


@router.post(f"{API}/subscription/edit")
def edit_subscription(caller: ReaderCaller, form: AnyForm) -> Response:
    action = form.first("ac")
    if action not in ("subscribe", "unsubscribe", "edit"):
        raise HTTPException(400, "ac is one of: subscribe, unsubscribe, edit")
    titles = form.all("t")
    for number, text in enumerate(form.all("s")[:STREAMS_MAX]):
        stream = read_stream(text)
        title = titles[number].strip() if number < len(titles) else ""
        if action == "unsubscribe":
            for feed in _known(caller, stream):
                caller.catalog.unfollow(feed.name)
            continue
        name = _name_of(caller, stream) if action == "subscribe" else _followed(caller, stream)
        caller.catalog.follow(name, label=_label(caller, name, form), title=title or None)
    return done()


def _known(caller: Caller, stream: ReaderStream) -> Sequence[FollowedFeed]:
    return [each.followed for each in feeds_of(reading_of(caller), stream)]


def _followed(caller: Caller, stream: ReaderStream) -> str:
    for feed in _known(caller, stream):
        return feed.name
    raise HTTPException(404, "This feed is not followed")


def _name_of(caller: Caller, stream: ReaderStream) -> str:
    """The name of what is to be followed: by its id, by a URL, or by itself."""
    if stream.kind is not StreamKind.FEED:
        raise HTTPException(400, "s is feed/ID, feed/URL or feed/NAME")
    if stream.feed_id:
        rows = reading_of(caller).feeds
        for feed in rows:
            if feed.feed_id == stream.feed_id:
                return feed.name
        raise HTTPException(404, "There is no such feed")
    return _registered(caller, stream.name)


def _registered(caller: Caller, text: str) -> str:
    if ":/" not in text:
        return text
    caller.require(Scope.WRITE)
    # A path with doubled slashes may have lost one of the URL's.
    scheme, _, rest = text.partition(":/")
    return register_web_feed(caller.catalog, f"{scheme}://{rest.lstrip('/')}")


def _label(caller: Caller, name: str, form: ReaderForm) -> str | None:
    """The label that an edit adds; '' if it removes the one that there is."""
    for stream in map(read_stream, form.all("a")):
        if stream.kind is StreamKind.LABEL:
            return stream.name
    removed = {each.name for each in map(read_stream, form.all("r"))}
    labels = [reader_feed(each).label for each in reading_of(caller).feeds if each.name == name]
    return "" if removed & set(labels) else None


@router.post(f"{API}/subscription/quickadd")
def quick_add(caller: ReaderCaller, form: AnyForm) -> Response:
    query = form.first("quickadd").strip()
    try:
        name = _registered(caller, query.removeprefix("feed/"))
        feed = reader_feed(caller.catalog.follow(name))
    except NotAllowed:
        raise
    except HeadgateError as error:
        return JSONResponse({"numResults": 0, "query": query[:2_000], "error": str(error)})
    named = {"streamId": feed.stream, "streamName": feed.title}
    return JSONResponse({"numResults": 1, "query": query[:2_000], **named})


@router.post(f"{API}/subscription/import")
async def import_subscriptions(request: Request, caller: ReaderCaller) -> Response:
    caller.require(Scope.WRITE)
    body = await read_body(request, bytes_max=OPML_BYTES_MAX)
    return await run_in_threadpool(_import, caller, body)


def _import(caller: Caller, body: bytes) -> Response:
    found = import_opml(caller.catalog, body, limits=OPML_LIMITS)
    if not found.feeds and found.bad_lines:
        raise HTTPException(400, f"This is no OPML: {found.bad_lines[0]}")
    names = [each.name for each in found.feeds if each.state is not ImportState.REFUSED]
    caller.catalog.follow_all(names)
    return done()


# --- labels ---------------------------------------------------------------------------------------


@router.post(f"{API}/rename-tag")
def rename_tag(caller: ReaderCaller, form: AnyForm) -> Response:
    new = read_stream(form.first("dest"))
    if new.kind is not StreamKind.LABEL or not new.name:
        raise HTTPException(400, "dest is user/-/label/NAME")
    _relabel(caller, form, new.name)
    return done()


@router.post(f"{API}/disable-tag")
def disable_tag(caller: ReaderCaller, form: AnyForm) -> Response:
    _relabel(caller, form, "")
    return done()


def _relabel(caller: Caller, form: ReaderForm, label: str) -> None:
    """Of the feeds with a label, named as a stream (`s`) or by itself (`t`)."""
    stream = read_stream(form.first("s"))
    old = stream.name if stream.kind is StreamKind.LABEL else form.first("t")
    if not old:
        raise HTTPException(400, "s is user/-/label/NAME")
    for feed in reader_feeds(reading_of(caller)):
        if feed.label == old:
            caller.catalog.follow(feed.followed.name, label=label)
