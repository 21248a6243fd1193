"""A feed's bytes as entries, whatever its format: RSS 0.9x, 1.0, 2.0, Atom, JSON Feed.

The format is told by the first character, not by the content type, which is wrong too often:
'{' begins JSON, '<' begins XML.

What the attributes hold:

    title, description, content, author, category, guid, language    plain text (plain_text.py)
    link, comments, enclosure                                        absolute links of the web
    published, updated                                               times in UTC, as stated

- Texts have no tags and no control characters, since atoms look at words. Links stand behind the
  text of `description` and `content`. Sanitised HTML for showing is in `Entry.html`.
- `description` is only there if the entry has a summary, and `content` only if it has content:
  what is missing is missing.
- An entry with several categories, links or enclosures keeps the first: values are no lists, and
  `category = 'rock'` must mean something.
- A link that is not of http or https is left out. A time that cannot be is left out; one in the
  future stays as it is stated, and identify.py does not believe it.

Any bytes give a `ParsedFeed` or a `FeedError`, within the limits.
"""

from __future__ import annotations

from headgate.acquire.decode_text import decode_text
from headgate.acquire.limits import DEFAULT, Limits
from headgate.acquire.parse_json_feed import parse_json_feed
from headgate.acquire.parse_xml_feed import parse_xml_feed
from headgate.acquire.parsed import ParsedFeed, Problems
from headgate.model.errors import FeedError
from headgate.model.schema import FEED_SCHEMA, Schema


def parse_feed(
    body: bytes,
    *,
    content_type: str = "",
    url: str = "",
    schema: Schema = FEED_SCHEMA,
    limits: Limits = DEFAULT,
) -> ParsedFeed:
    """The feed in these bytes, which came from this URL; relative links are relative to it."""
    if len(body) > limits.body_bytes_max:
        raise FeedError(f"it has more than {limits.body_bytes_max:,} bytes")
    problems = Problems(limits.problems_max)
    text = decode_text(body, content_type, problems).lstrip()
    parse = parse_json_feed if text.startswith(("{", "[")) else parse_xml_feed
    return parse(text, base=url, schema=schema, limits=limits, problems=problems)
