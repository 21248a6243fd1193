"""`/v1/reading`: what the caller reads, for pages and programs of our own.

    feeds      those that are followed, with unread counts (at most 1,000 each); follow, unfollow;
               a URL is registered and followed
    items      reading_items.py
    live       reading_live.py
    marks      items: read or unread, starred or not
    read-all   a feed, a label or everything, below a position
    password   what other feed readers sign in with, for an account

The state is that of the account whose session it is; of a program, that of its token
(catalog/following.py). Feed readers see and change the same state (google_reader.py, fever.py).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, Field

from headgate.acquire.limits import DEFAULT_LIMITS
from headgate.api.opml import register_web_feed
from headgate.catalog.definitions import DefinitionKind
from headgate.catalog.following import LABEL_LENGTH_MAX, reader_name
from headgate.catalog.principals import Scope
from headgate.match.batch import instant_at
from headgate.model.errors import NotAllowed
from headgate.service.caller import AnyCaller, Caller
from headgate.service.definitions import Name
from headgate.service.problems import RESPONSES
from headgate.service.reader_entries import ReaderFeed, reader_feed, reader_feeds
from headgate.service.reading_items import (
    POSITION_MAX,
    chosen_feeds,
    count_unread,
    reading_of,
)
from headgate.service.reading_log import COUNT_MAX, UnreadCount
from headgate.service.reading_marks import mark_all, mark_items

MARKS_MAX = 1_000
Position = Annotated[int, Field(ge=0, le=POSITION_MAX)]
router = APIRouter(prefix="/v1/reading", tags=["reading"], responses=RESPONSES)


class ReadingFeed(BaseModel):
    name: str
    kind: DefinitionKind
    title: str
    label: str = Field(description="Its folder; empty: none.")
    unread: int = Field(description=f"At most {COUNT_MAX:,}, which means that or more.")
    newest_unread: datetime | None = None
    read_below: int = Field(description="Its items below this position are read.")

    @classmethod
    def of(cls, feed: ReaderFeed, count: UnreadCount) -> ReadingFeed:
        return cls(
            name=feed.followed.name,
            kind=feed.followed.kind,
            title=feed.title,
            label=feed.label,
            unread=count.count,
            newest_unread=instant_at(count.newest_us) if count.count else None,
            read_below=feed.followed.read_below,
        )


class ReadingFeeds(BaseModel):
    feeds: list[ReadingFeed]
    unread: int = Field(description="Items, each counted once; at most 1,000, as above.")
    starred: int
    position: int = Field(description="Behind the last item: `below` of what is marked next.")


class FollowedSettings(BaseModel):
    label: str | None = Field(None, max_length=LABEL_LENGTH_MAX, description="Empty: no label.")
    title: str | None = Field(None, max_length=LABEL_LENGTH_MAX)


class WebFeedToFollow(FollowedSettings):
    url: str = Field(min_length=1, max_length=DEFAULT_LIMITS.url_length_max)


class NewMarks(BaseModel):
    positions: list[Position] = Field(min_length=1, max_length=MARKS_MAX)
    read: bool | None = None
    starred: bool | None = None


class ReadAll(BaseModel):
    feed: str | None = Field(None, max_length=250, description="A followed feed.")
    label: str | None = Field(None, max_length=LABEL_LENGTH_MAX)
    below: Position | None = Field(None, description="None: all that there are now.")


class NewReaderPassword(BaseModel):
    login: str
    password: str = Field(description="Shown only here.")


class ReaderPasswordEntry(BaseModel):
    login: str
    created_at: datetime


# --- feeds ----------------------------------------------------------------------------------------


@router.get("/feeds", response_model_exclude_none=True)
def followed_feeds(caller: AnyCaller) -> ReadingFeeds:
    """The followed feeds by title; who has never chosen follows the first 500 of the tenant."""
    reading = reading_of(caller)
    counts = reading.unread_counts()
    feeds = [ReadingFeed.of(each, counts[each.feed_id]) for each in reader_feeds(reading)]
    return ReadingFeeds(
        feeds=feeds,
        unread=count_unread(reading, COUNT_MAX),
        starred=len(reading.stars),
        position=reading.end,
    )


@router.post("/feeds", status_code=201, response_model_exclude_none=True)
def follow_web_feed(new: WebFeedToFollow, caller: AnyCaller) -> ReadingFeed:
    """Register a web feed, unless the tenant has one with this URL, and follow it."""
    catalog = caller.require(Scope.READ).require(Scope.WRITE).catalog
    name = register_web_feed(catalog, new.url)
    feed = catalog.follow(name, label=new.label, title=new.title)
    counts = reading_of(caller).unread_counts()
    return ReadingFeed.of(reader_feed(feed), counts.get(feed.feed_id, UnreadCount()))


@router.put("/feeds/{name}", response_model_exclude_none=True)
def follow(name: Name, settings: FollowedSettings, caller: AnyCaller) -> ReadingFeed:
    """Follow a feed or source, or change its label and title for this reader."""
    catalog = caller.require(Scope.READ).catalog
    feed = catalog.follow(name, label=settings.label, title=settings.title)
    counts = reading_of(caller).unread_counts()
    return ReadingFeed.of(reader_feed(feed), counts.get(feed.feed_id, UnreadCount()))


@router.delete("/feeds/{name}", status_code=204)
def unfollow(name: Name, caller: AnyCaller) -> None:
    """What was read of it stays read, if it is followed again."""
    caller.require(Scope.READ).catalog.unfollow(name)


# --- marks ----------------------------------------------------------------------------------------


@router.post("/marks", status_code=204)
def mark(marks: NewMarks, caller: AnyCaller) -> None:
    """Mark items. Those that the followed feeds do not have are left out."""
    mark_items(reading_of(caller), marks.positions, is_read=marks.read, is_starred=marks.starred)


@router.post("/read-all", status_code=204)
def read_all(wanted: ReadAll, caller: AnyCaller) -> None:
    """Mark the items of a feed, of a label, or of all followed feeds as read."""
    reading = reading_of(caller)
    mark_all(reading, chosen_feeds(reading, wanted.feed, wanted.label), wanted.below)


# --- the password of other readers ----------------------------------------------------------------


def _account(caller: Caller) -> str:
    kind, name = reader_name(caller.require(Scope.READ).principal)
    if kind != "account":
        raise NotAllowed("a reader password is for an account; a program has its API token")
    return name


@router.get("/password", response_model_exclude_none=True)
def reader_password(caller: AnyCaller) -> ReaderPasswordEntry:
    """Whether feed readers can sign in, and since when."""
    account, tenant = _account(caller), caller.principal.tenant
    found = caller.service.headgate.catalog.reader_passwords.get(account, tenant)
    if found is None:
        raise HTTPException(404, "There is no reader password; make one by POST")
    return ReaderPasswordEntry(login=f"{account}/{tenant}", created_at=found.created_at)


@router.post("/password", status_code=201)
def create_reader_password(caller: AnyCaller) -> NewReaderPassword:
    """A password for feed readers (Google Reader API, Fever). One that there was ends."""
    account, tenant = _account(caller), caller.principal.tenant
    passwords = caller.service.headgate.catalog.reader_passwords
    made = passwords.create(account, tenant, actor=caller.principal.actor)
    return NewReaderPassword(login=f"{account}/{tenant}", password=made.password)


@router.delete("/password", status_code=204)
def revoke_reader_password(caller: AnyCaller) -> None:
    """Feed readers are refused within two seconds."""
    account, tenant = _account(caller), caller.principal.tenant
    passwords = caller.service.headgate.catalog.reader_passwords
    passwords.revoke(account, tenant, actor=caller.principal.actor)
