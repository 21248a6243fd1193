"""An entry: what the renderers need of an item, cleaned and sanitised once for all of them.

    attribute                  in the entry
    title                      title; without one, the beginning of the text, or source and time
    link, comments, enclosure  links; dropped if they are no http, https, ftp or mailto
    content, else description  the body, as sanitised HTML and as text
    author, category, …        as they are, on one line
    published, updated         times; without them, the item's own
    all other attributes       a list below the body: price 150, destination Paris
    annotations ([RoSeS §3.2])  related entries, and a list of links below the body

The id is a name-based UUID of source and item id: the same in every feed, format and run, also
where readers know the source by another name.
"""

from __future__ import annotations

import html
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from headgate.deliver.clean_text import html_to_text, one_line, safe_html, safe_link, xml_characters
from headgate.deliver.item_encoding import in_order
from headgate.model.items import Item
from headgate.model.schema import FEED_SCHEMA
from headgate.model.text import normal_link, xml_text
from headgate.model.values import Value, Xml

NAMESPACE = uuid.UUID("6f0ad3f6-7c4b-5d0e-9d0f-0a4a4c6e2b11")
RELATED_MAX = 50
_SHOWN_ELSEWHERE = frozenset(FEED_SCHEMA.names)


@dataclass(frozen=True, slots=True)
class TransformedText:
    """The output of a stylesheet that is not an item."""

    text: str
    is_html: bool


@dataclass(frozen=True, slots=True)
class RelatedItem:
    """An item that a join has found."""

    title: str
    source: str
    link: str | None
    enclosure: str | None


@dataclass(frozen=True, slots=True)
class OutputEntry:
    """Every text in it is clean; what ends in `html` is sanitised HTML. `body` is text."""

    id: str
    title: str
    source: str
    updated: datetime
    published: datetime | None
    link: str | None
    comments: str | None
    enclosure: str | None
    author: str
    category: str
    language: str
    summary: str
    body: str
    body_html: str
    related: tuple[RelatedItem, ...]
    transformed: str | None
    """The output of a stylesheet that is not an item; shown alone where no title is needed."""

    @property
    def is_transformed(self) -> bool:
        return self.transformed is not None

    @property
    def shown_at(self) -> datetime:
        """The date under which readers sort it."""
        return self.published or self.updated


@dataclass(frozen=True, slots=True)
class OutputDocument:
    """The content of one feed document, the newest entry first."""

    id: str
    title: str
    entries: tuple[OutputEntry, ...]
    address: str = ""
    """The URL of the document itself, where it has one."""
    hub: str = ""
    """The URL of the hub that sends new versions of it, where there is one (WebSub)."""

    @property
    def updated(self) -> datetime:
        """That of the latest entry, so that the same entries give the same bytes."""
        return max(
            (each.updated for each in self.entries), default=datetime(1970, 1, 1, tzinfo=UTC)
        )


def site_of(link: str | None) -> str | None:
    """The front page of the site that a link leads to.

    >>> site_of("https://muse.mu/news/1?a=b")
    'https://muse.mu/'
    """
    parts = normal_link(link) if link else None
    return f"{parts.scheme}://{parts.host}/" if parts and parts.scheme and parts.host else None


def stable_id(*names: str) -> str:
    """A URN that depends on the names only."""
    key = "\0".join(f"{len(name)}:{name}" for name in names)
    digest = uuid.uuid5(NAMESPACE, key.encode("utf-8", "backslashreplace").decode())
    return digest.urn


