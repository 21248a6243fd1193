"""The Fever API at `/fever/?api`, which some feed readers on phones speak.

    selector          answer
    groups            labels, and which feeds they have
    feeds             the followed feeds
    favicons          one, for all
    items             50 at a time: behind `since_id`, before `max_id`, or `with_ids`
    unread_item_ids   the newest IDS_MAX, as numbers with commas
    saved_item_ids    those that are starred
    links             none
    mark              item: as read, unread, saved, unsaved; feed, group: as read, `before` (seconds
                      of arrival); group 0 is all

Several selectors come in one request; a mark is made first. The key is md5('login:password') of a
reader password, so nobody has one who has not made such a password. A wrong key is answered by 200
with `auth: 0`, as clients expect; guessing is slowed down by address.

Groups are known by numbers: a hash of the label, so that they stay the same without a table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from headgate.service.caller import Caller, address_of, base_of, service_of
from headgate.service.google_reader import reading_of
from headgate.service.reader_caller import (
    AnyForm,
    ReaderForm,
    caller_for,
    known_reader,
)
from headgate.service.reader_entries import (
    ReaderFeed,
    feeds_by_label,
    fever_item,
    home_page,
    reader_feeds,
    reader_items,
)
from headgate.service.reader_ids import parts_of, read_item_id
from headgate.service.reading_log import Reading, WantedItems
from headgate.service.reading_marks import mark_all, mark_items
from headgate.service.receivers import not_valid
from headgate.store.recent_counts import count_items

VERSION = 3
ITEMS_MAX = 50
IDS_MAX = 20_000
ALL_GROUPS = 0
ICON = "image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
router = APIRouter(include_in_schema=False)


@router.api_route("/fever", methods=["GET", "POST"])
@router.api_route("/fever/", methods=["GET", "POST"])
async def fever(request: Request, form: AnyForm) -> Response:
    if "api" not in form:
        return not_valid()
    service = service_of(request)
    key = form.first("api_key").strip()
    key = "" if key.startswith("hgr_") else key
    known = await known_reader(service, address_of(request), key)
    if known is None:
        return JSONResponse({"api_version": VERSION, "auth": 0})
    caller = caller_for(service, known)
    answer = await run_in_threadpool(_answer, caller, form, base_of(request, caller))
    return JSONResponse(answer)


def _answer(caller: Caller, form: ReaderForm, base: str) -> dict[str, Any]:
    reading = reading_of(caller)
    feeds = reader_feeds(reading)
    answer: dict[str, Any] = {
        "api_version": VERSION,
        "auth": 1,
        "last_refreshed_on_time": str(_newest_us(reading) // 1_000_000),
    }
    if "mark" in form:
        answer |= _mark(reading, feeds, form)
    if "groups" in form:
        titles = feeds_by_label(feeds)
        answer["groups"] = [{"id": group_id(each), "title": each} for each in titles]
    if "feeds" in form:
        answer["feeds"] = _feeds(reading, feeds, base)
    if "groups" in form or "feeds" in form:
        answer["feeds_groups"] = [
            {"group_id": group_id(label), "feed_ids": _joined(each.feed_id for each in members)}
            for label, members in feeds_by_label(feeds).items()
        ]
    if "favicons" in form:
        answer["favicons"] = [{"id": 1, "data": ICON}]
    if "items" in form:
        answer |= _items(caller, reading, form)
    if "unread_item_ids" in form:
        answer |= _unread_ids(reading)
    if "saved_item_ids" in form:
        answer |= _saved_ids(reading)
    if "links" in form:
        answer["links"] = []
    return answer


def _newest_us(reading: Reading) -> int:
    return reading.log.ask(lambda view: view.index.arrived_us) if reading.log.is_there else 0


def group_id(label: str) -> int:
    """A number above 0 that follows from the label."""
    digest = hashlib.sha256(label.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4]) >> 1 | 1


def _joined(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _feeds(reading: Reading, feeds: list[ReaderFeed], base: str) -> list[dict[str, Any]]:
    newest_s = _newest_us(reading) // 1_000_000
    return [
        {
            "id": each.feed_id,
            "favicon_id": 1,
            "title": each.title,
            "url": each.url or f"{base}/reader/atom/{each.stream}",
            "site_url": home_page(each, base),
            "is_spark": 0,
            "last_updated_on_time": newest_s,
        }
        for each in feeds
    ]


def _items(caller: Caller, reading: Reading, form: ReaderForm) -> dict[str, Any]:
    ids: list[int]
    if "with_ids" in form:
        read = [read_item_id(each) for each in form.first("with_ids").split(",")[:ITEMS_MAX]]
        ids = [each for each in read if each is not None]
    else:
        # Without any of them: from the first item on.
        highest = None if "since_id" in form else form.number("max_id")
        after = form.number("since_id") or None if highest is None else highest
        wanted = WantedItems(
            reading.followed, after=after, is_ascending=highest is None, limit=ITEMS_MAX
        )
        ids = [each.id for each in reading.page(wanted).references]
    items = reader_items(caller, reading, ids)
    return {"items": [fever_item(each) for each in items], "total_items": _total(reading)}


def _total(reading: Reading) -> int:
    if not reading.log.is_there:
        return 0
    keys = [each.log_key for each in reading.followed]
    return reading.log.ask(lambda view: count_items(view, keys))


def _unread_ids(reading: Reading) -> dict[str, Any]:
    found = reading.page(WantedItems(reading.followed, is_read=False, limit=IDS_MAX))
    return {"unread_item_ids": _joined(sorted(each.id for each in found.references))}


def _saved_ids(reading: Reading) -> dict[str, Any]:
    found = reading.page(WantedItems(reading.followed, is_starred=True, limit=IDS_MAX))
    return {"saved_item_ids": _joined(sorted(each.id for each in found.references))}


def _mark(reading: Reading, feeds: list[ReaderFeed], form: ReaderForm) -> dict[str, Any]:
    what, as_, id_ = form.first("mark"), form.first("as"), form.first("id")
    if what == "item":
        return _mark_item(reading, as_, read_item_id(id_))
    if what in ("feed", "group") and as_ == "read" and id_.isascii() and id_.isdecimal():
        number = int(id_[:18])
        chosen = [
            each.followed
            for each in feeds
            if (what == "feed" and each.feed_id == number)
            or (what == "group" and number in (ALL_GROUPS, group_id(each.label)))
        ]
        before = form.number("before")
        # The whole second: what we call the last refresh is a second, too.
        until = None if before is None else reading.position_at(before * 1_000_000 + 999_999)
        mark_all(reading, chosen, until)
        return _unread_ids(reading)
    return {}


def _mark_item(reading: Reading, as_: str, id_: int | None) -> dict[str, Any]:
    positions = [] if id_ is None else [parts_of(id_)[0]]
    if as_ in ("read", "unread"):
        mark_items(reading, positions, is_read=as_ == "read")
        return _unread_ids(reading)
    if as_ in ("saved", "unsaved"):
        mark_items(reading, positions, is_starred=as_ == "saved")
        return _saved_ids(reading)
    return {}
