"""A feed's bytes as entries, in any format: RSS 0.9x, 1.0, 2.0, Atom, JSON Feed.

The first character decides, since content types are often wrong: '{' is JSON Feed (below), '<' is
XML (parse_xml_feed.py). Any bytes give a `ParsedFeed` or a `FeedError`, within the limits.

    title, description, content, author, category, guid, language    plain text (plain_text.py)
    link, comments, enclosure                                        absolute http or https links
    published, updated                                               times in UTC, as stated

- Texts have no tags and no control characters, as filters look at words. The links of
  `description` and `content` are appended to the text; `FeedEntry.html` has the sanitised HTML.
- `description` exists only if the entry has a summary, `content` only if it has content.
- Of several categories, links or enclosures the first is kept: values are not lists.
- Links that are not http or https, and impossible times, are left out. A time in the future stays;
  identify.py does not use it.

JSON Feed 1.0 and 1.1 (jsonfeed.org) is mapped as follows. A number as `id` becomes text, as version
1.0 allowed. Extension attributes are looked for in the item and in its objects named '_…'.

    title            title             summary         description
    content_html     content           content_text    content, where there is no HTML
    url              link              id              guid
    authors, author  author            tags[0]         category
    date_published   published         date_modified   updated
    attachments[0]   enclosure         language        language
    external_url     link, where there is no url
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from headgate.acquire.document_text import decode_text
from headgate.acquire.feed_entries import (
    EntryBuilder,
    FeedEntry,
    FeedProblems,
    ParsedFeed,
    TextBudget,
    extension_attributes,
    first_text,
    read_time,
)
from headgate.acquire.limits import DEFAULT_LIMITS, IntakeLimits
from headgate.acquire.parse_xml_feed import parse_xml_feed
from headgate.acquire.plain_text import clean_text
from headgate.acquire.scan_xml_feed import folded_name
from headgate.model.errors import FeedError
from headgate.model.schema import FEED_SCHEMA, Schema


def parse_feed(
    body: bytes,
    *,
    content_type: str = "",
    url: str = "",
    schema: Schema = FEED_SCHEMA,
    limits: IntakeLimits = DEFAULT_LIMITS,
) -> ParsedFeed:
    """Parse the bytes of a feed; relative links are resolved against `url`."""
    if len(body) > limits.body_bytes_max:
        raise FeedError(f"it has more than {limits.body_bytes_max:,} bytes")
    problems = FeedProblems(limits.problems_max)
    text = decode_text(body, content_type, problems).lstrip()
    parse = parse_json_feed if text.startswith(("{", "[")) else parse_xml_feed
    return parse(text, base=url, schema=schema, limits=limits, problems=problems)


# --- JSON Feed ------------------------------------------------------------------------------------


def parse_json_feed(
    text: str, *, base: str, schema: Schema, limits: IntakeLimits, problems: FeedProblems
) -> ParsedFeed:
    """Parse a JSON Feed; `FeedError` if the text is not one."""
    if text.count("{") + text.count("[") > limits.elements_max:
        raise FeedError(f"its JSON has more than {limits.elements_max:,} objects and lists")
    document = _document(text)
    items = document.get("items")
    if not isinstance(items, list):
        raise FeedError("it is JSON, but no JSON Feed: it has no list of 'items'")
    language = first_text(document, "language")[:40] or None
    budget = TextBudget(limits)
    entries: list[FeedEntry] = []
    for number, item in _chosen(items, limits, problems):
        if not isinstance(item, dict):
            problems.add("it is no object", entry=number, left_out=1)
            continue
        values = EntryBuilder(number, base=base, limits=limits, budget=budget, problems=problems)
        fill(values, item, language=language)
        _fill_extensions(values, item, schema)
        entries.append(values.finished())
    title = clean_text(first_text(document, "title"))[: limits.attribute_length_max]
    kind = clean_text(first_text(document, "version"))[:60] or "json"
    return ParsedFeed(
        title, tuple(entries), problems.all(), format=kind, language=language, found=len(items)
    )


def _document(text: str) -> dict[str, object]:
    try:
        # Python's parser accepts NaN and Infinity, which are not JSON.
        document = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise FeedError("its JSON is nested too deep") from None
    except ValueError as error:
        raise FeedError(f"it is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise FeedError("it is JSON, but no JSON Feed: it is no object")
    return document


def _no_constant(name: str) -> object:
    raise ValueError(f"'{name}' is not a JSON value")


def _chosen(
    items: list[object], limits: IntakeLimits, problems: FeedProblems
) -> list[tuple[int, object]]:
    """The items to read: all, or the newest if there are too many; the first ones if a date is
    missing."""
    numbered = list(enumerate(items, 1))
    if len(numbered) <= limits.entries_max:
        return numbered
    left_out = len(numbered) - limits.entries_max
    reason = f"of {len(numbered):,} entries the newest {limits.entries_max:,} are read"
    problems.add(reason, left_out=left_out)
    times: list[datetime] = []
    for _, item in numbered:
        stated = (
            first_text(item, "date_published", "date_modified") if isinstance(item, dict) else ""
        )
        time = read_time(stated)
        if time is None:
            return numbered[: limits.entries_max]
        times.append(time)
    newest = sorted(range(len(times)), key=times.__getitem__, reverse=True)
    return [numbered[at] for at in sorted(newest[: limits.entries_max])]


def fill(values: EntryBuilder, item: Mapping[str, object], *, language: str | None) -> None:
    """Fill in the attributes of the feed schema from an item of JSON Feed."""
    values.text("title", item.get("title"))
    values.text("description", item.get("summary"))
    if isinstance(item.get("content_html"), str):
        values.markup("content", item["content_html"])
    else:
        values.text("content", item.get("content_text"))
    values.text("guid", _id(item.get("id")))
    values.link("link", first_text(item, "url", "external_url"))
    attachments = item.get("attachments")
    values.link("enclosure", _first(attachments, "url"))
    values.text("author", _authors(item))
    tags = item.get("tags")
    values.text("category", next(iter(tags), None) if isinstance(tags, list) else None)
    values.text("language", first_text(item, "language") or language)
    for name, key in (("published", "date_published"), ("updated", "date_modified")):
        stated = item.get(key)
        time = read_time(stated) if isinstance(stated, str) else None
        values.timestamp(name, time, said=stated)


def _fill_extensions(values: EntryBuilder, item: Mapping[str, object], schema: Schema) -> None:
    declared = {folded_name(name): each for name, each in extension_attributes(schema).items()}
    if not declared:
        return
    objects = [each for key, each in item.items() if key.startswith("_") and isinstance(each, dict)]
    for fields in [item, *objects]:
        for key, value in fields.items():
            attribute = declared.get(folded_name(key)) or declared.get(folded_name(key[1:]))
            if attribute is not None and str(attribute.name) not in values:
                values.extension(attribute, value)


def _id(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _first(values: object, key: str) -> object:
    if not isinstance(values, list):
        return None
    return next((each[key] for each in values if isinstance(each, dict) and each.get(key)), None)


def _authors(item: Mapping[str, object]) -> str:
    several = item.get("authors")
    authors = several if isinstance(several, list) else [item.get("author")]
    return ", ".join(first_text(each, "name") for each in authors if isinstance(each, dict))