def entry_of(
    item: Item,
    transformed: TransformedText | None = None,
    *,
    name_of: Callable[[str], str] = str,
) -> OutputEntry:
    """The entry of an item, or of the text that a stylesheet has made of it. `name_of` is the name
    by which readers know a source."""
    link = _link(item, "link")
    related = tuple(_related(item, name_of))
    source = one_line(name_of(item.source))
    summary = html_to_text(_text(item, "description"))
    body_html = (
        _body_html(item, link, related)
        if transformed is None
        else _transformed_html(transformed, link)
    )
    body = html_to_text(body_html)
    if transformed is not None and not transformed.is_html:
        body = xml_characters(transformed.text).strip()
    published = _time(item, "published")
    return OutputEntry(
        id=stable_id("item", item.source, item.id),
        title=_title(item, summary or body, source),
        source=source,
        updated=_time(item, "updated") or published or utc(item.time),
        published=published,
        link=link,
        comments=_link(item, "comments"),
        enclosure=_link(item, "enclosure"),
        author=one_line(_text(item, "author")),
        category=one_line(_text(item, "category")),
        language=one_line(_text(item, "language"), 35),
        summary=summary,
        body=body,
        body_html=body_html,
        related=related,
        transformed=None if transformed is None else xml_characters(transformed.text),
    )


def utc(time: datetime) -> datetime:
    """The instant in UTC; unchanged where the shift would leave the calendar (years 1 and 9999)."""
    if time.tzinfo is None:
        return time.replace(tzinfo=UTC)
    try:
        return time.astimezone(UTC)
    except OverflowError:
        return time.replace(tzinfo=UTC)


def shown_value(value: Value) -> str:
    """A value as readers see it."""
    match value:
        case datetime():
            return utc(value).isoformat(sep=" ", timespec="seconds")
        case bytes():
            return f"{len(value):,} bytes"
        case bool():
            return "yes" if value else "no"
        case Xml():
            return one_line(xml_text(value))
    return one_line(str(value))


def _text(item: Item, name: str) -> str:
    value = item.attributes.get(name)
    if isinstance(value, Xml):
        return str(value)
    return value if isinstance(value, str) else ""


def _link(item: Item, name: str) -> str | None:
    return safe_link(_text(item, name))


def _time(item: Item, name: str) -> datetime | None:
    value = item.attributes.get(name)
    return utc(value) if isinstance(value, datetime) else None


def _title(item: Item, text: str, source: str) -> str:
    title = one_line(_text(item, "title")) or one_line(text, 80)
    return title or f"{source}, {shown_value(item.time)}"


def _body_html(item: Item, link: str | None, related: tuple[RelatedItem, ...]) -> str:
    text = _text(item, "content") or _text(item, "description")
    return "".join([safe_html(text, link), _other_attributes(item), related_html(related)])


def _transformed_html(transformed: TransformedText, link: str | None) -> str:
    if transformed.is_html:
        return safe_html(transformed.text, link)
    return f"<pre>{html.escape(xml_characters(transformed.text).strip(), quote=False)}</pre>"


def _other_attributes(item: Item) -> str:
    names = sorted(name for name in item.attributes if name not in _SHOWN_ELSEWHERE)
    rows = [
        f"<dt>{html.escape(one_line(name))}</dt>"
        f"<dd>{html.escape(shown_value(item.attributes[name]))}</dd>"
        for name in names
    ]
    return f"<dl>{''.join(rows)}</dl>" if rows else ""


def _related(item: Item, name_of: Callable[[str], str]) -> Iterator[RelatedItem]:
    found = frozenset(each for annotation in item.annotations for each in annotation.items)
    for each in in_order(found)[:RELATED_MAX]:
        summary = html_to_text(_text(each, "description"))
        link, enclosure = _link(each, "link"), _link(each, "enclosure")
        source = one_line(name_of(each.source))
        yield RelatedItem(_title(each, summary, source), source, link, enclosure)


def related_html(related: tuple[RelatedItem, ...]) -> str:
    rows = []
    for each in related:
        title, source = html.escape(each.title), html.escape(each.source)
        link = each.link or each.enclosure
        shown = f'<a href="{html.escape(link)}">{title}</a>' if link else title
        rows.append(f"<li>{shown} ({source})</li>")
    return f"<ul>{''.join(rows)}</ul>" if rows else ""
